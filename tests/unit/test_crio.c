/* What CRI-O's own files say about management containers, against our pools. */

#include <errno.h>
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
#include "pool/config.h"
#include "test.h"

#define MANAGEMENT(resources)                                                                      \
	"[crio.runtime.workloads.management]\n"                                                    \
	"activation_annotation = \"target.workload.openshift.io/management\"\n"                    \
	"annotation_prefix = \"resources.workload.openshift.io\"\n"                                \
	"resources = { " resources " }\n"

#define TYPE(name, cpus)                                                                           \
	"[crio.runtime.workloads." name "]\n"                                                      \
	"activation_annotation = \"target.workload.openshift.io/" name "\"\n"                      \
	"resources = { cpuset = \"" cpus "\" }\n"

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
		/* another type that is configured: the worst state is reported */
		{ NULL, MANAGEMENT("cpuset = \"0-1\"") TYPE("ran", "1"), NULL, CRIO_AGREES, "0-1" },
		{ NULL, MANAGEMENT("cpuset = \"0-1\"") TYPE("ran", "0"), NULL, CRIO_DIFFERS, "0" },
		{ NULL, TYPE("other", "5"), NULL, CRIO_NO_WORKLOAD, "" },
		/* a workload of another kind */
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
		struct cpuset reserved, ran;
		struct pool_config pools;
		struct err err = { 0 };
		size_t n = 0;

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		pool_config_init(&pools);
		CHECK_OK(cpuset_parse(STR("1"), &ran, &err));
		CHECK_OK(pool_config_set_type(&pools, STR("ran"), &ran, &err));
		for (size_t k = 0; k < 3; k++)
			if (all[k]) {
				names[n] = STR("x.conf");
				texts[n++] = str_from(all[k]);
			}
		CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
		CHECK_OK(workloads_parse(texts, names, n, false, &a, &workloads, &err));
		got = crio_config_compare(&workloads,
					  &(struct crio_pools){ &pools, &reserved, false });
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
	struct pool_config pools;
	const struct crio_pools with = { &pools, &reserved, false };
	struct err err = { 0 };

	arena_init(&a, 0);
	pool_config_init(&pools);
	CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
	CHECK_OK(crio_config_read("/nonexistent/crio", &with, &a, &got, &err));
	CHECK_STR(crio_state_name(got.state), "none");
	CHECK(mkdtemp(dir) != NULL);
	put(dir, "crio.conf", MANAGEMENT("cpuset = \"7\""));
	CHECK_OK(crio_config_read(dir, &with, &a, &got, &err)); /* no crio.conf.d */
	CHECK_STR(got.cpus, "7");
	(void)snprintf(command, sizeof(command), "mkdir %s/crio.conf.d", dir);
	CHECK(system(command) == 0);
	put(dir, "crio.conf.d/99-own", MANAGEMENT("cpuset = \"0-1\""));
	put(dir, "crio.conf.d/01-base", MANAGEMENT("cpuset = \"5\""));
	CHECK_OK(crio_config_read(dir, &with, &a, &got, &err));
	CHECK_STR(crio_state_name(got.state), "agrees");
	put(dir, "crio.conf.d/50-broken", "[crio\n");
	CHECK(crio_config_read(dir, &with, &a, &got, &err) < 0);
	CHECK(strstr(err.msg, "crio.conf.d/50-broken") != NULL);
	CHECK_STR(crio_state_name(got.state), "agrees"); /* untouched */
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0);
}

TEST(the_form_of_2021_counts_in_the_legacy_dialect_only)
{
	static const struct {
		const char *text;
		enum crio_state want;
	} rows[] = {
		{ "cpu_set = \"0-1\"\nlabel = \"workload.openshift.io/target=management\"\n",
		  CRIO_AGREES },
		{ "cpu_set = \"0-3\"\nlabel = \"workload.openshift.io/target=management\"\n",
		  CRIO_DIFFERS },
		{ "cpu_set = \"0-3\"\nlabel = \"workload.openshift.io/target=other\"\n",
		  CRIO_NO_WORKLOAD },
	};
	struct pool_config pools;

	pool_config_init(&pools);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct str name = STR("x.conf");
		CLEANUP(arena_done) struct arena a;
		struct workloads workloads;
		struct cpuset reserved;
		struct err err = { 0 };
		struct str text;

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
		text = str_printf(&a, "[crio.runtime.workloads.management]\n%s", rows[i].text);
		CHECK_OK(workloads_parse(&text, &name, 1, true, &a, &workloads, &err));
		CHECK_INT(crio_config_compare(&workloads,
					      &(struct crio_pools){ &pools, &reserved, true })
				  .state,
			  rows[i].want);
		CHECK_ERR(workloads_parse(&text, &name, 1, false, &a, &workloads, &err), EDOM,
			  "workloads validation: annotation shouldn't be empty for workload "
			  "\"management\"");
	}
}
