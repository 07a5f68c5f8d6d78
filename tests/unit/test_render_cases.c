/* Renders the manifests of tests/render/input for OpenShift and compares the objects with
 * tests/render/expected: every file as a parsed document, and no file more or less. Of a
 * MachineConfig, the expected files hold only the files of CPU partitioning; facts.json has what is
 * checked of the rest and of the Tuned objects. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "bundle/manifest_load.h"
#include "codec/base64.h"
#include "codec/problems.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "kube/patch.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/openshift.h"
#include "test.h"

#define MAX_INPUTS 2

static const struct render_case {
	const char *name; /* of the directory with the expected files */
	enum owner_mode owner;
	const char *inputs[MAX_INPUTS];
	const char *problem; /* NULL: it renders */
} cases[] = {
	{ "default", OWNER_LABEL_NAME, { "radio-pool.yaml", "radio-profile.yaml" }, NULL },
	{ "no-owner-reference", OWNER_NONE, { "radio-pool.yaml", "radio-profile.yaml" }, NULL },
	{ "owner-reference",
	  OWNER_K8S,
	  { "radio-pool.yaml", "radio-profile-with-uid.yaml" },
	  NULL },
	{ "owner-reference-without-uid",
	  OWNER_K8S,
	  { "radio-pool.yaml", "radio-profile.yaml" },
	  "metadata.uid: required for --owner-ref k8s" },
	{ "partitioned-without-profiles", OWNER_LABEL_NAME, { "partitioned.yaml" }, NULL },
	{ "bootstrap-without-pools",
	  OWNER_LABEL_NAME,
	  { "role-profiles.yaml", "partitioned.yaml" },
	  NULL },
	{ "cpu-frequency", OWNER_NONE, { "radio-pool.yaml", "radio-frequency.yaml" }, NULL },
};

static struct str read_expected(const char *name, struct str file, struct arena *a)
{
	struct err err = { 0 };
	struct str text;
	char path[512];

	(void)snprintf(path, sizeof(path), "render/expected/%s/" PRI_STR, name, FMT_STR(file));
	CHECK_OK(file_read_at(AT_FDCWD, test_data(path), DOC_MAX_SIZE, a, &text, &err));
	return text;
}

static yyjson_val *parse(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc_list docs;

	CHECK_OK(yaml_parse(text, STR("case"), NULL, a, &docs, &err));
	CHECK_UINT(docs.n, 1);
	return docs.items[0].root;
}

static void read_inputs(const struct render_case *c, struct manifests *ms, struct problem_list *p)
{
	const char *items[MAX_INPUTS];
	struct option_list paths = { items, 0 };
	struct manifest_files files;
	struct manifest_list list;
	struct err err = { 0 };

	for (size_t i = 0; i < MAX_INPUTS && c->inputs[i]; i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "render/input/%s", c->inputs[i]);
		items[paths.n++] = str_cstr(ms->a, str_from(test_data(path)));
	}
	CHECK_OK(manifest_load(&paths, ms->a, p, &files, &err));
	list = manifest_files_objects(&files, ms->a);
	manifests_add(ms, &list, p);
}

static bool is_pinning_path(struct str path)
{
	return str_eq(path, STR(NAME_KUBELET_MARKER)) ||
	       str_eq(path, STR(NAME_CRIO_DIR NAME_CRIO_DEFAULT)) ||
	       str_eq(path, STR(NAME_CRIO_DIR NAME_CRIO_PINNING));
}

static yyjson_val *only_pinning(yyjson_val *object, struct arena *a)
{
	yyjson_val *files = doc_find(object, "/spec/config/storage/files"), *file;
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, object), *kept, *config;

	if (!files)
		return object;
	config = yyjson_mut_ptr_get(copy, "/spec/config");
	(void)yyjson_mut_obj_remove_key(config, "systemd");
	(void)yyjson_mut_obj_remove_key(config, "storage");
	kept = doc_put_arr(m, doc_put_obj(m, config, STR("storage")), STR("files"));
	DOC_EACH_ITEM (files, file) {
		if (is_pinning_path(doc_str(doc_get(file, STR("path")))))
			(void)yyjson_mut_arr_append(kept, yyjson_val_mut_copy(m, file));
	}
	return doc_freeze(copy, a);
}

static void check_equal(const char *file, yyjson_val *got, yyjson_val *want, struct arena *a)
{
	struct err err = { 0 };
	struct str is, should;

	TEST_ROW("%s", file);
	if (yyjson_equals(got, want)) /* the order of keys does not count */
		return;
	CHECK_OK(doc_write_val(got, true, a, &is, &err));
	CHECK_OK(doc_write_val(want, true, a, &should, &err));
	CHECK_STR(is, should);
}

static void check_file(const char *name, struct str file, const struct file_set *files,
		       struct arena *a)
{
	const struct rendered_file *got = file_set_find(files, file);

	TEST_ROW("%s: " PRI_STR, name, FMT_STR(file));
	CHECK(got != NULL);
	check_equal(str_cstr(a, file), only_pinning(parse(got->bytes, a), a),
		    parse(read_expected(name, file, a), a), a);
}

/* The value of "key=" in an INI text. */
static struct str ini_value(struct str text, struct str key, struct arena *a)
{
	struct str want = str_printf(a, "\n" PRI_STR "=", FMT_STR(key));
	const char *at = memmem(text.p, text.n, want.p, want.n);

	if (!at)
		return STR("(absent)");
	at += want.n;
	return (struct str){ at, (size_t)(strchrnul(at, '\n') - at) };
}

static void check_tuned(yyjson_val *tuned, yyjson_val *facts, struct arena *a)
{
	struct str data = str_dup(a, doc_str(doc_find(tuned, "/spec/profile/0/data")));
	yyjson_val *key, *value;
	size_t i = 0;

	check_equal("metadata", doc_get(tuned, STR("metadata")), doc_get(facts, STR("metadata")),
		    a);
	DOC_EACH_PAIR (doc_get(facts, STR("settings")), key, value) {
		CHECK_STR(ini_value(data, doc_str(key), a), doc_str(value));
	}
	DOC_EACH_ITEM (doc_get(facts, STR("profiles")), value) {
		char pointer[64];

		(void)snprintf(pointer, sizeof(pointer), "/spec/profile/%zu/name", i++);
		CHECK_STR(doc_str(doc_find(tuned, pointer)), doc_str(value));
	}
	CHECK_UINT(i, yyjson_arr_size(doc_find(tuned, "/spec/profile")));
	check_equal("recommend", doc_find(tuned, "/spec/recommend"),
		    doc_get(facts, STR("recommend")), a);
}

static struct str file_in_machine_config(yyjson_val *object, struct str path, struct arena *a)
{
	const struct str prefix = STR("data:text/plain;charset=utf-8;base64,");
	struct err err = { 0 };
	struct str bytes = STR("");
	yyjson_val *file;

	DOC_EACH_ITEM (doc_find(object, "/spec/config/storage/files"), file) {
		struct str source = doc_str(doc_find(file, "/contents/source"));

		if (!str_eq(doc_str(doc_get(file, STR("path"))), path))
			continue;
		CHECK(str_starts(source, prefix));
		CHECK_OK(base64_decode(str_skip(source, prefix.n), a, &bytes, &err));
	}
	return bytes;
}

static void check_facts(const char *name, const struct file_set *files, struct arena *a)
{
	yyjson_val *facts = parse(read_expected(name, STR("facts.json"), a), a), *file, *fact;

	DOC_EACH_PAIR (facts, file, fact) {
		const struct rendered_file *got = file_set_find(files, doc_str(file));
		struct str line;

		TEST_ROW("%s: facts of " PRI_STR, name, FMT_STR(doc_str(file)));
		CHECK(got != NULL);
		if (str_ends(doc_str(file), STR("_tuned.yaml"))) {
			check_tuned(parse(got->bytes, a), fact, a);
			continue;
		}
		line = str_printf(a, "infra_ctr_cpuset = \"" PRI_STR "\"\n",
				  FMT_STR(doc_str(doc_get(fact, STR("infra_ctr_cpuset")))));
		CHECK(str_has(file_in_machine_config(parse(got->bytes, a),
						     STR(NAME_CRIO_DIR NAME_CRIO_RUNTIMES), a),
			      line));
	}
}

static size_t check_all(const char *name, const struct file_set *files, struct arena *a)
{
	struct err err = { 0 };
	struct str *names;
	size_t n, checked = 0;
	char path[512];

	(void)snprintf(path, sizeof(path), "render/expected/%s", name);
	CHECK_OK(file_list_at(AT_FDCWD, test_data(path), a, &names, &n, &err));
	for (size_t i = 0; i < n; i++) {
		if (str_eq(names[i], STR("facts.json"))) {
			check_facts(name, files, a);
			continue;
		}
		check_file(name, names[i], files, a);
		checked++;
	}
	return checked;
}

static void render_and_check(const struct render_case *c, struct arena *a)
{
	struct openshift_options options = { .owner = c->owner,
					     .kubelet = { .fill_reservations = true } };
	const struct layout_options layout_options = { 0 };
	struct err err = { 0 };
	struct problem_list problems;
	struct manifests ms;
	struct file_set files;
	struct layout layout;

	manifests_init(&ms, a);
	problem_list_init(&problems, a);
	file_set_init(&files, a);
	read_inputs(c, &ms, &problems);
	layout_resolve(&ms, &layout_options, a, &layout, &problems);
	CHECK_OK(openshift_render(&layout, &options, &files, &problems, &err));
	TEST_ROW("%s: " PRI_STR, c->name, FMT_STR(problem_list_format(&problems, a)));
	if (c->problem) {
		CHECK_UINT(problems.n_errors, 1);
		CHECK(str_has(problem_list_format(&problems, a), str_from(c->problem)));
		return;
	}
	CHECK_UINT(problems.n, 0);
	/* The Tuned of each profile is checked by facts alone. */
	CHECK_UINT(files.n, check_all(c->name, &files, a) + layout.n_partitions);
}

TEST(openshift_objects_are_the_expected_ones_and_no_others)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		render_and_check(&cases[i], &a);
}
