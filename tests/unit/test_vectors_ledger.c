/* tests/vectors/cpu-assignment.json: the rows about the policy and the pools. Those about picking
 * alone (vectors, accumulator, quirk, model) are replayed by test_vectors_pick. */

#include <string.h>

#include "base/macro.h"
#include "cpu/pick.h"
#include "pool/checkpoint.h"
#include "pool/ledger.h"
#include "topologies.h"

static struct str text_of(yyjson_val *row, const char *key)
{
	return doc_str(doc_get(row, str_from(key)));
}

static int64_t number_of(yyjson_val *row, const char *key)
{
	int64_t n = 0;

	(void)doc_int(doc_get(row, str_from(key)), &n);
	return n;
}

static struct cpuset set_of(yyjson_val *row, const char *key)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK_OK(cpuset_parse_lenient(text_of(row, key), &s, &err));
	return s;
}

static void check_set(const struct cpuset *got, yyjson_val *expect, const char *key)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK(doc_get(expect, str_from(key)) != NULL);
	CHECK_STR(cpuset_format(got, &a), text_of(expect, key));
}

static struct pick_options options_of(yyjson_val *row)
{
	struct pick_options o = { 0 };
	struct err err = { 0 };
	yyjson_val *k, *v;

	DOC_EACH_PAIR (doc_get(row, STR("options")), k, v)
		CHECK_OK(pick_options_set(&o, doc_str(k),
					  yyjson_get_bool(v) ? STR("true") : STR("false"), &err));
	return o;
}

static struct numa_hint affinity_of(yyjson_val *row)
{
	yyjson_val *list = doc_get(row, STR("numaAffinity")), *v;
	struct numa_hint hint = { .has_mask = yyjson_is_arr(list), .preferred = true };
	int64_t node;

	DOC_EACH_ITEM (list, v) {
		CHECK(doc_int(v, &node) && node >= 0 && node < 64);
		hint.mask |= UINT64_C(1) << node;
	}
	return hint;
}

/* A row about the policy, laid out. */
struct scene {
	struct arena a;
	struct topology topology;
	struct pick_options options;
	struct cpuset reserved;
	struct cpuset recorded; /* defaultCpuSet */
	struct ledger ledger;
};

static void scene_done(struct scene *s)
{
	ledger_done(&s->ledger);
	arena_done(&s->a);
}

/* In the kubelet's tests reserved CPUs are what the constructor finds. False: it refuses; a pools
 * file always names its CPUs, so there is nothing to compare. */
static bool scene_reserve(struct scene *s, yyjson_val *row)
{
	struct cpuset list = set_of(row, "reservedCPUs");
	struct pick_request request;
	struct err err = { 0 };

	if (text_of(doc_get(row, STR("expect")), "constructorError").n)
		return false;
	s->options = options_of(row);
	s->reserved = list;
	request = pick_request_for(&s->options, &s->topology,
				   (unsigned)number_of(row, "numReservedCPUs"));
	if (cpuset_is_empty(&list))
		CHECK_OK(
			pick_cpus(&s->topology, &s->topology.online, &request, &s->reserved, &err));
	return true;
}

static size_t entries_of(yyjson_val *state, struct assignment *ret)
{
	yyjson_val *pod, *containers, *name, *list;
	struct err err = { 0 };
	size_t n = 0;

	DOC_EACH_PAIR (doc_get(state, STR("entries")), pod, containers) {
		DOC_EACH_PAIR (containers, name, list) {
			ret[n] = (struct assignment){ .pod_uid = doc_str(pod),
						      .container = doc_str(name),
						      .kind = CONTAINER_APP };
			CHECK_OK(cpuset_parse_lenient(doc_str(list), &ret[n].cpus, &err));
			n += !cpuset_is_empty(&ret[n].cpus); /* one fixture has an empty entry */
			CHECK(n < 16);
		}
	}
	return n;
}

/* The kubelet's tests lay down any state, also ones that miss CPUs: so the pool is what the state
 * names, not what the machine has. */
static void scene_ledger(struct scene *s, yyjson_val *row)
{
	yyjson_val *state = doc_get(row, STR("state"));
	struct assignment entries[16], *order[16];
	size_t n = entries_of(state, entries);
	struct pool_config c;
	struct err err = { 0 };

	pool_config_init(&c);
	c.topology.policy = HINT_POLICY_NONE; /* the rows give the hint, or none */
	c.is_classic = true;
	c.options = s->options;
	c.reserved = s->reserved;
	c.guaranteed = s->recorded = set_of(state, "defaultCpuSet");
	for (size_t i = 0; i < n; i++) {
		cpuset_union(&c.guaranteed, &entries[i].cpus);
		order[i] = &entries[i];
	}
	cpuset_minus(&c.guaranteed, &c.reserved);
	CHECK_OK(ledger_init(&s->ledger, &s->topology, &c, &err));
	CHECK_OK(ledger_load(&s->ledger, order, n, &err));
}

static struct cpuset default_now(const struct scene *s)
{
	struct cpuset now, reserved = s->reserved;

	ledger_free(&s->ledger, &now);
	cpuset_intersect(&reserved, &s->recorded);
	cpuset_union(&now, &reserved);
	return now;
}

/* The containers of a row's pod, init ones first. */
struct pod_row {
	struct str uid;
	size_t n, n_init;
	struct str names[16];
	struct demand demands[16];
};

static void add_containers(struct pod_row *p, yyjson_val *list, bool is_init)
{
	yyjson_val *v;

	DOC_EACH_ITEM (list, v) {
		bool stays = doc_bool(doc_get(v, STR("restartable")), false);

		CHECK(p->n < ARRAY_LEN(p->names));
		p->names[p->n] = text_of(v, "name");
		p->demands[p->n++] = (struct demand){
			.kind = !is_init ? CONTAINER_APP :
				stays	 ? CONTAINER_SIDECAR :
					   CONTAINER_INIT,
			.cpu_milli = number_of(v, "cpuRequestMilli"),
			.is_guaranteed = number_of(v, "cpuRequestMilli") ==
						 number_of(v, "cpuLimitMilli") &&
					 number_of(v, "cpuRequestMilli") != 0,
		};
	}
}

static struct pod_row pod_of(yyjson_val *row)
{
	yyjson_val *pod = doc_get(row, STR("pod"));
	struct pod_row p = { .uid = text_of(pod, "uid") };
	bool guaranteed = true;

	add_containers(&p, doc_get(pod, STR("init")), true);
	p.n_init = p.n;
	add_containers(&p, doc_get(pod, STR("app")), false);
	for (size_t i = 0; i < p.n; i++)
		guaranteed = guaranteed && p.demands[i].is_guaranteed;
	for (size_t i = 0; i < p.n; i++)
		p.demands[i].is_guaranteed = guaranteed;
	return p;
}

static int allocate(struct scene *s, yyjson_val *row, const struct pod_row *p, size_t i,
		    struct ledger_grant *ret, struct err *err)
{
	struct ledger_request request = {
		.pod_uid = p->uid,
		.container = p->names[i],
		.demand = p->demands[i],
		.affinity = affinity_of(row),
	};

	return ledger_allocate(&s->ledger, &request, ret, err);
}

static void replay_start(struct scene *s, yyjson_val *row)
{
	yyjson_val *state = doc_get(row, STR("state")), *expect = doc_get(row, STR("expect"));
	struct checkpoint_machine machine = { s->topology.online, s->reserved,
					      s->options.strict_cpu_reservation };
	struct checkpoint_entry entries[16];
	struct assignment read[16];
	struct checkpoint c = { .entries = entries, .n_entries = entries_of(state, read) };
	struct err err = { 0 };
	struct cpuset got;
	int r;

	for (size_t i = 0; i < c.n_entries; i++)
		entries[i] = (struct checkpoint_entry){ read[i].pod_uid, read[i].container,
							read[i].cpus };
	c.default_cpus = set_of(state, "defaultCpuSet");
	r = checkpoint_check(&c, &machine, &got, &err);
	if (text_of(expect, "error").n) {
		CHECK(r < 0);
		CHECK_STR(err.msg, text_of(expect, "error"));
		return;
	}
	CHECK_OK(r);
	check_set(&got, expect, "defaultCpuSet");
}

static void replay_first(struct scene *s, yyjson_val *row)
{
	yyjson_val *expect = doc_get(row, STR("expect"));
	struct pod_row p = pod_of(row);
	struct ledger_grant grant;
	struct err err = { 0 };
	int r;

	scene_ledger(s, row);
	r = allocate(s, row, &p, p.n_init, &grant, &err);
	if (text_of(expect, "error").n) {
		CHECK(r < 0);
		CHECK_STR(err.msg, text_of(expect, "error"));
		return;
	}
	CHECK_OK(r);
	if (doc_bool(doc_get(expect, STR("noAllocation")), false)) {
		CHECK(grant.pool == POOL_SHARED);
		CHECK(!ledger_find(&s->ledger, p.uid, p.names[p.n_init]));
		return;
	}
	check_set(&grant.cpus, expect, "cpus");
}

static void check_uncores(const struct scene *s, const struct cpuset *cpus, yyjson_val *ids)
{
	yyjson_val *v;
	unsigned element;
	int64_t id;

	CHECK_UINT(topology_span(&s->topology, TOPOLOGY_UNCORE, cpus), yyjson_arr_size(ids));
	DOC_EACH_ITEM (ids, v) {
		struct cpuset members = { 0 };

		CHECK(doc_int(v, &id));
		CHECK(topology_find(&s->topology, TOPOLOGY_UNCORE, (uint32_t)id, &element));
		topology_add_element(&s->topology, TOPOLOGY_UNCORE, element, &members);
		CHECK(cpuset_intersects(&members, cpus));
	}
}

static void replay_all(struct scene *s, yyjson_val *row)
{
	yyjson_val *expect = doc_get(row, STR("expect"));
	struct pod_row p = pod_of(row);
	struct cpuset all = { 0 };
	struct err err = { 0 };

	scene_ledger(s, row);
	for (size_t i = p.n_init; i < p.n; i++) {
		struct ledger_grant grant;
		int r = allocate(s, row, &p, i, &grant, &err);

		if (r < 0 && text_of(expect, "error").n) {
			CHECK_STR(err.msg, text_of(expect, "error"));
			return;
		}
		CHECK_OK(r);
		cpuset_union(&all, &grant.cpus);
	}
	CHECK(!text_of(expect, "error").n);
	if (doc_get(expect, STR("uncoreCacheIDs")))
		check_uncores(s, &all, doc_get(expect, STR("uncoreCacheIDs")));
	else
		check_set(&all, expect, "cpus");
}

static void replay_sequence(struct scene *s, yyjson_val *row)
{
	yyjson_val *expect = doc_get(row, STR("expect")), *step;
	struct pod_row p = pod_of(row);
	struct err err = { 0 };
	struct cpuset now;
	size_t steps = 0;

	scene_ledger(s, row);
	for (size_t i = 0; i < p.n; i++) {
		struct ledger_grant grant;

		CHECK_OK(allocate(s, row, &p, i, &grant, &err));
	}
	DOC_EACH_ITEM (doc_get(expect, STR("sequence")), step) {
		const struct assignment *a =
			ledger_find(&s->ledger, p.uid, text_of(step, "container"));

		steps++;
		check_set(a ? &a->cpus : &(struct cpuset){ 0 }, step, "cpus");
	}
	if (doc_get(expect, STR("defaultCpuSetAfterAllocate"))) {
		now = default_now(s);
		check_set(&now, expect, "defaultCpuSetAfterAllocate");
		steps++;
	}
	CHECK(steps > 0);
}

static void replay_remove(struct scene *s, yyjson_val *row)
{
	yyjson_val *remove = doc_get(row, STR("remove"));
	struct err err = { 0 };
	struct cpuset now;

	scene_ledger(s, row);
	CHECK_OK(ledger_release_container(&s->ledger, text_of(remove, "podUID"),
					  text_of(remove, "container"), &err));
	now = default_now(s);
	check_set(&now, doc_get(row, STR("expect")), "defaultCpuSet");
}

static void replay_affinity(struct scene *s, yyjson_val *row)
{
	struct ledger_request request = {
		.pod_uid = STR("p"),
		.container = STR("c"),
		.demand = { CONTAINER_APP, true, number_of(row, "numCPUs") * 1000 },
		.affinity = affinity_of(row),
	};
	struct str expected = text_of(doc_get(row, STR("expect")), "error");
	struct ledger_grant grant;
	struct err err = { 0 };
	int r;

	scene_ledger(s, row);
	r = ledger_allocate(&s->ledger, &request, &grant, &err);
	if (expected.n) {
		CHECK(r < 0);
		CHECK_STR(err.msg, expected);
		return;
	}
	CHECK_OK(r);
	check_set(&grant.cpus, doc_get(row, STR("expect")), "cpus");
}

static void replay_total(struct scene *s, yyjson_val *row)
{
	struct pod_row p = pod_of(row);

	(void)s;
	CHECK_INT(demand_pod_cpus(p.demands, p.n),
		  number_of(doc_get(row, STR("expect")), "guaranteedCPUs"));
}

static const struct {
	const char *kind;
	void (*replay)(struct scene *s, yyjson_val *row);
} kinds[] = {
	{ "start", replay_start },
	{ "allocate-first-app-container", replay_first },
	{ "allocate-all-app-containers", replay_all },
	{ "allocate-sequence", replay_sequence },
	{ "remove", replay_remove },
	{ "allocate-cpus-with-affinity", replay_affinity },
	{ "pod-guaranteed-cpus", replay_total },
};

static void replay_policy(yyjson_val *root, yyjson_val *row)
{
	struct str kind = text_of(row, "kind");
	CLEANUP(scene_done) struct scene s = { 0 };
	size_t i = 0;

	arena_init(&s.a, 0);
	while (i < ARRAY_LEN(kinds) && !str_eq(kind, str_from(kinds[i].kind)))
		i++;
	if (i == ARRAY_LEN(kinds))
		test_fail(TEST_AT("kind"), "unknown kind " PRI_STR, FMT_STR(kind));
	if (doc_get(row, STR("topology"))) {
		topologies_get(root, text_of(row, "topology"), &s.a, &s.topology);
		if (!scene_reserve(&s, row))
			return;
	}
	kinds[i].replay(&s, row);
}

TEST(the_policy_allocates_reuses_and_releases_as_the_kubelet_does)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *root, *row;
	size_t n = 0;

	arena_init(&a, 0);
	root = vectors_load("vectors/cpu-assignment.json", &a);
	DOC_EACH_ITEM (doc_get(root, STR("policy_vectors")), row) {
		TEST_ROW(PRI_STR " " PRI_STR, FMT_STR(text_of(row, "id")),
			 FMT_STR(text_of(row, "ref")));
		replay_policy(root, row);
		n++;
	}
	vectors_count("policy", n, 78);
}

static void check_published(const struct ledger *l, yyjson_val *row)
{
	yyjson_val *capacity = doc_get(row, STR("capacity"));
	yyjson_val *per_node = doc_get(row, STR("allocatablePerNUMA"));
	struct ledger_capacity published;
	struct cpuset allocatable;

	ledger_capacity(l, &published);
	CHECK_INT(published.shared_milli, number_of(capacity, "openshift.io/shared-cpus"));
	CHECK_INT(published.guaranteed_milli, number_of(capacity, "openshift.io/guaranteed-cpus"));
	(void)ledger_cpus(l, POOL_GUARANTEED, &allocatable);
	check_set(&allocatable, row, "podResourcesAllocatableCpuIds");
	check_set(&l->now.sets.split, row, "partialCoreCPUs");
	for (size_t i = 0; i < l->now.topology->level[TOPOLOGY_NUMA].n; i++) {
		struct ledger_numa numa;
		char id[16];

		ledger_numa(l, i, &numa);
		(void)snprintf(id, sizeof(id), "%u", numa.id);
		CHECK_INT(numa.n_allocatable, number_of(per_node, id));
	}
}

static void pool_step(struct ledger *l, yyjson_val *step)
{
	yyjson_val *expect = doc_get(step, STR("expect")), *after = doc_get(step, STR("after"));
	struct str kind = text_of(step, "kind"), error = text_of(expect, "error");
	struct str qos = text_of(step, "qos");
	struct ledger_request request = {
		.pod_uid = text_of(step, "pod"),
		.container = text_of(step, "container"),
		.affinity = affinity_of(step),
		.demand = {
			.kind = str_eq(kind, STR("init"))    ? CONTAINER_INIT :
				str_eq(kind, STR("sidecar")) ? CONTAINER_SIDECAR :
							       CONTAINER_APP,
			.cpu_milli = number_of(step, "cpuMilli"),
			.is_guaranteed = !qos.n || str_eq(qos, STR("Guaranteed")),
		},
	};
	struct ledger_grant grant;
	struct err err = { 0 };
	struct cpuset now;

	if (str_eq(text_of(step, "op"), STR("remove"))) {
		CHECK_INT(ledger_release_container(l, request.pod_uid, request.container, &err), 1);
	} else {
		int r = ledger_allocate(l, &request, &grant, &err);

		CHECK_STR(text_of(step, "op"), "allocate");
		CHECK((r < 0) == (error.n > 0));
		if (r < 0) {
			CHECK_STR(err.msg, error);
		} else {
			check_set(&grant.cpus, expect, "cpus");
			CHECK_STR(pool_name(grant.pool), text_of(expect, "pool"));
		}
	}
	(void)ledger_cpus(l, POOL_SHARED, &now);
	check_set(&now, after, "defaultCpuSet");
	ledger_free(l, &now);
	check_set(&now, after, "guaranteedCpuSet");
	CHECK_OK(ledger_check(l, &err));
}

TEST(the_pools_assign_release_and_refuse_step_by_step)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *root, *row, *step;
	size_t n = 0, n_steps = 0;

	arena_init(&a, 0);
	root = vectors_load("vectors/cpu-assignment.json", &a);
	DOC_EACH_ITEM (doc_get(root, STR("pool_vectors")), row) {
		struct pool_config c;
		struct topology t;
		struct err err = { 0 };
		CLEANUP(ledger_done) struct ledger l = { 0 };

		TEST_ROW(PRI_STR " " PRI_STR, FMT_STR(text_of(row, "id")),
			 FMT_STR(text_of(row, "name")));
		topologies_get(root, text_of(row, "topology"), &a, &t);
		pool_config_init(&c);
		c.topology.policy = HINT_POLICY_NONE; /* the rows give the hint, or none */
		c.reserved = set_of(row, "reservedCPUs");
		c.shared = set_of(row, "sharedCPUs");
		c.guaranteed = set_of(row, "guaranteedCPUs");
		c.options = options_of(row);
		c.fold_rest = false;
		CHECK_OK(ledger_init(&l, &t, &c, &err));
		check_published(&l, row);
		DOC_EACH_ITEM (doc_get(row, STR("steps")), step) {
			pool_step(&l, step);
			n_steps++;
		}
		check_published(&l, row); /* I5: never from what is free */
		n++;
	}
	vectors_count("pool", n, 10);
	TEST_NOTE("%zu steps", n_steps);
}
