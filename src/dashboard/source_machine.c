#include "source_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentclient/status_client.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/cpu_stat.h"
#include "cpu/topology_read.h"
#include "kube/names.h"
#include "local/local_node.h"
#include "partition/machine_groups.h"

/* --- pods --- */

/* Containers are added pod by pod. */
struct machine_pods {
	struct arena *a;
	struct shown_pod *items;
	struct shown_container **containers; /* of each pod */
	size_t n;
};

static size_t pod_index(struct machine_pods *l, struct str namespace, struct str name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->items[i].name, name) && str_eq(l->items[i].namespace, namespace))
			return i;
	l->items = arena_one_more(l->a, l->items, l->n, sizeof(*l->items));
	l->containers = arena_one_more(l->a, l->containers, l->n, sizeof(struct shown_container *));
	l->items[l->n] =
		(struct shown_pod){ .namespace = namespace, .name = name, .state = STR("Running") };
	l->containers[l->n] = NULL;
	return l->n++;
}

static struct shown_pod *add_container(struct machine_pods *l, struct str namespace,
				       struct str name, const struct shown_container *c)
{
	const size_t i = pod_index(l, namespace, name);

	l->containers[i] = arena_one_more(l->a, l->containers[i], l->items[i].n, sizeof(*c));
	l->containers[i][l->items[i].n++] = *c;
	return &l->items[i];
}

static void put_pods(struct shown_state *state, struct machine_pods *l, struct str node)
{
	for (size_t i = 0; i < l->n; i++) {
		l->items[i].node = node;
		l->items[i].containers = l->containers[i];
		shown_state_put_pod(state, &l->items[i]);
	}
}

/* --- the pools as a NodePartition --- */

struct machine_pools {
	struct str cpus[POOL__COUNT], online, exclusive, profile;
	const char *source; /* where the pools come from, or NULL */
	size_t containers[POOL__COUNT];
	int64_t free; /* CPUs that can be assigned; -1: not known */
};

static void put_uses(const struct machine_pools *p, yyjson_mut_doc *m, yyjson_mut_val *status)
{
	yyjson_mut_val *list = doc_put_arr(m, status, STR("pools"));

	for (enum pool i = 0; i < POOL__COUNT; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("name"), str_from(pool_name(i)));
		doc_put_int(m, v, STR("containers"), (int64_t)p->containers[i]);
		if (i != POOL_GUARANTEED)
			continue;
		doc_put_str(m, v, STR("exclusiveCPUs"), p->exclusive);
		if (p->free >= 0)
			doc_put_int(m, v, STR("freeCPUs"), p->free);
	}
}

static void put_partition(struct shown_state *state, struct str node, const struct machine_pools *p,
			  struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *status, *cpus;

	doc_put_str(m, doc_put_obj(m, root, STR("metadata")), STR("name"), node);
	status = doc_put_obj(m, root, STR("status"));
	if (p->source)
		doc_put_str(m, status, STR("source"), str_from(p->source));
	cpus = doc_put_obj(m, status, STR("cpus"));
	for (enum pool i = 0; i < POOL__COUNT; i++)
		doc_put_str(m, cpus, str_from(pool_name(i)), p->cpus[i]);
	doc_put_str(m, cpus, STR("online"), p->online);
	put_uses(p, m, status);
	(void)shown_state_put_partition(state, doc_freeze(root, a), NULL);
}

/* Adds the containers' exclusive CPUs, and counts them. */
static void finish_pools(struct machine_pools *p, const struct machine_pods *l, struct arena *a)
{
	struct cpuset exclusive = { 0 }, cpus;

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->items[i].n; k++) {
			const struct shown_container *c = &l->containers[i][k];

			p->containers[c->pool]++;
			if (c->is_exclusive && cpuset_parse(c->cpus, &cpus, NULL) >= 0)
				cpuset_union(&exclusive, &cpus);
		}
	p->exclusive = cpuset_format(&exclusive, a);
	if (p->free < 0 && cpuset_parse(p->cpus[POOL_GUARANTEED], &cpus, NULL) >= 0) {
		cpuset_minus(&cpus, &exclusive);
		p->free = cpuset_count(&cpus);
	}
}

/* A container that may use its whole pool follows the pool. */
static struct str own_cpus(const struct machine_pools *p, const struct shown_container *c,
			   struct str cpus)
{
	return !c->is_exclusive && str_eq(cpus, p->cpus[c->pool]) ? STR("") : cpus;
}

/* --- the agent --- */

static int32_t number_of(yyjson_val *v, int32_t otherwise)
{
	int64_t n;

	if (!doc_int(v, &n))
		return otherwise;
	return n < 0 ? 0 : n > INT32_MAX ? INT32_MAX : (int32_t)n; /* a negative quota: unlimited */
}

static void add_status_container(struct machine_pods *l, const struct machine_pools *p,
				 yyjson_val *v)
{
	const struct str pool = doc_str(doc_get(v, STR("pool")));
	struct shown_container c = { .name = doc_str(doc_get(v, STR("container"))),
				     .kind = CONTAINER_APP,
				     .is_exclusive = doc_bool(doc_get(v, STR("exclusive")), false),
				     .millicores = -1,
				     .shares = number_of(doc_get(v, STR("shares")), -1),
				     .quota_us = number_of(doc_get(v, STR("quotaUs")), -1),
				     .period_us = number_of(doc_get(v, STR("periodUs")), -1) };
	struct shown_pod *pod;

	while (c.pool < POOL__COUNT && !str_eq(pool, str_from(pool_name(c.pool))))
		c.pool++;
	if (c.pool == POOL__COUNT)
		return; /* of a later version */
	c.cpus = own_cpus(p, &c, doc_str(doc_get(v, STR("cpus"))));
	/* What the agent does not say, the plan of a profile needs. */
	if (c.is_exclusive) {
		struct cpuset cpus;

		if (cpuset_parse(c.cpus, &cpus, NULL) >= 0)
			c.millicores = (int32_t)cpuset_count(&cpus) * 1000;
	}
	pod = add_container(l, doc_str(doc_get(v, STR("namespace"))),
			    doc_str(doc_get(v, STR("pod"))), &c);
	pod->uid = doc_str(doc_get(v, STR("uid")));
}

void source_machine_put_status(struct shown_state *state, struct str node, const struct topology *t,
			       yyjson_val *status)
{
	yyjson_val *pools = doc_get(status, STR("pools")), *v;
	CLEANUP(arena_done) struct arena a;
	struct machine_pods l = { .a = &a };
	struct machine_pools p = { .free = -1 };

	arena_init(&a, 0);
	for (enum pool i = 0; i < POOL__COUNT; i++)
		p.cpus[i] = doc_str(doc_get(doc_get(pools, str_from(pool_name(i))), STR("cpus")));
	p.online = cpuset_format(&t->online, &a);
	DOC_EACH_ITEM (doc_get(status, STR("containers")), v)
		add_status_container(&l, &p, v);
	finish_pools(&p, &l, &a);
	put_partition(state, node, &p, &a);
	put_pods(state, &l, node);
}

static int read_agent(struct source_machine *s, struct arena *a, struct err *err)
{
	struct agent_status status;
	struct str node;
	int r = status_client_read(s->config.agent_dir, a, &status, err);

	if (r < 0)
		return r;
	node = doc_str(doc_get(status.doc.root, STR("node")));
	source_machine_put_status(s->state, node.n ? node : str_from(s->name), &s->topology,
				  status.doc.root);
	return 0;
}

/* --- pinfold local --- */

static void add_local_container(struct machine_pods *l, const struct machine_pools *p,
				const struct local_container *from, enum local_state state)
{
	struct shown_container c = { .name = from->name,
				     .pool = from->pool,
				     .kind = from->kind,
				     .is_exclusive = from->is_exclusive,
				     .millicores = -1,
				     .shares = (int32_t)from->settings.shares,
				     .quota_us = -1,
				     .period_us = -1 };
	struct shown_pod *pod;

	c.cpus = own_cpus(p, &c, cpuset_format(&from->settings.cpus, l->a));
	if (c.is_exclusive)
		c.millicores = (int32_t)cpuset_count(&from->settings.cpus) * 1000;
	if (from->settings.has_quota) {
		c.quota_us = from->settings.quota_us < 0 ? 0 : (int32_t)from->settings.quota_us;
		c.period_us = (int32_t)from->settings.period_us;
	}
	pod = add_container(l, from->namespace, from->pod, &c);
	if (state != LOCAL_RUNNING)
		pod->state = str_from(local_state_name(state));
}

static int read_local(struct source_machine *s, struct arena *a, struct err *err)
{
	struct local_state_file file;
	struct machine_pods l = { .a = a };
	struct machine_pools p = { .free = -1 };
	struct cpuset cpus;
	int r = local_node_read_state(s->config.local_dir, a, &file, err);

	if (r == -ENOENT)
		return err_set(err, ENOENT, "no local machine runs: no state in %s",
			       s->config.local_dir);
	if (r < 0)
		return r;
	p.cpus[POOL_MANAGEMENT] = cpuset_format(&file.config.reserved, a);
	pool_config_shared(&file.config, &s->topology, &cpus);
	p.cpus[POOL_SHARED] = cpuset_format(&cpus, a);
	pool_config_guaranteed(&file.config, &s->topology, &cpus);
	p.cpus[POOL_GUARANTEED] = cpuset_format(&cpus, a);
	p.online = cpuset_format(&s->topology.online, a);
	for (size_t i = 0; i < file.n; i++)
		if (file.states[i] != LOCAL_FINISHED && file.states[i] != LOCAL_FAILED)
			add_local_container(&l, &p, &file.containers[i], file.states[i]);
	finish_pools(&p, &l, a);
	put_partition(s->state, str_from(s->name), &p, a);
	put_pods(s->state, &l, str_from(s->name));
	return 0;
}

/* --- the machine --- */

static int read_topology(struct source_machine *s, struct arena *a, struct err *err)
{
	const char *from = s->config.topology;
	struct local_state_file file;
	int r = 0;

	if (s->config.local_dir) {
		r = local_node_read_state(s->config.local_dir, a, &file, err);
		if (r == -ENOENT)
			return err_set(err, ENOENT, "no local machine runs: no state in %s",
				       s->config.local_dir);
		from = r < 0 ? NULL : str_cstr(a, file.topology);
	}
	if (r >= 0)
		r = topology_read(from, &s->arena, &s->topology, err);
	if (r >= 0 && strcmp(from, "host") == 0)
		s->use = calloc(1, sizeof(*s->use));
	return r;
}

int source_machine_groups(const struct topology *t, struct arena *a, struct str *ret,
			  struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *list = yyjson_mut_arr(m);
	struct machine_group *groups;
	size_t n;
	int r = machine_groups_of(t, a, &groups, &n, err);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_int(m, v, STR("socket"), groups[i].socket);
		doc_put_int(m, v, STR("numaNode"), groups[i].numa);
		doc_put_int(m, v, STR("cache"), groups[i].cache);
		doc_put_str(m, v, STR("cores"), groups[i].cores);
	}
	return r < 0 ? r : doc_write(list, false, a, ret, err);
}

int source_machine_read(struct source_machine *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a;

	int r;

	arena_init(&a, 0);
	shown_state_begin_list(s->state, SHOWN_PODS);
	r = s->config.local_dir ? read_local(s, &a, err) : read_agent(s, &a, err);
	if (r >= 0)
		shown_state_end_list(s->state, SHOWN_PODS);
	return r;
}

/* The first one: its name depends on the source. */
struct str source_machine_node(const struct source_machine *s)
{
	for (size_t i = 0; i < s->state->n_node_buckets; i++)
		if (s->state->nodes[i])
			return s->state->nodes[i]->name;
	return STR("");
}

int source_machine_open(struct source_machine *s, const struct source_machine_config *config,
			struct shown_state *state, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str groups;
	int r;

	arena_init(&a, 0);
	arena_init(&s->arena, 0);
	s->config = *config;
	s->state = state;
	if (gethostname(s->name, sizeof(s->name) - 1) < 0 || !s->name[0])
		memcpy(s->name, "machine", sizeof("machine"));
	r = read_topology(s, &a, err);
	if (r >= 0)
		r = source_machine_read(s, err);
	if (r >= 0)
		r = source_machine_groups(&s->topology, &a, &groups, err);
	if (r < 0)
		return r;
	shown_state_set_topology(state, source_machine_node(s), groups);
	state->is_complete = true;
	state->history.since_ms = state->now_ms;
	source_machine_measure(s);
	return 0;
}

void source_machine_measure(struct source_machine *s)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	if (!s->use || cpu_stat_read(&a, &text, NULL) < 0)
		return;
	text = cpu_use_read(s->use, text, &a);
	if (text.n)
		shown_state_set_use(s->state, source_machine_node(s), text);
}

void source_machine_done(struct source_machine *s)
{
	arena_done(&s->arena);
	free(s->use);
}
