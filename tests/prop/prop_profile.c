/* Random machines: what is suggested is sound there, and expressions take only what is free. */

#include <stdio.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "manifests_text.h"
#include "profile/layout.h"
#include "profile/suggest.h"
#include "profile/topology_expr.h"
#include "prop.h"

static void random_machine(struct prop *r, struct arena *a, struct topology *ret)
{
	struct err err = { 0 };
	char text[128];

	(void)snprintf(text, sizeof(text), "pack:%u numa:%u core:%u pu:%u",
		       (unsigned)prop_between(r, 1, 2), (unsigned)prop_between(r, 1, 3),
		       (unsigned)prop_between(r, 1, 12), (unsigned)prop_between(r, 1, 3));
	CHECK_OK(topology_parse_synthetic(str_from(text), a, ret, &err));
}

/* The suggestion says that a machine with one core needs --allow-split-cores. single-numa-node
 * assigns whole cores only. */
static struct str profile_text(const struct suggestion *s, bool splits_cores, struct arena *a)
{
	struct str shared = cpuset_format(&s->shared, a);

	return str_printf(a,
			  "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"
			  "metadata: {name: p}\nspec:\n  cpu:\n    reserved: \"" PRI_STR "\"\n"
			  "    isolated: \"" PRI_STR "\"\n%s" PRI_STR "%s"
			  "  numa: {topologyPolicy: %s}\n"
			  "  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n",
			  FMT_STR(cpuset_format(&s->reserved, a)),
			  FMT_STR(cpuset_format(&s->isolated, a)), shared.n ? "    shared: \"" : "",
			  FMT_STR(shared), shared.n ? "\"\n" : "",
			  splits_cores ? "best-effort" : "single-numa-node");
}

TEST(a_suggested_profile_passes_all_checks_on_its_machine)
{
	unsigned made = 0;
	struct prop r;

	PROP_LOOP (&r) {
		CLEANUP(arena_done) struct arena a;
		struct suggest_options o = { (unsigned)prop_between(&r, 1, 16),
					     (unsigned)prop_below(&r, 9), prop_one_in(&r, 2) };
		struct layout_options options = { .plain_hosts = true, .n_topologies = 1 };
		struct pool_topology machine = { 0 };
		struct suggestion s;
		struct problem_list p;
		struct manifests ms;
		struct layout layout;
		struct topology t;
		bool splits_cores;

		arena_init(&a, 0);
		random_machine(&r, &a, &t);
		if (suggest(&t, &o, &a, &s, NULL) < 0)
			continue;
		made++;
		splits_cores = t.level[TOPOLOGY_CORE].n == 1;
		options.allow_split_cores = splits_cores;
		machine.topology = &t;
		options.topologies = &machine;
		manifests_init(&ms, &a);
		problem_list_init(&p, &a);
		manifests_from_text(&ms, profile_text(&s, splits_cores, &a), STR("p"), &p);
		layout_resolve(&ms, &options, &a, &layout, &p);
		CHECK_STR(p.n_errors ? problem_list_format(&p, &a) : STR(""), "");
		CHECK(cpuset_count(&s.reserved) >= o.reserved);
		CHECK(cpuset_count(&s.shared) >= o.shared);
		CHECK(cpuset_has(&s.reserved, cpuset_first(&t.online)));
	}
	CHECK(made > 0 || r.runs == 0);
}

TEST(an_expression_takes_whole_free_cores)
{
	static const char *const exprs[] = { "10%",
					     "50%",
					     "first 1 core of each numa",
					     "last 1 core of each socket",
					     "rest",
					     "first 2 cores and 10%" };
	struct prop r;

	PROP_LOOP (&r) {
		CLEANUP(arena_done) struct arena a;
		struct cpuset from, got, split;
		struct topology_expr e;
		struct err err = { 0 };
		struct topology t;

		arena_init(&a, 0);
		random_machine(&r, &a, &t);
		from = t.online;
		CPUSET_FOREACH (cpu, &t.online)
			if (prop_one_in(&r, 6))
				cpuset_del(&from, cpu);
		CHECK_OK(topology_expr_parse(str_from(prop_pick(&r, exprs)), &a, &e, &err));
		if (topology_expr_resolve(&e, &t, &from, &got, &err) < 0)
			continue;
		CHECK(cpuset_is_subset(&got, &from));
		if (topology_expr_has_rest(&e)) {
			CHECK(cpuset_eq(&got, &from));
			continue;
		}
		topology_split(&t, TOPOLOGY_CORE, &got, &split);
		CHECK(cpuset_is_empty(&split));
	}
}
