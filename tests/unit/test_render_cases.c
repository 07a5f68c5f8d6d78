/* Replays the render cases of OpenShift's Node Tuning Operator (../shared/render-cases): every
 * expected file as a parsed document, the facts about the rest, and no file more or less. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/problems.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "kube/patch.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/openshift.h"
#include "test.h"

static const char *const cases[] = {
	"pinned-default", "bootstrap-no-mcp", "default",
	"no-ref",	  "cpu-frequency",    "owner-ref-k8s-missing-uid",
};

static struct str read_case(const char *name, const char *file, struct arena *a)
{
	struct err err = { 0 };
	struct str text;
	char path[512];

	(void)snprintf(path, sizeof(path), "render-cases/%s/%s", name, file);
	CHECK_OK(file_read_at(AT_FDCWD, test_shared(path), DOC_MAX_SIZE, a, &text, &err));
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

static void read_input(const char *name, struct str dir, struct manifests *ms,
		       struct problem_list *p)
{
	struct err err = { 0 };
	struct str *names;
	char path[512];
	size_t n;

	(void)snprintf(path, sizeof(path), "render-cases/%s/" PRI_STR, name, FMT_STR(dir));
	CHECK_OK(file_list_at(AT_FDCWD, test_shared(path), ms->a, &names, &n, &err));
	CHECK(n > 0);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), PRI_STR "/" PRI_STR, FMT_STR(dir),
			       FMT_STR(names[i]));
		manifests_parse(ms, read_case(name, path, ms->a), names[i], p);
	}
}

static enum owner_mode owner_of(struct str name)
{
	return str_eq(name, STR("k8s"))	 ? OWNER_K8S :
	       str_eq(name, STR("none")) ? OWNER_NONE :
					   OWNER_LABEL_NAME;
}

/* The cases hold only the files of CPU partitioning. */
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
	struct patch patch;
	struct str text;

	CHECK(patch_init(&patch, a));
	patch_diff(&patch, STR(""), want, got);
	CHECK_OK(patch_write(&patch, a, &text, &err));
	TEST_ROW("%s: " PRI_STR, file, FMT_STR(text));
	CHECK(patch_is_empty(&patch));
}

static void check_file(const char *name, struct str file, const struct file_set *files,
		       struct arena *a)
{
	const struct rendered_file *got = file_set_find(files, file);
	char path[512];

	TEST_ROW("%s: " PRI_STR, name, FMT_STR(file));
	CHECK(got != NULL);
	(void)snprintf(path, sizeof(path), "expected/" PRI_STR, FMT_STR(file));
	check_equal(path, only_pinning(parse(got->bytes, a), a), parse(read_case(name, path, a), a),
		    a);
}

/* The value of "key=" in an INI text; an empty one takes the next line, as the facts were made. */
static struct str ini_value(struct str text, struct str key, struct arena *a)
{
	struct str want = str_printf(a, "\n" PRI_STR "=", FMT_STR(key));
	const char *at = memmem(text.p, text.n, want.p, want.n);
	const char *end;

	if (!at)
		return STR("(absent)");
	at += want.n;
	while (*at == '\n')
		at++;
	end = strchr(at, '\n');
	return (struct str){ at, end ? (size_t)(end - at) : strlen(at) };
}

static void check_tuned(yyjson_val *tuned, yyjson_val *facts, struct arena *a)
{
	struct str data = str_dup(a, doc_str(doc_find(tuned, "/spec/profile/0/data")));
	yyjson_val *key, *value;
	size_t i = 0;

	CHECK_STR(doc_str(doc_find(tuned, "/metadata/name")), doc_str(doc_get(facts, STR("name"))));
	CHECK_STR(doc_str(doc_find(tuned, "/metadata/namespace")),
		  doc_str(doc_get(facts, STR("namespace"))));
	CHECK_STR(ini_value(data, STR("isolated_cores"), a),
		  doc_str(doc_get(facts, STR("isolated_cores"))));
	DOC_EACH_PAIR (doc_get(facts, STR("bootloader")), key, value) {
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
	yyjson_val *facts = parse(read_case(name, "expected/facts.json", a), a), *file, *fact;

	DOC_EACH_PAIR (facts, file, fact) {
		const struct rendered_file *got = file_set_find(files, doc_str(file));
		yyjson_val *object, *path, *value;

		TEST_ROW("%s: facts of " PRI_STR, name, FMT_STR(doc_str(file)));
		CHECK(got != NULL);
		object = parse(got->bytes, a);
		if (str_ends(doc_str(file), STR("_tuned.yaml"))) {
			check_tuned(object, fact, a);
			continue;
		}
		DOC_EACH_PAIR (fact, path, value) {
			struct str line = str_printf(
				a, "infra_ctr_cpuset = \"" PRI_STR "\"\n",
				FMT_STR(doc_str(doc_get(value, STR("infra_ctr_cpuset")))));

			CHECK(str_has(file_in_machine_config(object, doc_str(path), a), line));
		}
	}
}

static size_t check_all(const char *name, const struct file_set *files, struct arena *a)
{
	struct err err = { 0 };
	struct str *names;
	size_t n, checked = 0;
	char path[512];

	(void)snprintf(path, sizeof(path), "render-cases/%s/expected", name);
	CHECK_OK(file_list_at(AT_FDCWD, test_shared(path), a, &names, &n, &err));
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

static void replay(const char *name, struct arena *a, size_t *ret_files)
{
	yyjson_val *description = parse(read_case(name, "case.json", a), a), *dir;
	struct openshift_options options = {
		.owner = owner_of(doc_str(doc_get(description, STR("ownerRef")))),
		.kubelet = { .fill_reservations = true },
	};
	bool succeeds = doc_bool(doc_get(description, STR("expectSuccess")), false);
	const struct layout_options layout_options = { 0 };
	struct err err = { 0 };
	struct problem_list problems;
	struct manifests ms;
	struct file_set files;
	struct layout layout;
	size_t expected;

	manifests_init(&ms, a);
	problem_list_init(&problems, a);
	file_set_init(&files, a);
	DOC_EACH_ITEM (doc_get(description, STR("inputDirs")), dir) {
		read_input(name, doc_str(dir), &ms, &problems);
	}
	layout_resolve(&ms, &layout_options, a, &layout, &problems);
	CHECK_OK(openshift_render(&layout, &options, &files, &problems, &err));
	TEST_ROW("%s: " PRI_STR, name, FMT_STR(problem_list_format(&problems, a)));
	CHECK((problems.n_errors == 0) == succeeds);
	if (!succeeds)
		return;
	expected = check_all(name, &files, a);
	/* Each profile also has a Tuned and a RuntimeClass, of which only facts are given. */
	TEST_ROW("%s: number of files", name);
	CHECK_UINT(files.n, expected + 2 * layout.n_partitions);
	*ret_files += expected;
}

TEST(every_render_case_gives_the_expected_objects_and_no_other)
{
	CLEANUP(arena_done) struct arena a;
	size_t files = 0;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		replay(cases[i], &a, &files);
	TEST_NOTE("%zu render cases, %zu expected objects", ARRAY_LEN(cases), files);
	CHECK(files >= 14);
}
