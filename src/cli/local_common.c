#include "local_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology_read.h"
#include "local/node.h"
#include "output.h"
#include "topology_draw.h"

void local_options_fill(struct local_options *o, struct arena *a)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	o->name = o->name ? o->name : "local";
	o->topology = o->topology ? o->topology : "host";
	if (o->run_dir)
		return;
	if (geteuid() == 0)
		o->run_dir = str_printf(a, "/run/pinfold/%s", o->name).p;
	else if (runtime && *runtime)
		o->run_dir = str_printf(a, "%s/pinfold/%s", runtime, o->name).p;
	else
		o->run_dir = str_printf(a, "/tmp/pinfold-%u/%s", (unsigned)geteuid(), o->name).p;
}

static int observe_all(struct local_view *v, struct arena *a, struct err *err)
{
	int r = 0;

	v->seen = arena_array(a, struct observation, v->intent.n);
	for (size_t i = 0; r >= 0 && i < v->intent.n; i++)
		r = observe(&v->cage, &v->intent.containers[i], a, &v->seen[i], err);
	return r;
}

int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err)
{
	int r;

	r = node_read_intent(o->run_dir, a, &v->intent, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "nothing runs here: no local machine \"%s\" in %s",
			       o->name, o->run_dir);
	if (r < 0)
		return r;
	v->topology = arena_new(a, struct topology);
	r = topology_read(str_cstr(a, v->intent.topology), a, v->topology, err);
	if (r >= 0)
		r = cage_open(&v->cage, o->name, o->run_dir, err);
	if (r < 0)
		return r;
	if (v->intent.mode == LOCAL_AFFINITY)
		cage_use_affinity(&v->cage);
	if (v->cage.mode != v->intent.mode)
		r = err_set(err, ENODEV, "no %s here to read", local_mode_name(v->intent.mode));
	else
		r = observe_all(v, a, err);
	if (r < 0)
		cage_done(&v->cage);
	return r;
}

void local_view_done(struct local_view *v)
{
	cage_done(&v->cage);
}

static struct str quota_text(const struct local_container *c, struct arena *a)
{
	if (c->quota_us == CGROUP_UNLIMITED)
		return STR("-");
	return str_printf(a, "%" PRId64 "/%" PRIu64, c->quota_us, c->period_us);
}

/* "running (3)": with so many threads. */
static struct str state_text(const struct observation *seen, enum local_state state,
			     struct arena *a)
{
	if (seen->n_processes)
		return str_printf(a, "%s (%zu)", state == LOCAL_LEAVING ? "leaving" : "running",
				  seen->n_threads);
	return str_from(state == LOCAL_STARTED ? "restarting" : local_state_name(state));
}

struct str local_table(const struct local_container *containers, const struct observation *seen,
		       const enum local_state *states, size_t n, struct arena *a)
{
	const struct str head[] = { STR("POD"),	   STR("CONTAINER"), STR("POOL"), STR("CPUS"),
				    STR("SHARES"), STR("QUOTA"),     STR("STATE") };
	struct table t;

	/* Without observations there is no state to show. */
	table_init(&t, ARRAY_LEN(head) - !seen, a);
	table_add(&t, head);
	for (size_t i = 0; i < n; i++) {
		const struct local_container *c = &containers[i];
		const struct str row[] = {
			str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->pod)),
			c->name,
			str_from(c->pool == POOL_RESERVED ? "management" : pool_name(c->pool)),
			cpuset_format(&c->cpus, a),
			str_printf(a, "%" PRIu64, c->shares),
			quota_text(c, a),
			seen ? state_text(&seen[i], states[i], a) : STR(""),
		};

		table_add(&t, row);
	}
	return table_format(&t);
}

/* Exclusive CPUs in use stand out from those that wait for somebody. */
static void fill_pools(const struct local_drawing *d, struct topology_pool pools[4])
{
	pools[0] = (struct topology_pool){ "management", 'm', "33", d->config->reserved };
	pools[1] = (struct topology_pool){ .name = "shared", .letter = 's', .colour = "32" };
	pools[2] = (struct topology_pool){ .name = "guaranteed, in use",
					   .letter = 'G',
					   .colour = "1;36" };
	pools[3] =
		(struct topology_pool){ .name = "guaranteed, free", .letter = 'g', .colour = "36" };
	for (size_t i = 0; i < d->n; i++)
		if (d->containers[i].is_exclusive)
			cpuset_union(&pools[2].cpus, &d->containers[i].cpus);
	pool_config_shared(d->config, d->topology, &pools[1].cpus);
	cpuset_minus(&pools[1].cpus, &pools[2].cpus);
	pool_config_guaranteed(d->config, d->topology, &pools[3].cpus);
	cpuset_minus(&pools[3].cpus, &pools[2].cpus);
	cpuset_minus(&pools[3].cpus, &pools[1].cpus);
}

#define TENANTS_WIDTH 80

static bool is_first_of_pod(const struct local_drawing *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (d->containers[k].is_exclusive == d->containers[i].is_exclusive &&
		    d->containers[k].pool == d->containers[i].pool &&
		    local_container_same_pod(&d->containers[k], &d->containers[i]))
			return false;
	return true;
}

/* "management  6 containers of 2 pods: dns ntp", cut where the line ends. */
static void add_pool(struct table *t, const struct local_drawing *d, enum pool pool)
{
	size_t n = 0, pods = 0;
	struct strbuf names;

	strbuf_init(&names, t->a);
	for (size_t i = 0; i < d->n; i++) {
		const struct local_container *c = &d->containers[i];

		if (c->is_exclusive || c->pool != pool)
			continue;
		n++;
		if (!is_first_of_pod(d, i))
			continue;
		pods++;
		if (names.n + c->pod.n + 50 < TENANTS_WIDTH)
			strbuf_printf(&names, " " PRI_STR, FMT_STR(c->pod));
		else if (!str_ends(strbuf_str(&names), STR("...")))
			strbuf_add(&names, STR(" ..."));
	}
	if (n)
		table_add(t,
			  (const struct str[]){
				  str_from(pool == POOL_RESERVED ? "management" : pool_name(pool)),
				  str_printf(t->a, "%zu container%s of %zu pod%s:" PRI_STR, n,
					     n == 1 ? "" : "s", pods, pods == 1 ? "" : "s",
					     FMT_STR(strbuf_str(&names))) });
}

/* "vdu-0  l1 on 10-17, l2 on 18-21": a pod whose containers own CPUs. */
static void add_owner(struct table *t, const struct local_drawing *d, size_t first)
{
	struct strbuf b;

	strbuf_init(&b, t->a);
	for (size_t i = first; i < d->n; i++) {
		const struct local_container *c = &d->containers[i];

		if (!c->is_exclusive || !local_container_same_pod(c, &d->containers[first]))
			continue;
		strbuf_printf(&b, "%s" PRI_STR " on " PRI_STR, b.n ? ", " : "", FMT_STR(c->name),
			      FMT_STR(cpuset_format(&c->cpus, t->a)));
	}
	table_add(t, (const struct str[]){ d->containers[first].pod, strbuf_str(&b) });
}

static void add_tenants(struct strbuf *b, const struct local_drawing *d, struct arena *a)
{
	struct table t;

	table_init(&t, 2, a);
	add_pool(&t, d, POOL_RESERVED);
	add_pool(&t, d, POOL_SHARED);
	for (size_t i = 0; i < d->n; i++)
		if (d->containers[i].is_exclusive && is_first_of_pod(d, i))
			add_owner(&t, d, i);
	if (t.n)
		strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
}

struct str local_draw(const struct local_drawing *d, struct arena *a)
{
	struct topology_pool pools[4];
	struct topology_drawing how = { .pools = pools, .n_pools = 4, .colour = d->colour };
	struct strbuf b;

	fill_pools(d, pools);
	strbuf_init(&b, a);
	strbuf_add(&b, topology_draw(d->topology, &how, a));
	add_tenants(&b, d, a);
	return strbuf_str(&b);
}

yyjson_mut_val *local_to_doc(yyjson_mut_doc *m, const struct local_container *containers,
			     const struct observation *seen, const enum local_state *states,
			     size_t n, struct arena *a)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < n; i++) {
		const struct local_container *c = &containers[i];
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, o, STR("namespace"), c->namespace);
		doc_put_str(m, o, STR("pod"), c->pod);
		doc_put_str(m, o, STR("container"), c->name);
		doc_put_str(m, o, STR("kind"), str_from(container_kind_name(c->kind)));
		doc_put_str(m, o, STR("pool"), str_from(pool_name(c->pool)));
		doc_put_str(m, o, STR("cpus"), cpuset_format(&c->cpus, a));
		doc_put_int(m, o, STR("shares"), (int64_t)c->shares);
		doc_put_int(m, o, STR("quota"), c->quota_us);
		doc_put_int(m, o, STR("period"), (int64_t)c->period_us);
		if (!seen)
			continue;
		doc_put_int(m, o, STR("processes"), (int64_t)seen[i].n_processes);
		doc_put_int(m, o, STR("threads"), (int64_t)seen[i].n_threads);
		doc_put_str(m, o, STR("allowed"), cpuset_format(&seen[i].allowed, a));
		doc_put_str(m, o, STR("state"), str_from(local_state_name(states[i])));
	}
	return list;
}
