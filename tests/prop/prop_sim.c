/* A simulated cluster's life: whatever arrives and leaves in whatever order, no node has more than
 * it can allocate, no CPU has two owners, the counts add up, the same seed gives the same result,
 * and a cluster that everything left is empty. */

#include <string.h>

#include "admission/admission_state.h"
#include "base/arena.h"
#include "cpu/topology_read.h"
#include "prop.h"
#include "sim/sim_machine.h"
#include "sim/sim_report.h"
#include "sim/sim_workload.h"

#define MOST_SHAPES 3

/* A cluster, and what it was drawn from. */
struct world {
	struct arena a;
	struct topology t;
	struct sim_machine machines[MOST_SHAPES];
	size_t n_machines;
	struct state_manifests state;
	struct sim sim;
	struct sim_mix mix;
	uint32_t classes[SIM_WORKLOAD_PODS_MAX];
};

static const char *const topologies[] = { "pack:1 core:8 pu:2", "pack:2 numa:1 core:6 pu:2",
					  "pack:1 numa:4 core:5 pu:1" };

static yyjson_val *parse(struct world *w, const char *json)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(json), STR("object"), NULL, &w->a, &doc, &err));
	return doc.root;
}

static struct pool_config draw_pools(uint64_t *r)
{
	struct pool_config c;

	pool_config_init(&c);
	cpuset_add_range(&c.reserved, 0, 1);
	c.is_classic = random_below(r, 2);
	if (!c.is_classic) {
		cpuset_add_range(&c.shared, 2, 5);
		cpuset_add_range(&c.guaranteed, 6, 15);
		c.fold_rest = true;
	}
	c.topology.policy = (enum hint_policy)random_below(r, 4);
	c.topology.scope = random_below(r, 2) ? HINT_SCOPE_POD : HINT_SCOPE_CONTAINER;
	c.options.full_pcpus_only = random_below(r, 2);
	return c;
}

static void draw_nodes(struct world *w, uint64_t *r, yyjson_val *nodes[MOST_SHAPES])
{
	struct err err = { 0 };
	const size_t n = 1 + random_below(r, MOST_SHAPES);

	for (size_t i = 0; i < n; i++) {
		const struct sim_node_amounts amounts = { INT64_C(1) << (33 + random_below(r, 4)),
							  5 + (int64_t)random_below(r, 40) };
		struct pool_config pools = draw_pools(r);

		CHECK_OK(sim_machine_init(&w->machines[i], &w->t,
					  random_below(r, 4) ? &pools : NULL, STR("p"), &err));
		w->n_machines++;
		nodes[i] = sim_node_make(STR("pool"), &w->machines[i], &amounts, &w->a);
		CHECK_OK(state_manifests_add(&w->state, nodes[i], &err));
	}
	state_manifests_seal(&w->state);
}

static const char *const namespaces[] = { "platform-network",
					  "platform-ptp",
					  "platform-devices",
					  "platform-monitoring",
					  "platform-logging",
					  "platform-operators",
					  "ran",
					  "core",
					  "batch" };

static void begin(struct world *w, uint64_t seed)
{
	yyjson_val *nodes[MOST_SHAPES];
	struct err err = { 0 };
	uint64_t random = seed, *r = &random;

	*w = (struct world){ 0 };
	arena_init(&w->a, 0);
	CHECK_OK(topology_parse_synthetic(str_from(topologies[random_below(r, 3)]), &w->a, &w->t,
					  &err));
	state_manifests_init(&w->state, &w->a);
	w->state.state.settings.pools = random_below(r, 2);
	CHECK_OK(state_manifests_add(&w->state,
				     parse(w, "{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":"
					      "\"cluster\"},\"status\":{"
					      "\"controlPlaneTopology\":\"HighlyAvailable\","
					      "\"cpuPartitioning\":\"AllNodes\"}}"),
				     &err));
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(*namespaces); i++)
		CHECK_OK(state_manifests_add(
			&w->state,
			parse(w, str_printf(&w->a,
					    "{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\","
					    "\"annotations\":{\"workload.openshift.io/allowed\":"
					    "\"management\"}}}",
					    namespaces[i])
					 .p),
			&err));
	draw_nodes(w, r, nodes);
	sim_init(&w->sim, seed, &w->a);
	sim_mix_make((enum sim_workload)random_below(r, SIM_WORKLOAD__COUNT), &w->a, &w->mix);
	for (size_t i = 0; i < w->mix.n; i++)
		CHECK_OK(sim_add_class(&w->sim, &w->state.state, w->mix.pods[i], &w->classes[i],
				       &err));
	for (size_t i = 0; i < w->n_machines; i++)
		CHECK_OK(sim_add_nodes(&w->sim, nodes[i], STR("pool"), &w->machines[i],
				       1 + random_below(r, 60), &err));
}

static void end(struct world *w)
{
	sim_done(&w->sim);
	for (size_t i = 0; i < w->n_machines; i++)
		sim_machine_done(&w->machines[i]);
	arena_done(&w->a);
}

/* No CPU twice: the assignments of a ledger are disjoint, except with a pod's own init containers,
 * which the workloads do not have. */
static void check_ledger(const struct ledger *l)
{
	const struct assignment *item;
	struct cpuset seen = { 0 };
	struct err err = { 0 };

	CHECK_OK(ledger_check(l, &err));
	LEDGER_EACH(l, i, item)
	{
		CHECK(!cpuset_intersects(&item->cpus, &seen));
		CHECK(cpuset_is_subset(&item->cpus, &l->now.sets.guaranteed));
		CHECK(!cpuset_intersects(&item->cpus, &l->now.config.reserved));
		cpuset_union(&seen, &item->cpus);
	}
}

static void check_nodes(const struct sim *s)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct sim_node *n = &s->nodes[i];

		for (size_t j = 0; j < s->resources.n; j++) {
			CHECK(n->used.of[j] >= 0);
			CHECK(n->used.of[j] <= s->shapes[n->shape].allocatable.of[j]);
		}
		CHECK_INT(n->used.of[SIM_PODS], n->n_pods);
		if (n->ledger)
			check_ledger(n->ledger);
	}
}

/* Counted anew from the pods. */
static void check_counts(const struct sim *s)
{
	size_t by_state[SIM_POD_LEFT + 1] = { 0 }, running = 0, pending = 0, refused = 0, left = 0;
	int64_t cpu = 0, used = 0;

	for (size_t i = 0; i < s->n_pods; i++) {
		by_state[s->pods[i].state]++;
		if (s->pods[i].state == SIM_POD_RUNNING)
			cpu += s->classes[s->pods[i].class].request.amounts.of[SIM_CPU];
	}
	for (size_t i = 0; i < s->n_classes; i++) {
		running += s->classes[i].n_running;
		pending += s->classes[i].n_pending;
		refused += s->classes[i].n_refused;
		left += s->classes[i].n_left;
	}
	for (size_t i = 0; i < s->n_nodes; i++)
		used += s->nodes[i].used.of[SIM_CPU];
	CHECK_UINT(running, by_state[SIM_POD_RUNNING]);
	CHECK_UINT(running, s->n_running);
	CHECK_UINT(pending, by_state[SIM_POD_PENDING]);
	CHECK_UINT(pending, s->n_pending);
	CHECK_UINT(refused, by_state[SIM_POD_REFUSED]);
	CHECK_UINT(left, by_state[SIM_POD_LEFT]);
	CHECK_INT(cpu, used);
}

/* A pod waits only while no node could take it. */
static void check_pending(const struct sim *s)
{
	for (size_t i = 0; i < s->n_classes; i++)
		for (uint32_t j = 0; s->classes[i].n_pending && j < s->n_nodes; j++)
			CHECK(!sim_fits(s, &s->classes[i], j));
}

static void live(struct world *w, uint64_t seed)
{
	struct sim *s = &w->sim;
	const unsigned n = 1 + (unsigned)(seed % 400);

	for (unsigned i = 0; i < n; i++) {
		(void)sim_arrive(s, w->classes[sim_mix_pick(&w->mix, sim_random(s, w->mix.total))]);
		if (sim_random(s, 4) == 0)
			sim_leave(s, (uint32_t)sim_random(s, s->n_pods));
	}
	sim_churn(s, n / 4);
}

TEST(nothing_exceeds_a_node_and_no_cpu_has_two_owners)
{
	struct prop r;

	PROP_LOOP (&r) {
		const uint64_t seed = prop_next(&r);
		struct world w;

		begin(&w, seed);
		live(&w, seed);
		check_nodes(&w.sim);
		check_counts(&w.sim);
		check_pending(&w.sim);
		end(&w);
	}
}

TEST(the_same_seed_gives_the_same_result)
{
	struct prop r;

	PROP_LOOP (&r) {
		const uint64_t seed = prop_next(&r);
		struct world x, y;

		begin(&x, seed);
		begin(&y, seed);
		live(&x, seed);
		live(&y, seed);
		CHECK_UINT(x.sim.n_pods, y.sim.n_pods);
		for (size_t i = 0; i < x.sim.n_pods; i++) {
			CHECK_UINT(x.sim.pods[i].node, y.sim.pods[i].node);
			CHECK_UINT(x.sim.pods[i].state, y.sim.pods[i].state);
		}
		end(&x);
		end(&y);
	}
}

TEST(a_cluster_that_everything_left_is_empty)
{
	struct prop r;

	PROP_LOOP (&r) {
		const uint64_t seed = prop_next(&r);
		struct world w;

		begin(&w, seed);
		live(&w, seed);
		for (uint32_t i = 0; i < w.sim.n_pods; i++)
			sim_leave(&w.sim, i);
		/* Pods that got a place meanwhile were passed by. */
		for (uint32_t i = 0; i < w.sim.n_pods; i++)
			sim_leave(&w.sim, i);
		for (size_t i = 0; i < w.sim.n_nodes; i++) {
			const struct sim_node *n = &w.sim.nodes[i];
			static const struct sim_amounts nothing;

			CHECK(memcmp(&n->used, &nothing, sizeof(nothing)) == 0);
			CHECK_UINT(n->n_pods, 0);
			CHECK_INT(n->scored_cpu, 0);
			CHECK_INT(n->cores, 0);
			CHECK(!n->ledger ||
			      (!n->ledger->n && cpuset_is_empty(&n->ledger->now.sets.held)));
		}
		end(&w);
	}
}
