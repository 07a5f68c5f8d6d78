/* What the vectors of test_vectors_hints.c do not cover: pools, reuse, limits, printing. */

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/hints.h"
#include "cpu/hints_merge.h"
#include "cpu/pick_options.h"
#include "cpu/topology_read.h"
#include "test.h"

/* Two sockets of two NUMA nodes of four CPUs: 0-3, 4-7, 8-11, 12-15. */
static struct topology four_nodes(struct arena *a)
{
	struct topology t = { 0 };
	struct err err = { 0 };

	CHECK_OK(topology_parse_synthetic(STR("pack:2 numa:2 core:4 pu:1"), a, &t, &err));
	return t;
}

/* "0+ 01-": masks as lists of nodes, + for preferred. */
static struct str print(const struct hint_list *list, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++) {
		if (i)
			strbuf_addc(&b, ' ');
		for (unsigned node = 0; node < 64; node++)
			if (list->items[i].mask >> node & 1)
				strbuf_printf(&b, "%u", node);
		strbuf_addc(&b, list->items[i].preferred ? '+' : '-');
	}
	return strbuf_str(&b);
}

TEST(cpu_hints_count_only_the_pool_when_there_is_one)
{
	static const struct {
		unsigned n_cpus;
		const char *available, *reusable, *capacity, *allocated, *want;
	} rows[] = {
		{ 2, "0-15", "", NULL, NULL,
		  "0+ 1+ 2+ 3+ 01- 02- 03- 12- 13- 23- 012- 013- 023- 123- 0123-" },
		/* with two CPUs of the pool per node, three need two nodes
		   (docs/reference/cpu-manager.md#hint-capacity) */
		{ 3, "0-1,4-5", "", "0-1,4-5", NULL, "01+" },
		{ 3, "0-1,4-5", "", NULL, NULL, "01- 012- 013- 0123-" },
		{ 2, "0-1,5", "", "0-1,4-5", NULL, "0+ 01-" },
		/* reusable CPUs must be used */
		{ 2, "0-3", "4", "0-7", NULL, "01-" },
		{ 2, "5-7", "4", "0-7", NULL, "1+ 01-" },
		/* what is held stays */
		{ 2, "0-3", "", "0-7", "4-5", "1+ 01-" },
		{ 2, "0-3", "", "0-7", "4-6", "" },
		{ 9, "0-7", "", "0-7", NULL, "" },
	};
	CLEANUP(arena_done) struct arena a;
	struct topology t;

	arena_init(&a, 0);
	t = four_nodes(&a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cpuset sets[4] = { 0 };
		const char *const texts[] = { rows[i].available, rows[i].reusable, rows[i].capacity,
					      rows[i].allocated };
		struct cpu_hint_request request = { .n_cpus = rows[i].n_cpus,
						    .available = &sets[0],
						    .reusable = &sets[1] };
		struct err err = { 0 };
		struct hint_list got;

		TEST_ROW("row %zu", i);
		for (size_t j = 0; j < 4; j++)
			CHECK_OK(cpuset_parse(str_from(texts[j]), &sets[j], &err));
		request.capacity = rows[i].capacity ? &sets[2] : NULL;
		request.allocated = rows[i].allocated ? &sets[3] : NULL;
		CHECK_OK(hints_for_cpus(&t, &request, &a, &got, &err));
		CHECK(!got.any);
		CHECK_STR(print(&got, &a), rows[i].want);
	}
}

TEST(a_request_for_no_cpus_needs_no_hint)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset none = { 0 };
	struct cpu_hint_request request = { .available = &none };
	struct err err = { 0 };
	struct hint_list got;
	struct topology t;

	arena_init(&a, 0);
	t = four_nodes(&a);
	CHECK_OK(hints_for_cpus(&t, &request, &a, &got, &err));
	CHECK(got.any);
}

TEST(too_many_nodes_are_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct hint_config config = { .policy = HINT_POLICY_BEST_EFFORT };
	struct cpu_hint_request request = { .n_cpus = 1 };
	struct err err = { 0 };
	struct hint_list got;
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(STR("numa:17 pu:1"), &a, &t, &err));
	request.available = &t.online;
	CHECK_ERR(hints_for_cpus(&t, &request, &a, &got, &err), E2BIG,
		  "no NUMA hints on machines with more than 16 NUMA nodes or node ids above 63");
	CHECK_ERR(hint_config_check(&config, &t, &err), E2BIG,
		  "unsupported on machines with more than 8 NUMA Nodes");
	CHECK_OK(hint_config_set(&config, STR("max-allowable-numa-nodes"), STR("17"), &err));
	CHECK_OK(hint_config_check(&config, &t, &err));
	config = (struct hint_config){ .policy = HINT_POLICY_NONE, .prefer_closest = true };
	CHECK_OK(hint_config_check(&config, &t, &err));
}

TEST(a_resource_that_is_held_prefers_exactly_its_nodes)
{
	static const struct {
		uint64_t nodes;
		const char *want;
	} rows[] = {
		{ 1 << 1, "1+ 01- 12- 13- 012- 013- 123- 0123-" },
		{ 1 << 0 | 1 << 2, "02+ 012- 023- 0123-" },
		{ 15, "0123+" },
		{ 1 << 5, "5+ 05- 15- 25- 35- 015- 025- 035- 125- 135- 235- 0125- 0135- 0235- "
			  "1235- 01235-" }, /* a node without CPUs */
	};
	CLEANUP(arena_done) struct arena a;
	struct hint_list got;
	struct topology t;

	arena_init(&a, 0);
	t = four_nodes(&a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("row %zu", i);
		got = hints_for_nodes(&t, rows[i].nodes, &a);
		CHECK_STR(print(&got, &a), rows[i].want);
	}
	CHECK(hints_for_nodes(&t, 0, &a).any);
}

TEST(policy_options_are_checked)
{
	static const char *const pairs[][2] = {
		{ "full-pcpus-only", "distribute-cpus-across-cores" },
		{ "distribute-cpus-across-numa", "distribute-cpus-across-cores" },
		{ "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores" },
		{ "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa" },
	};
	CLEANUP(arena_done) struct arena a;
	struct pick_options o;
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		o = (struct pick_options){ 0 };
		for (int j = 0; j < 2; j++)
			CHECK_OK(pick_options_set(&o, str_from(pairs[i][j]), STR("T"), &err));
		CHECK_ERR(pick_options_check(&o, NULL, &err), EINVAL,
			  str_cstr(&a, str_printf(&a,
						  "static policy options %s and %s can not be "
						  "used at the same time",
						  pairs[i][0], pairs[i][1])));
	}
	o = (struct pick_options){ .align_by_socket = true };
	CHECK_OK(pick_options_set(&o, STR("strict-cpu-reservation"), STR("1"), &err));
	CHECK(o.strict_cpu_reservation);
	t = four_nodes(&a);
	CHECK_OK(pick_options_check(&o, &t, &err));
	CHECK_OK(topology_parse_synthetic(STR("pack:2 core:1 pu:1"), &a, &t, &err));
	CHECK_ERR(pick_options_check(&o, &t, &err), EINVAL,
		  "Align by socket is not compatible with hardware where number of sockets are "
		  "more than number of NUMA");
}
