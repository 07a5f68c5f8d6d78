/* What CRI-O's own files say about management containers, against our pools. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "pin/crio.h"
#include "pin/workload.h"
#include "test.h"

#define MANAGEMENT(resources)                                                                      \
	"[crio.runtime.workloads.management]\n"                                                    \
	"activation_annotation = \"target.workload.openshift.io/management\"\n"                    \
	"annotation_prefix = \"resources.workload.openshift.io\"\n"                                \
	"resources = { " resources " }\n"

TEST(drop_in_is_compared_with_the_management_cpus)
{
	static const struct {
		const char *base, *drop_in, *second;
		enum crio_state want;
		const char *cpus;
	} rows[] = {
		{ NULL, NULL, NULL, CRIO_NO_WORKLOAD, "" },
		{ "[crio]\n", MANAGEMENT("cpushares = 0, cpuset = \"0-1\""), NULL, CRIO_AGREES,
		  "0-1" },
		{ NULL, MANAGEMENT("cpuset = \"1,0\""), NULL, CRIO_AGREES, "1,0" },
		{ NULL, MANAGEMENT("cpuset = \"0-3\""), NULL, CRIO_DIFFERS, "0-3" },
		{ NULL, MANAGEMENT("cpushares = 10"), NULL, CRIO_NO_WORKLOAD, "" },
		/* the later file wins, altogether */
		{ NULL, MANAGEMENT("cpuset = \"0-1\""), MANAGEMENT("cpuset = \"2\""), CRIO_DIFFERS,
		  "2" },
		{ "[crio.runtime]\ncgroup_manager = \"cgroupfs\"\n", MANAGEMENT("cpuset = \"0-1\""),
		  NULL, CRIO_CANNOT_START, "0-1" },
		{ "[crio.runtime]\ncgroup_manager = \"cgroupfs\"\n",
		  "[crio.runtime]\ncgroup_manager = \"systemd\"\n" MANAGEMENT("cpuset = \"0-1\""),
		  NULL, CRIO_AGREES, "0-1" },
		/* a workload of another type */
		{ NULL,
		  "[crio.runtime.workloads.x]\nactivation_annotation = \"x\"\n"
		  "annotation_prefix = \"y\"\nresources = { cpuset = \"5\" }\n",
		  NULL, CRIO_NO_WORKLOAD, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct str texts[3], names[3];
		const char *const all[] = { rows[i].base, rows[i].drop_in, rows[i].second };
		struct workloads workloads;
		struct crio_config got;
		struct cpuset reserved;
		struct err err = { 0 };
		size_t n = 0;

		arena_init(&a, 0);
		for (size_t k = 0; k < 3; k++)
			if (all[k]) {
				names[n] = STR("x.conf");
				texts[n++] = str_from(all[k]);
			}
		CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
		CHECK_OK(workloads_parse(texts, names, n, &a, &workloads, &err));
		got = crio_config_compare(&workloads, &reserved);
		CHECK_STR(crio_state_name(got.state), crio_state_name(rows[i].want));
		CHECK_STR(got.cpus, rows[i].cpus);
	}
}

static void put(const char *dir, const char *name, const char *text)
{
	struct err err = { 0 };
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_OK(file_create_at(AT_FDCWD, path, str_from(text), 0644, &err));
}

TEST(files_are_read_in_the_order_of_crio_and_errors_name_the_file)
{
	CLEANUP(arena_done) struct arena a;
	char dir[] = "/tmp/crio-test-XXXXXX", command[128];
	struct crio_config got;
	struct cpuset reserved;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
	CHECK_OK(crio_config_read("/nonexistent/crio", &reserved, &a, &got, &err));
	CHECK_STR(crio_state_name(got.state), "none");
	CHECK(mkdtemp(dir) != NULL);
	put(dir, "crio.conf", MANAGEMENT("cpuset = \"7\""));
	CHECK_OK(crio_config_read(dir, &reserved, &a, &got, &err)); /* no crio.conf.d */
	CHECK_STR(got.cpus, "7");
	(void)snprintf(command, sizeof(command), "mkdir %s/crio.conf.d", dir);
	CHECK(system(command) == 0);
	put(dir, "crio.conf.d/99-own", MANAGEMENT("cpuset = \"0-1\""));
	put(dir, "crio.conf.d/01-base", MANAGEMENT("cpuset = \"5\""));
	CHECK_OK(crio_config_read(dir, &reserved, &a, &got, &err));
	CHECK_STR(crio_state_name(got.state), "agrees");
	put(dir, "crio.conf.d/50-broken", "[crio\n");
	CHECK(crio_config_read(dir, &reserved, &a, &got, &err) < 0);
	CHECK(strstr(err.msg, "crio.conf.d/50-broken") != NULL);
	CHECK_STR(crio_state_name(got.state), "agrees"); /* untouched */
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0);
}
