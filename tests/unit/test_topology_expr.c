#include "profile/topology_expr.h"

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology_read.h"
#include "test.h"

/* Two NUMA nodes of four cores with two threads each: cores are 0-1, 2-3, ... 14-15. */
#define MACHINE STR("numa:2 core:4 pu:2")

TEST(expressions_name_the_cpus_of_a_machine)
{
	static const struct {
		const char *expr, *from, *want;
	} rows[] = {
		{ "first 1 core of each numa", "0-15", "0-1,8-9" },
		{ "first 2 cores of each numa", "0-15", "0-3,8-11" },
		{ "last 1 core of each numa", "0-15", "6-7,14-15" },
		{ "first 1 core", "0-15", "0-1" },
		{ "1 core", "0-15", "0-1" },
		{ "last 2 cores", "0-15", "12-15" },
		{ "first 3 cpus", "0-15", "0-2" },
		{ "last 1 thread of numa 0", "0-15", "7" },
		{ "all of numa 1", "0-15", "8-15" },
		{ "all of each socket", "0-15", "0-15" },
		{ "10%", "0-15", "0-1" },     /* 1.6 CPUs, rounded up to a core */
		{ "25%", "0-15", "0-1,8-9" }, /* evenly from the nodes */
		{ "50% of each numa", "0-15", "0-3,8-11" },
		{ "20% of numa 1", "0-15", "8-9" },
		{ "100%", "0-15", "0-15" },
		{ "rest", "4-9", "4-9" },
		{ "first 1 core of numa 0 and 15", "0-15", "0-1,15" },
		{ "3,5 and rest", "0-15", "0-15" },
		{ "  first   1\tcore  ", "0-15", "0-1" },
		{ "first 1 core", "1-15", "2-3" }, /* core 0 is not free as a whole */
		{ "first 1 core and first 1 core", "0-15", "0-3" },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(MACHINE, &a, &t, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topology_expr e;
		struct cpuset from, got;

		TEST_ROW("%s", rows[i].expr);
		CHECK_OK(cpuset_parse(str_from(rows[i].from), &from, &err));
		CHECK_OK(topology_expr_parse(str_from(rows[i].expr), &a, &e, &err));
		CHECK_OK(topology_expr_resolve(&e, &t, &from, &got, &err));
		CHECK_STR(cpuset_format(&got, &a), rows[i].want);
	}
}

TEST(invalid_expressions_are_refused_with_a_reason)
{
	static const struct {
		const char *expr, *sentence;
	} rows[] = {
		{ "", "the text ends where a CPU list, first, last, all, rest or a percentage is "
		      "expected" },
		{ "first", "the text ends where a number of cores or cpus is expected" },
		{ "first two cores", "\"two\" where a number of cores or cpus is expected" },
		{ "first 2", "the text ends where cores or cpus is expected" },
		{ "first 2 sockets", "\"sockets\" where cores or cpus is expected" },
		{ "first 0 cores", "the number must be at least 1" },
		{ "first 2 cores of", "the text ends where numa, socket, die or l3 is expected" },
		{ "first 2 cores of each",
		  "the text ends where numa, socket, die or l3 is expected" },
		{ "first 2 cores of each core",
		  "\"core\" where numa, socket, die or l3 is expected" },
		{ "all of numa", "the text ends where a number of a node, socket, die or cache is "
				 "expected" },
		{ "0%", "\"0%\" is not a percentage from 1% to 100%" },
		{ "101%", "\"101%\" is not a percentage from 1% to 100%" },
		{ "rest of numa 0", "\"of\" is not expected here" },
		{ "first 1 core,", "\"core,\" where cores or cpus is expected" },
		{ "1-0 and rest", "bad range \"1-0\": 1 is above 0" },
		{ "rest and",
		  "the text ends where a CPU list, first, last, all, rest or a percentage "
		  "is expected" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topology_expr e;
		struct err err = { 0 };

		TEST_ROW("\"%s\"", rows[i].expr);
		CHECK_ERR(topology_expr_parse(str_from(rows[i].expr), &a, &e, &err), EINVAL,
			  rows[i].sentence);
	}
}

TEST(an_expression_that_needs_more_cpus_than_the_machine_has_is_refused)
{
	static const struct {
		const char *expr, *sentence;
	} rows[] = {
		{ "first 5 cores of each numa",
		  "\"first 5 cores of each numa\": not enough free CPUs in numa 0" },
		{ "17 cpus", "\"17 cpus\": not enough free CPUs on this machine" },
		{ "all of numa 7", "\"all of numa 7\": this machine has no numa 7" },
		{ "first 8 cores and 20%", "\"20%\": not enough free CPUs on this machine" },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(MACHINE, &a, &t, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topology_expr e;
		struct cpuset got;

		TEST_ROW("%s", rows[i].expr);
		CHECK_OK(topology_expr_parse(str_from(rows[i].expr), &a, &e, &err));
		CHECK_ERR(topology_expr_resolve(&e, &t, &t.online, &got, &err), ERANGE,
			  rows[i].sentence);
	}
}
