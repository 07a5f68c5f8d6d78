/* What of a profile reaches TuneD's files. TuneD reads them as root, expands ${...} and can run
 * commands with ${f:exec:...}. */

#include "render/tuned.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "manifests_text.h"
#include "profile/layout.h"
#include "test.h"

#define PROFILE                                                                                    \
	"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"                      \
	"metadata: {name: p}\nspec:\n  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n"     \
	"  cpu: {reserved: 0-1, isolated: 2-7}\n"
#define DEVICE(key, value) "  net: {userLevelNetworking: true, devices: [{" key ": " value "}]}\n"
#define ARGS(value) "  additionalKernelArgs: [" value "]\n"

static void resolve(const char *fields, struct arena *a, struct layout *ret, struct problem_list *p)
{
	struct layout_options options = { 0 };
	struct manifests *ms = arena_new(a, struct manifests);

	manifests_init(ms, a);
	problem_list_init(p, a);
	manifests_from_text(ms, str_printf(a, PROFILE "%s", fields), STR("test"), p);
	layout_resolve(ms, &options, a, ret, p);
}

TEST(attack_profile_fields_cannot_add_lines_or_functions_to_tuned_files)
{
	static const char *const rows[] = {
		DEVICE("interfaceName", "\"eth0\\n[sysctl]\""),
		DEVICE("interfaceName", "\"eth0\\r[script]\\rscript=/tmp/x\""),
		DEVICE("interfaceName", "\"eth0\\u0085[script]\""),
		DEVICE("interfaceName", "\"eth0\\u2028[script]\""),
		DEVICE("interfaceName", "\"eth0\\v[script]\""),
		DEVICE("interfaceName", "\"${f:exec:touch:/tmp/x}\""),
		DEVICE("vendorID", "\"0x8086${f:exec:reboot}\""),
		DEVICE("deviceID", "\"0x1592\\r\""),
		DEVICE("deviceID", "\"x #comment\""),
		ARGS("\"a=1\\rscript=/tmp/x\""),
		ARGS("\"a=1\\x7f\""),
		ARGS("\"a=${f:exec:touch:/tmp/x}\""),
		ARGS("\"a=\\\"${f:exec:id}\\\"\""),
		ARGS("\"a=1\\u0085b=2\""),
		ARGS("\"#\", \"a=1\""),
		ARGS("\"a=\\\"b #c\\\"\""),
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct problem_list p;
		struct layout layout;

		TEST_ROW("%s", rows[i]);
		resolve(rows[i], &a, &layout, &p);
		CHECK_UINT(p.n_errors, 1);
		CHECK_UINT(layout.n_partitions, 0);
	}
}

TEST(tuned_files_hold_ordinary_devices_and_kernel_arguments)
{
	static const struct {
		const char *fields, *line;
	} rows[] = {
		{ DEVICE("interfaceName", "\"ens*\""), "\ndevices_udev_regex=^INTERFACE=ens.*\n" },
		{ DEVICE("interfaceName", "\"!eno1\""),
		  "\ndevices_udev_regex=^INTERFACE=(?!eno1)\n" },
		{ ARGS("\"memmap=4G$8G\", \"dyndbg=\\\"file a.c +p\\\"\""), NULL },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct problem_list p;
		struct layout layout;
		struct str text;

		TEST_ROW("%s", rows[i].fields);
		resolve(rows[i].fields, &a, &layout, &p);
		CHECK_UINT(p.n_errors, 0);
		text = tuned_host_conf(&layout.partitions[0], &a);
		CHECK(!rows[i].line || str_has(text, str_from(rows[i].line)));
	}
}
