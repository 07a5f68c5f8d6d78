/* A node's life: containers come, restart and go, pools are resized, CPUs fail, writes fail, we are
 * restarted. Whatever happens in whatever order, no CPU has two owners, no exclusive CPU is shared,
 * none is lost, and what is written is what is there. The model is the plainest there is: one
 * record per CPU, filled from the ledger's answers alone. */

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "machines.h"
#include "pool/ledger.h"

#define MOST_PODS 24
#define MOST_CONTAINERS 5
#define EVENTS 60 /* per machine */

/* What the node was told; the ledger must never contradict it. */
struct told {
	bool is_held;
	struct cpuset cpus;
	enum container_kind kind;
};

struct node {
	struct prop *p;
	struct arena a;		   /* topologies; lives as long as the node */
	struct arena scratch;	   /* of one event */
	struct machine machine;	   /* the hardware */
	struct topology *topology; /* the hardware as of the last hotplug */
	struct ledger l;
	struct told told[MOST_PODS][MOST_CONTAINERS];
	bool disk_is_full;
	struct str disk; /* the last state that was written */
	struct arena disk_arena[2];
	unsigned disk_turn;
};

static size_t n_events, n_grants, n_refusals, n_resizes, n_resize_refusals, n_failed_writes;

static struct str encode(const struct ledger *l, struct arena *a)
{
	struct err err = { 0 };
	struct ledger_state s;
	struct str text;

	ledger_to_state(l, &s);
	s.boot_id = STR("boot");
	CHECK_OK(ledger_state_encode(&s, a, &text, &err));
	return text;
}

static int write_to_disk(const struct ledger *l, void *data, struct err *err)
{
	struct node *n = data;

	if (n->disk_is_full)
		return err_set(err, ENOSPC, "no space left on device");
	n->disk_turn ^= 1;
	arena_reset(&n->disk_arena[n->disk_turn]);
	n->disk = encode(l, &n->disk_arena[n->disk_turn]);
	return 0;
}

static const char *const uids[MOST_PODS] = { "a", "b", "c", "d", "e", "f", "g", "h",
					     "i", "j", "k", "l", "m", "n", "o", "p",
					     "q", "r", "s", "t", "u", "v", "w", "x" };
static const char *const names[MOST_CONTAINERS] = { "init0", "init1", "side", "app0", "app1" };
static const enum container_kind container_kinds[MOST_CONTAINERS] = {
	CONTAINER_INIT, CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_APP, CONTAINER_APP
};

/* Each CPU goes to a pool, core by core or, sometimes, thread by thread. */
static struct pool_config draw_config(struct node *n)
{
	struct cpuset machine = n->topology->online;
	struct pool_config c;
	unsigned last = CPUSET_NONE;
	uint64_t pool = 0;
	bool by_core = !prop_one_in(n->p, 4);

	pool_config_init(&c);
	cpuset_union(&machine, &n->topology->offline);
	c.is_classic = prop_one_in(n->p, 3);
	CPUSET_FOREACH (cpu, &machine) {
		unsigned core = topology_index(n->topology, TOPOLOGY_CORE, cpu);

		if (!by_core || core != last)
			pool = prop_below(n->p, 8);
		last = core;
		if (c.is_classic) {
			if (pool == 0)
				cpuset_add(&c.reserved, cpu);
		} else {
			cpuset_add(pool == 0 ? &c.reserved :
				   pool < 3  ? &c.shared :
					       &c.guaranteed,
				   cpu);
		}
	}
	c.options.strict_cpu_reservation = !prop_one_in(n->p, 4);
	c.options.full_pcpus_only = prop_one_in(n->p, 4);
	c.options.align_by_socket = prop_one_in(n->p, 6);
	switch (prop_below(n->p, 6)) {
	case 0:
		c.options.distribute_cpus_across_numa = n->topology->level[TOPOLOGY_NUMA].n <= 6;
		break;
	case 1:
		c.options.distribute_cpus_across_cores = !c.options.full_pcpus_only;
		break;
	case 2:
		c.options.prefer_align_cpus_by_uncorecache = true;
		break;
	}
	return c;
}

/* What the node was told, CPU by CPU. */
struct view {
	uint8_t lasting[MACHINE_MAX_CPUS]; /* app containers and sidecars that have it */
	uint8_t pods[MACHINE_MAX_CPUS];
};

static void view_fill(struct view *v, const struct node *n)
{
	memset(v, 0, sizeof(*v));
	for (unsigned p = 0; p < MOST_PODS; p++) {
		struct cpuset pod = { 0 };

		for (unsigned c = 0; c < MOST_CONTAINERS; c++) {
			const struct told *t = &n->told[p][c];

			if (!t->is_held)
				continue;
			cpuset_union(&pod, &t->cpus);
			if (t->kind != CONTAINER_INIT)
				CPUSET_FOREACH (cpu, &t->cpus)
					v->lasting[cpu]++;
		}
		CPUSET_FOREACH (cpu, &pod)
			v->pods[cpu]++;
	}
}

/* The owner of a CPU; of several containers of one pod, the one that is not an init container. */
static const struct assignment *owner_of(const struct ledger *l, unsigned cpu)
{
	const struct assignment *found = NULL, *a;

	LEDGER_EACH(l, i, a)
	{
		if (cpuset_has(&a->cpus, cpu) && (!found || found->kind == CONTAINER_INIT))
			found = a;
	}
	return found;
}

static struct cpuset lowest(const struct cpuset *s, unsigned n)
{
	struct cpuset set = { 0 };

	CPUSET_FOREACH (cpu, s) {
		if (n-- == 0)
			break;
		cpuset_add(&set, cpu);
	}
	return set;
}

/* Every property, from the ledger's public answers and what the node was told. */
static void check_cpu(const struct node *n, const struct view *v, unsigned cpu,
		      const struct cpuset *shared, const struct cpuset *free)
{
	bool in_pool = cpuset_has(&n->l.now.sets.guaranteed, cpu);
	bool online = cpuset_has(&n->topology->online, cpu);
	const struct assignment *owner = owner_of(&n->l, cpu);
	bool passing = owner && owner->kind == CONTAINER_INIT;

	if (!v->pods[cpu]) {
		CHECK(!owner);
		CHECK(cpuset_has(free, cpu) == (in_pool && online)); /* never lost */
		return;
	}
	CHECK(v->pods[cpu] == 1);	 /* never two owners */
	CHECK(v->lasting[cpu] <= 1);	 /* also not within a pod, init containers apart */
	CHECK(in_pool);			 /* never leaked */
	CHECK(!cpuset_has(shared, cpu)); /* never exclusive and shared */
	CHECK(!cpuset_has(free, cpu));
	CHECK(owner && cpuset_has(&owner->cpus, cpu));
	CHECK(!v->lasting[cpu] || !passing);
}

static void check_node(struct node *n)
{
	struct cpuset shared, reserved, free;
	struct err err = { 0 };
	struct view view;
	size_t held = 0;

	view_fill(&view, n);
	CHECK_OK(ledger_check(&n->l, &err));
	(void)ledger_cpus(&n->l, POOL_SHARED, &shared);
	(void)ledger_cpus(&n->l, POOL_MANAGEMENT, &reserved);
	ledger_free(&n->l, &free);
	for (unsigned cpu = 0; cpu < machine_size(&n->machine); cpu++)
		check_cpu(n, &view, cpu, &shared, &free);
	CHECK(!cpuset_intersects(&reserved, &n->l.now.sets.held));
	for (unsigned p = 0; p < MOST_PODS; p++) {
		for (unsigned c = 0; c < MOST_CONTAINERS; c++) {
			const struct assignment *a =
				ledger_find(&n->l, str_from(uids[p]), str_from(names[c]));

			CHECK((a != NULL) == n->told[p][c].is_held);
			CHECK(!a || cpuset_eq(&a->cpus, &n->told[p][c].cpus));
			held += a != NULL;
		}
	}
	CHECK_UINT(n->l.n, held);
	CHECK_STR(n->disk, encode(&n->l, &n->scratch));
}

static struct ledger_request request_for(struct node *n, unsigned p, unsigned c)
{
	struct ledger_request r = {
		.pod_uid = str_from(uids[p]),
		.pod_namespace = STR("default"),
		.pod_name = str_from(uids[p]),
		.container = str_from(names[c]),
		.demand = { container_kinds[c], !prop_one_in(n->p, 10),
			    (int64_t)prop_between(n->p, 1, prop_one_in(n->p, 4) ? 40 : 6) * 1000 },
	};

	if (prop_one_in(n->p, 8))
		r.demand.cpu_milli += 500;
	if (n->l.now.config.options.full_pcpus_only && !prop_one_in(n->p, 4))
		r.demand.cpu_milli = r.demand.cpu_milli / 1000 * 1000 * n->l.now.sets.group;
	if (prop_one_in(n->p, 3)) {
		r.affinity.has_mask = true;
		r.affinity.mask = prop_next(n->p) & topology_numa_mask(n->topology, false);
		r.affinity.has_mask = r.affinity.mask != 0;
	}
	return r;
}

static void check_grant(struct node *n, const struct ledger_request *request,
			const struct ledger_grant *grant, const struct cpuset *allowed)
{
	struct cpuset cores;

	CHECK(cpuset_is_subset(&grant->cpus, allowed));
	CHECK_UINT(cpuset_count(&grant->cpus), demand_cpus(&request->demand));
	if (!n->l.now.config.options.full_pcpus_only)
		return;
	topology_whole(n->topology, TOPOLOGY_CORE, &grant->cpus, &cores);
	CHECK(cpuset_eq(&cores, &grant->cpus));
}

static void on_allocate(struct node *n, unsigned p, unsigned c)
{
	struct ledger_request request = request_for(n, p, c);
	struct told *t = &n->told[p][c];
	struct cpuset allowed, reusable;
	struct ledger_grant grant;
	struct err err = { 0 };
	unsigned wanted = demand_cpus(&request.demand);
	int r;

	ledger_free(&n->l, &allowed);
	ledger_reusable(&n->l, request.pod_uid, &reusable);
	cpuset_intersect(&reusable, &n->topology->online);
	cpuset_union(&allowed, &reusable);
	r = ledger_allocate(&n->l, &request, &grant, &err);
	if (t->is_held) { /* a restart */
		CHECK_OK(r);
		CHECK(grant.pool == POOL_GUARANTEED && !grant.is_new);
		CHECK(cpuset_eq(&grant.cpus, &t->cpus));
	} else if (!wanted) {
		CHECK_OK(r);
		CHECK(grant.pool == POOL_SHARED);
	} else if (r < 0) {
		n_refusals++;
		CHECK(err.msg[0] != '\0');
		CHECK(n->disk_is_full || n->l.now.config.options.full_pcpus_only ||
		      wanted > cpuset_count(&allowed));
	} else {
		n_grants++;
		CHECK(!n->disk_is_full);
		check_grant(n, &request, &grant, &allowed);
		*t = (struct told){ true, grant.cpus, container_kinds[c] };
	}
}

static void on_release(struct node *n, unsigned p, unsigned c)
{
	bool whole_pod = !prop_one_in(n->p, 4);
	struct err err = { 0 };
	int r = whole_pod ? ledger_release_pod(&n->l, str_from(uids[p]), &err) :
			    ledger_release_container(&n->l, str_from(uids[p]), str_from(names[c]),
						     &err);

	if (n->disk_is_full)
		return; /* nothing may have changed, also when there was nothing to do */
	CHECK_OK(r);
	for (unsigned i = 0; i < MOST_CONTAINERS; i++)
		if (whole_pod || i == c)
			n->told[p][i].is_held = false;
}

static void on_resize(struct node *n)
{
	struct pool_config c = draw_config(n);
	struct ledger_resize_plan plan;
	struct cpuset shared;
	struct err err = { 0 };
	int r;

	if (pool_config_check(&c, n->topology, &err) < 0)
		return;
	CHECK_OK(ledger_plan_resize(&n->l, &c, &n->scratch, &plan, &err));
	/* Shared containers are moved first: never onto an exclusive CPU. */
	CHECK(!cpuset_intersects(&plan.shared, &n->l.now.sets.held) || plan.n_conflicts);
	r = ledger_resize(&n->l, &c, &err);
	if (plan.n_conflicts) {
		CHECK_INT(r, -EBUSY);
		n_resize_refusals++;
		for (size_t i = 0; i < plan.n_conflicts; i++)
			CHECK(!cpuset_is_empty(&plan.conflicts[i].cpus));
	} else if (!n->disk_is_full) {
		CHECK_OK(r);
		n_resizes++;
		(void)ledger_cpus(&n->l, POOL_SHARED, &shared);
		CHECK(cpuset_eq(&shared, &plan.shared));
	}
}

/* Some CPUs go offline, or all are online again. CPU 0 always stays online. */
static void on_hotplug(struct node *n)
{
	struct machine m = n->machine;
	struct topology *t = arena_new(&n->a, struct topology);
	struct err err = { 0 };

	memset(&m.offline, 0, sizeof(m.offline));
	if (!prop_one_in(n->p, 3))
		for (uint64_t k = prop_below(n->p, 5); k > 0; k--)
			cpuset_add(&m.offline,
				   (unsigned)prop_between(n->p, 1, machine_size(&m) - 1));
	machine_build(&m, &n->a, t);
	if (ledger_hotplug(&n->l, t, &err) < 0) {
		CHECK(n->disk_is_full);
		return;
	}
	n->topology = t;
	n->machine = m;
}

static void on_restart(struct node *n)
{
	struct ledger again;
	struct ledger_state s;
	struct err err = { 0 };

	CHECK_OK(ledger_state_decode(n->disk, STR("state"), &n->scratch, &s, &err));
	CHECK_OK(ledger_init(&again, n->topology, s.config, &err));
	CHECK_OK(ledger_load(&again, s.entries, s.n_entries, &err));
	CHECK_STR(encode(&again, &n->scratch), n->disk);
	again.persist = write_to_disk;
	again.persist_data = n;
	ledger_done(&n->l);
	n->l = again;
}

/* We were away; some pods went meanwhile, others came and run on whatever they found. */
static void on_synchronize(struct node *n)
{
	struct ledger_live live[MOST_PODS];
	bool is_live[MOST_PODS] = { false };
	struct err err = { 0 };
	size_t k = 0;

	for (unsigned p = 0; p < MOST_PODS; p++) {
		unsigned c = (unsigned)prop_below(n->p, MOST_CONTAINERS);

		if (prop_one_in(n->p, 2))
			continue;
		is_live[p] = true;
		live[k] = (struct ledger_live){ .request = request_for(n, p, c) };
		live[k].request.affinity = (struct numa_hint){ 0 };
		live[k].current_known = !prop_one_in(n->p, 3);
		ledger_free(&n->l, &live[k].current);
		live[k].current = lowest(&live[k].current, demand_cpus(&live[k].request.demand));
		k++;
	}
	if (ledger_synchronize(&n->l, live, k, NULL, 0, &err) < 0) {
		CHECK(n->disk_is_full);
		return;
	}
	for (unsigned p = 0; p < MOST_PODS; p++)
		for (unsigned c = 0; c < MOST_CONTAINERS && !is_live[p]; c++)
			n->told[p][c].is_held = false;
	for (size_t i = 0; i < k; i++) {
		unsigned p = 0, c = 0;

		while (!str_eq(live[i].request.pod_uid, str_from(uids[p])))
			p++;
		while (!str_eq(live[i].request.container, str_from(names[c])))
			c++;
		if (live[i].grant.pool != POOL_GUARANTEED)
			continue;
		CHECK(!n->told[p][c].is_held ||
		      cpuset_eq(&n->told[p][c].cpus, &live[i].grant.cpus));
		n->told[p][c] = (struct told){ true, live[i].grant.cpus, container_kinds[c] };
		CHECK(live[i].push == (!live[i].current_known ||
				       !cpuset_eq(&live[i].current, &live[i].grant.cpus)));
	}
}

/* Several changes that are rolled back. */
static void on_rollback(struct node *n)
{
	struct str before = encode(&n->l, &n->scratch);
	struct ledger_grant grant;

	ledger_begin(&n->l);
	for (uint64_t k = prop_below(n->p, 4); k > 0; k--) {
		unsigned p = (unsigned)prop_below(n->p, MOST_PODS);
		struct ledger_request r =
			request_for(n, p, (unsigned)prop_below(n->p, MOST_CONTAINERS));

		(void)ledger_allocate(&n->l, &r, &grant, NULL);
		(void)ledger_release_pod(&n->l, str_from(uids[prop_below(n->p, MOST_PODS)]), NULL);
	}
	ledger_rollback(&n->l);
	CHECK_STR(encode(&n->l, &n->scratch), before);
}

static void one_event(struct node *n)
{
	unsigned p = (unsigned)prop_below(n->p, MOST_PODS);
	unsigned c = (unsigned)prop_below(n->p, MOST_CONTAINERS);

	arena_reset(&n->scratch);
	n->disk_is_full = prop_one_in(n->p, 20);
	n_failed_writes += n->disk_is_full;
	switch (prop_below(n->p, 24)) {
	case 0:
		on_resize(n);
		break;
	case 1:
		on_hotplug(n);
		break;
	case 2:
		on_restart(n);
		break;
	case 3:
		on_synchronize(n);
		break;
	case 4:
		on_rollback(n);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		on_release(n, p, c);
		break;
	default:
		on_allocate(n, p, c);
		break;
	}
	check_node(n);
	n_events++;
}

static void node_done(struct node *n)
{
	ledger_done(&n->l);
	arena_done(&n->a);
	arena_done(&n->scratch);
	arena_done(&n->disk_arena[0]);
	arena_done(&n->disk_arena[1]);
}

/* False: the configuration drawn cannot be, say because no CPU is shared. */
static bool node_start(struct node *n)
{
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&n->a, 0);
	arena_init(&n->scratch, 0);
	arena_init(&n->disk_arena[0], 0);
	arena_init(&n->disk_arena[1], 0);
	n->machine = machine_draw(n->p);
	n->topology = arena_new(&n->a, struct topology);
	machine_build(&n->machine, &n->a, n->topology);
	c = draw_config(n);
	if (ledger_init(&n->l, n->topology, &c, &err) < 0)
		return false;
	n->l.persist = write_to_disk;
	n->l.persist_data = n;
	CHECK_OK(write_to_disk(&n->l, n, &err));
	return true;
}

TEST(no_cpu_has_two_owners_and_none_is_lost)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(node_done) struct node n = { .p = &p };

		if (!node_start(&n))
			continue;
		for (int i = 0; i < EVENTS; i++)
			one_event(&n);
	}
	TEST_NOTE("%zu events: %zu grants, %zu refusals, %zu resizes, %zu resizes refused, %zu "
		  "failed "
		  "writes",
		  n_events, n_grants, n_refusals, n_resizes, n_resize_refusals, n_failed_writes);
	CHECK(n_events > p.runs); /* most machines drawn are possible */
}
