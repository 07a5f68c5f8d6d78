#include "local_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup_snapshot.h"
#include "cpu/topology_read.h"
#include "local/local_node.h"
#include "output.h"

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

int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err)
{
	int r;

	r = local_node_read_state(o->run_dir, a, &v->intent, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "nothing runs here: no local machine \"%s\" in %s",
			       o->name, o->run_dir);
	if (r < 0)
		return r;
	v->topology = arena_new(a, struct topology);
	r = topology_read(str_cstr(a, v->intent.topology), a, v->topology, err);
	if (r >= 0)
		r = container_cgroup_open(&v->cgroup, o->name, o->run_dir, err);
	if (r < 0)
		return r;
	if (v->intent.mode == LOCAL_AFFINITY)
		container_cgroup_use_affinity(&v->cgroup);
	if (v->cgroup.mode != v->intent.mode)
		r = err_set(err, ENODEV, "no %s here to read", local_mode_name(v->intent.mode));
	else
		r = container_cgroup_look(&v->cgroup, v->intent.containers, v->intent.n, a,
					  &v->snapshots, err);
	if (r < 0)
		container_cgroup_done(&v->cgroup);
	return r;
}

void local_view_done(struct local_view *v)
{
	container_cgroup_done(&v->cgroup);
}

static struct str quota_text(const struct local_container *c, struct arena *a)
{
	if (c->quota_us == CGROUP_UNLIMITED)
		return STR("-");
	return str_printf(a, "%" PRId64 "/%" PRIu64, c->quota_us, c->period_us);
}

/* "running (3)": with so many threads. */
static struct str state_text(const struct cgroup_snapshot *snapshot, enum local_state state,
			     struct arena *a)
{
	if (snapshot->is_there)
		return str_printf(a, "%s (%zu)", state == LOCAL_LEAVING ? "leaving" : "running",
				  cgroup_snapshot_threads(snapshot));
	return str_from(state == LOCAL_STARTED ? "restarting" : local_state_name(state));
}

struct str local_table(const struct local_container *containers,
		       const struct cgroup_snapshot *snapshots, const enum local_state *states,
		       size_t n, struct arena *a)
{
	const struct str head[] = { STR("POD"),	   STR("CONTAINER"), STR("POOL"), STR("CPUS"),
				    STR("SHARES"), STR("QUOTA"),     STR("STATE") };
	struct table t;

	/* Without sights there is no state to show. */
	table_init(&t, ARRAY_LEN(head) - !snapshots, a);
	table_add(&t, head);
	for (size_t i = 0; i < n; i++) {
		const struct local_container *c = &containers[i];
		const struct str row[] = {
			str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->pod)),
			c->name,
			str_from(c->pool == POOL_MANAGEMENT ? "management" : pool_name(c->pool)),
			cpuset_format(&c->cpus, a),
			str_printf(a, "%" PRIu64, c->shares),
			quota_text(c, a),
			snapshots ? state_text(&snapshots[i], states[i], a) : STR(""),
		};

		table_add(&t, row);
	}
	return table_format(&t);
}

struct map local_map(const struct local_machine *machine, struct arena *a)
{
	struct map_tenant *tenants = arena_array(a, struct map_tenant, machine->n);
	struct map map = { .topology = machine->topology,
			   .tenants = tenants,
			   .n = machine->n,
			   .colour = output_wants_colour() };

	map.pools[POOL_MANAGEMENT] = machine->config->reserved;
	pool_config_shared(machine->config, machine->topology, &map.pools[POOL_SHARED]);
	pool_config_guaranteed(machine->config, machine->topology, &map.pools[POOL_GUARANTEED]);
	for (size_t i = 0; i < machine->n; i++) {
		const struct local_container *c = &machine->containers[i];

		tenants[i] = (struct map_tenant){ c->namespace, c->pod,		 c->name,
						  c->pool,	c->is_exclusive, c->cpus };
	}
	return map;
}

static void put_sight(yyjson_mut_doc *m, yyjson_mut_val *o, const struct cgroup_snapshot *snapshot,
		      enum local_state state, struct arena *a)
{
	const struct cpuset allowed = cgroup_snapshot_allowed(snapshot);

	doc_put_int(m, o, STR("processes"), (int64_t)snapshot->processes.n);
	doc_put_int(m, o, STR("threads"), (int64_t)cgroup_snapshot_threads(snapshot));
	doc_put_str(m, o, STR("allowed"), cpuset_format(&allowed, a));
	doc_put_str(m, o, STR("state"), str_from(local_state_name(state)));
}

yyjson_mut_val *local_to_doc(yyjson_mut_doc *m, const struct local_container *containers,
			     const struct cgroup_snapshot *snapshots,
			     const enum local_state *states, size_t n, struct arena *a)
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
		if (snapshots)
			put_sight(m, o, &snapshots[i], states[i], a);
	}
	return list;
}
