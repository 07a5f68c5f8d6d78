/* The OCI stage precreate: a configuration in, the same with CPUs out. */

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "oci/precreate.h"
#include "test.h"

static struct doc parse(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(text), STR("config"), NULL, a, &doc, &err));
	return doc;
}

#define LIBPOD "9971054bedc840570b91b1701008e4df01b398c851756656fcf2f078828ba1b3"

TEST(id_and_cgroup_come_from_the_cgroups_path)
{
	static const struct {
		const char *path, *id, *cgroup;
	} rows[] = {
		/* podman 4.3, with either cgroup manager */
		{ "machine.slice:libpod:" LIBPOD, LIBPOD,
		  "/machine.slice/libpod-" LIBPOD ".scope" },
		{ "/libpod_parent/libpod-" LIBPOD, LIBPOD, "/libpod_parent/libpod-" LIBPOD },
		{ "/a.slice/libpod-payload-0a", "0a", "/a.slice/libpod-payload-0a" },
		/* other runtimes */
		{ "kubepods-burstable-podu.slice:crio:0a", "0a",
		  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice/"
		  "crio-0a.scope" },
		{ "kubepods-podu.slice:cri-containerd:0a", "0a",
		  "/kubepods.slice/kubepods-podu.slice/cri-containerd-0a.scope" },
		{ "/kubepods/podu/crio-0a", "0a", "/kubepods/podu/crio-0a" },
		{ "/kubepods/podu/0a", "0a", "/kubepods/podu/0a" },
		{ "/web/", "web", "/web/" },
		{ "web", "web", "/web" },
		/* no id */
		{ "", "", "" },
		{ "/", "", "" },
		{ "/a/libpod-", "", "/a/libpod-" },
		{ "/a/x y", "", "/a/x y" },
		{ "/a/../b", "b", "" },
		{ "machine.slice:libpod", "", "" },
		{ "machine.slice:libpod:", "", "" },
		{ "machine.slice:libpod:a:b", "", "/machine.slice/libpod-a.scope" },
		{ "machine.slice:libpod:a/b", "", "/machine.slice/libpod-a/b.scope" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc config =
			parse(str_cstr(&a, str_printf(&a, "{\"linux\":{\"cgroupsPath\":\"%s\"}}",
						      rows[i].path)),
			      &a);

		TEST_ROW("%s", rows[i].path);
		CHECK_STR(precreate_id(&config), rows[i].id);
		CHECK_STR(precreate_cgroup(&config, &a), rows[i].cgroup);
	}
}

TEST(an_invalid_configuration_is_refused)
{
	static const struct {
		const char *config, *sentence; /* NULL: it is one */
	} rows[] = {
		{ "{}", NULL },
		{ "{\"linux\":null,\"annotations\":null}", NULL },
		{ "{\"linux\":{\"resources\":{\"cpu\":{\"quota\":-1,\"shares\":0}}}}", NULL },
		{ "[]", "config:1:1: want an object, not a list" },
		{ "null", "config:1:1: want an object, not null" },
		{ "{\"linux\":[]}", "config:1:2: /linux: want an object, not a list" },
		{ "{\"linux\":{\"resources\":{\"cpu\":1}}}",
		  "config:1:30: /linux/resources/cpu: want an object, not a number" },
		{ "{\"linux\":{\"cgroupsPath\":1}}",
		  "config:1:25: /linux/cgroupsPath: want a string, not a number" },
		{ "{\"linux\":{\"resources\":{\"cpu\":{\"cpus\":2}}}}",
		  "config:1:38: /linux/resources/cpu/cpus: want a string, not a number" },
		{ "{\"linux\":{\"resources\":{\"cpu\":{\"quota\":1.5}}}}",
		  "config:1:39: /linux/resources/cpu/quota: want a whole number, not a number" },
		{ "{\"linux\":{\"resources\":{\"cpu\":{\"shares\":-1}}}}",
		  "config:1:40: /linux/resources/cpu/shares: not below 0" },
		{ "{\"linux\":{\"resources\":{\"memory\":{\"limit\":\"1g\"}}}}",
		  "config:1:42: /linux/resources/memory/limit: want a whole number, not a string" },
		{ "{\"annotations\":{\"a\":1}}",
		  "config:1:21: annotation \"a\": want a string, not a number" },
		{ "{\"linux\":{},\"linux\":{\"cgroupsPath\":\"/x\"}}",
		  "config:1:13: key \"linux\" is given twice" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc config = parse(rows[i].config, &a);
		struct err err = { 0 };

		TEST_ROW("%s", rows[i].config);
		if (rows[i].sentence)
			CHECK_ERR(precreate_check(&config, &a, &err), EINVAL, rows[i].sentence);
		else
			CHECK_OK(precreate_check(&config, &a, &err));
	}
}

#define OWN "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"4-5\",\"quotaUs\":-1}"
#define SHARED "{\"pool\":\"shared\",\"exclusive\":false,\"cpus\":\"2-3\"}"
#define MANAGED                                                                                    \
	"{\"pool\":\"reserved\",\"exclusive\":false,\"cpus\":\"0-1\",\"shares\":200,"              \
	"\"quotaUs\":50000,\"periodUs\":100000}"
#define CPU(inside) "{\"linux\":{\"resources\":{\"cpu\":{" inside "}}}}"

TEST(adjusting_changes_cpu_settings_only)
{
	static const struct {
		const char *config, *response, *want;
	} rows[] = {
		{ CPU("\"quota\":200000,\"period\":100000"), OWN,
		  CPU("\"quota\":-1,\"period\":100000,\"shares\":2048,\"cpus\":\"4-5\"") },
		{ CPU("\"cpus\":\"0-7\",\"mems\":\"0\",\"quota\":200000"), OWN,
		  CPU("\"cpus\":\"4-5\",\"mems\":\"0\",\"quota\":-1,\"shares\":2048") },
		{ CPU("\"quota\":200000,\"period\":100000"),
		  "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"4-5\",\"mems\":\"1\","
		  "\"quotaUs\":-1}",
		  CPU("\"quota\":-1,\"period\":100000,\"shares\":2048,\"cpus\":\"4-5\","
		      "\"mems\":\"1\"") },
		{ CPU("\"quota\":50000,\"period\":100000"), SHARED,
		  CPU("\"quota\":50000,\"period\":100000,\"cpus\":\"2-3\"") },
		{ CPU("\"shares\":2"), MANAGED,
		  CPU("\"shares\":200,\"quota\":50000,\"period\":100000,\"cpus\":\"0-1\"") },
		/* who shares has no quota either, but is not to look like an owner */
		{ "{\"linux\":{\"resources\":{\"cpu\":{\"shares\":2048,\"quota\":-1},"
		  "\"memory\":{\"limit\":1}}}}",
		  SHARED,
		  "{\"linux\":{\"resources\":{\"cpu\":{\"shares\":2048,\"quota\":0,\"cpus\":\"2-"
		  "3\"},"
		  "\"memory\":{\"limit\":1}}}}" },
		{ CPU("\"shares\":2048,\"quota\":-1"), SHARED,
		  CPU("\"shares\":2048,\"quota\":-1,\"cpus\":\"2-3\"") },
		/* what is missing is added at the end, what is there stays in its place */
		{ "{\"process\":{},\"linux\":{\"x\":[]},\"mounts\":[]}", SHARED,
		  "{\"process\":{},\"linux\":{\"x\":[],\"resources\":{\"cpu\":{\"cpus\":\"2-3\"}}},"
		  "\"mounts\":[]}" },
		{ "{\"linux\":null,\"a\":1}", SHARED,
		  "{\"linux\":{\"resources\":{\"cpu\":{\"cpus\":\"2-3\"}}},\"a\":1}" },
		/* numbers as they were */
		{ "{\"n\":[18446744073709551615,1.50,-0,1E5,0.1e-400]}", SHARED,
		  "{\"n\":[18446744073709551615,1.50,-0,1E5,0.1e-400],"
		  "\"linux\":{\"resources\":{\"cpu\":{\"cpus\":\"2-3\"}}}}" },
		/* nothing to do: not a byte is touched */
		{ " { \"linux\" : {\"resources\":{\"cpu\":{\"cpus\":\"2,3\"}}} }\n", SHARED,
		  " { \"linux\" : {\"resources\":{\"cpu\":{\"cpus\":\"2,3\"}}} }\n" },
		{ "{}", "{\"pool\":\"shared\",\"exclusive\":false,\"cpus\":\"\"}", "{}" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc config = parse(rows[i].config, &a);
		struct err err = { 0 };
		struct str text, again;

		TEST_ROW("%s", rows[i].config);
		CHECK_OK(precreate_check(&config, &a, &err));
		CHECK_OK(precreate_adjust(&config, str_from(rows[i].response), &a, &text, &err));
		CHECK_STR(text, rows[i].want);
		config = parse(rows[i].want, &a);
		CHECK_OK(precreate_adjust(&config, str_from(rows[i].response), &a, &again, &err));
		CHECK_STR(again, rows[i].want);
	}
}

TEST(an_invalid_placement_is_an_error)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc config;
	struct str text;

	arena_init(&a, 0);
	config = parse("{}", &a);
	CHECK_ERR(precreate_adjust(&config, STR("{\"cpus\":\"3-1\"}"), &a, &text, &err), EINVAL,
		  "placement: cpus: bad range \"3-1\": 3 is above 1");
	CHECK(precreate_adjust(&config, STR("ok"), &a, &text, &err) < 0);
}
