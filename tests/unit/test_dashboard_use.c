/* The use of CPUs: counters of a machine, and where those of a cluster's nodes are read. */

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/cpu_stat.h"
#include "dashboard/cpu_use.h"
#include "dashboard/use_meter.h"
#include "test.h"

TEST(counters_are_the_lines_of_single_cpus)
{
	static const struct {
		const char *stat, *want;
	} rows[] = {
		{ "cpu  9 9 9 9\ncpu0 1 2 3 4\ncpu7 5 6 7 8\nintr 5 0 0\nctxt 1\n",
		  "cpu0 1 2 3 4\ncpu7 5 6 7 8\n" },
		{ "cpu0 1\n", "cpu0 1\n" },
		{ "cpu0 1", "cpu0 1" },
		{ "cpu  9 9 9 9\n", "" },
		{ "intr 5\ncpu0 1\n", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].stat);
		CHECK_STR(cpu_stat_lines(str_from(rows[i].stat)), rows[i].want);
	}
}

TEST(use_is_the_difference_of_two_readings)
{
	CLEANUP(arena_done) struct arena a;
	struct cpu_use *u = calloc(1, sizeof(*u));

	arena_init(&a, 0);
	CHECK_STR(cpu_use_read(u,
			       STR("cpu  9 9 9 9\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 10 0 0 "
				   "0 0\nintr 5\n"),
			       &a),
		  "");
	CHECK_STR(cpu_use_read(u,
			       STR("cpu0 150 0 0 150 0 0 0 0 50 0\ncpu1 0 0 0 20 0 0 0 0\ncpu3 1 0 "
				   "0 0 0 0 0 0\ncpux 1\ncpu4\n"),
			       &a),
		  "{\"0\":50,\"1\":0,\"3\":100}");
	free(u);
}

#define POD(name, phase, ports)                                                                    \
	"{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"phase\":\"" phase                     \
	"\"},\"spec\":{\"containers\":[{\"name\":\"agent\",\"ports\":[" ports "]}]}}"
#define METRICS "{\"name\":\"metrics\",\"containerPort\":9466}"

TEST(counters_are_read_from_the_port_of_the_running_agent)
{
	static const struct {
		const char *pods, *want; /* NULL: refused */
	} rows[] = {
		{ "{\"items\":[" POD("a-1", "Running", METRICS) "]}",
		  "/api/v1/namespaces/pinfold-agent/pods/a-1:9466/proxy/cpus" },
		{ "{\"items\":[" POD("old", "Failed", METRICS) "," POD("new", "Running",
								       METRICS) "]}",
		  "/api/v1/namespaces/pinfold-agent/pods/new:9466/proxy/cpus" },
		{ "{\"items\":[" POD("a-1", "Pending", METRICS) "]}", NULL },
		{ "{\"items\":[" POD("a-1", "Running", "{\"containerPort\":1}") "]}", NULL },
		{ "{\"items\":[]}", NULL },
		{ "{}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct str path = STR("");
		struct doc doc = { 0 };
		int r;

		arena_init(&a, 0);
		TEST_ROW("%s", rows[i].pods);
		CHECK_OK(doc_parse(str_from(rows[i].pods), STR("pods"), NULL, &a, &doc, &err));
		r = use_meter_path(doc.root, &a, &path, &err);
		CHECK_INT(r, rows[i].want ? 0 : -ENOENT);
		CHECK_STR(path, rows[i].want ? rows[i].want : "");
	}
}
