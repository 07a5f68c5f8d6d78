#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "bundle/manifest_load.h"
#include "codec/problems.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "test.h"

/* The names of the objects, each followed by a blank. */
static struct str names_of(const struct manifest_list *list, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++)
		strbuf_printf(&b, PRI_STR " ", FMT_STR(object_name(list->items[i].object)));
	return strbuf_str(&b);
}

TEST(every_object_of_a_file_is_found)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "# nothing\n---\n", "" },
		{ "metadata: {name: a}\n", "a " },
		{ "metadata: {name: a}\n---\n---\nmetadata: {name: b}\n", "a b " },
		{ "{\"metadata\": {\"name\": \"a\"}}", "a " },
		{ "kind: List\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]\n", "a b " },
		{ "kind: PodList\nitems: []\n", "" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct manifest_list list = { 0 };
		struct doc_list docs;
		struct err err;

		TEST_ROW("%s", rows[i].text);
		CHECK_OK(manifest_parse(str_from(rows[i].text), STR("f"), &a, &docs, &err));
		manifest_list_add_docs(&list, &a, &docs);
		CHECK_STR(names_of(&list, &a), str_from(rows[i].want));
	}
	arena_done(&a);
}

TEST(the_position_of_an_object_names_file_line_and_column)
{
	CLEANUP(arena_done) struct arena a;
	struct manifest_list list = { 0 };
	struct doc_list docs;
	struct err err;

	arena_init(&a, 0);
	CHECK_OK(manifest_parse(STR("a: b\n---\nitems:\n- kind: Pod\nkind: List\n"), STR("f"), &a,
				&docs, &err));
	manifest_list_add_docs(&list, &a, &docs);
	CHECK_UINT(list.n, 2);
	CHECK_STR(manifest_position(&list.items[0], &a), "f:1:1");
	CHECK_STR(manifest_position(&list.items[1], &a), "f:4:3");
}

TEST(a_time_is_read_as_it_is_written)
{
	static const struct str bad[] = {
		{ NULL, 0 },
		STR_INIT("2026-11-16"),
		STR_INIT("2026-11-16T01:34:14"),
		STR_INIT("2026-11-16T01:34:14+01:00"),
		STR_INIT("2026-11-16T01:34:14Z\0x"),
		STR_INIT("2026-11-16T01:34:14.000000000000000Z"),
		STR_INIT("2026-13-16T01:34:14Z"),
	};
	CLEANUP(arena_done) struct arena a;
	int64_t s = 7;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		TEST_ROW("%zu", i);
		CHECK(!object_time_read(bad[i], &s));
		CHECK_INT(s, 7);
	}
	CHECK(object_time_read(STR("2026-11-16T01:34:14Z"), &s));
	CHECK_STR(object_time(s, &a), "2026-11-16T01:34:14Z");
}

TEST(errors_name_file_line_and_column)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "a: 1\nb: [\n", "f:3:1: " },
		{ "a: 1\n---\n- b\n", "f:3:1: not a Kubernetes object but a list" },
		{ "kind: List\nitems:\n- 7\n", "f:3:3: not a Kubernetes object but a number" },
		{ "{\"a\": 1,\n \"a\": 2}", "f:2:2: " },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc_list docs = { 0 };
		struct err err;

		TEST_ROW("%s", rows[i].text);
		CHECK_INT(manifest_parse(str_from(rows[i].text), STR("f"), &a, &docs, &err),
			  -EINVAL);
		CHECK(strncmp(err.msg, rows[i].want, strlen(rows[i].want)) == 0);
		CHECK(!docs.n);
	}
	arena_done(&a);
}

/* Large JSON takes another parser: it must accept and reject the same. */
TEST(large_json_follows_the_same_rules)
{
	static const struct {
		const char *end;
		int want;
	} rows[] = {
		{ "\"}", 0 },
		{ "\", \"kind\": \"Pod\"}", -EINVAL }, /* the key is given twice */
		{ "\"}\n{\"kind\": \"Pod\"}", -EINVAL },
		{ "\"}\n---\n{\"kind\": \"Pod\"}", 0 },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc_list docs;
		struct strbuf b;
		struct err err;

		TEST_ROW("%s", rows[i].end);
		strbuf_init(&b, &a);
		strbuf_add(&b, STR("{\"kind\": \"Pod\", \"x\": \""));
		for (size_t k = 0; k < (size_t)2 << 20; k++)
			strbuf_addc(&b, 'x');
		strbuf_add(&b, str_from(rows[i].end));
		CHECK_INT(manifest_parse(strbuf_str(&b), STR("f"), &a, &docs, &err), rows[i].want);
	}
	arena_done(&a);
}

static char dir[] = "/tmp/pinfold-manifest-XXXXXX";

static void shell(const char *script)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "cd %s && %s", dir, script);
	CHECK_INT(system(command), 0);
}

#define OBJECT(name) "echo 'metadata: {name: " name "}' >" name

TEST(a_directory_means_its_yaml_and_json_files_in_order)
{
	static const char *const rows[][4] = {
		/* what is named, and what is read */
		{ ".", NULL, "a.yml b.yaml c.yaml d.json " },
		{ "sub", NULL, "c.yaml " },
		{ "notes.txt", NULL, "notes.txt " },
		{ "d.json", "a.yml", "d.json a.yml " },
		{ "sub", ".", "c.yaml a.yml b.yaml c.yaml d.json " },
	};
	char cwd[4096];
	struct arena a;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir));
	CHECK(getcwd(cwd, sizeof(cwd)));
	CHECK_INT(chdir(dir), 0);
	shell("mkdir sub .hidden; " OBJECT("a.yml") "; " OBJECT("b.yaml") "; " OBJECT(
		"notes.txt") "; cd sub && " OBJECT("c.yaml") "; cd ..; "
							     "echo '{\"metadata\": {\"name\": "
							     "\"d.json\"}}' >d.json; "
							     "cp a.yml .e.yaml; cp a.yml .hidden; "
							     "ln -s . loop");
	shell("mv sub c && ln -s c sub");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct option_list paths = { (const char **)rows[i], rows[i][1] ? 2 : 1 };
		struct manifest_files files;
		struct manifest_list list;
		struct err err;

		TEST_ROW("%zu", i);
		CHECK_OK(manifest_load(&paths, &a, NULL, &files, &err));
		list = manifest_files_objects(&files, &a);
		CHECK_STR(names_of(&list, &a), str_from(rows[i][2]));
	}
	CHECK_INT(chdir(cwd), 0);
	shell("rm -r ../${PWD##*/}");
	arena_done(&a);
}

TEST(a_bad_file_fails_the_load_or_is_one_problem_of_several)
{
	const char *path = dir;
	struct option_list paths = { &path, 1 };
	struct manifest_files files = { 0 };
	struct manifest_list list;
	struct problem_list p;
	struct err err;
	struct arena a;

	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	arena_init(&a, 0);
	problem_list_init(&p, &a);
	CHECK(mkdtemp(dir));
	shell(OBJECT("1.yaml") "; echo '[' >2.yaml; " OBJECT("3.yaml") "; echo '- x' >4.yaml");
	CHECK_INT(manifest_load(&paths, &a, NULL, &files, &err), -EINVAL);
	CHECK(strstr(err.msg, "/2.yaml:2:1: "));
	CHECK(!files.n);

	CHECK_OK(manifest_load(&paths, &a, &p, &files, &err));
	list = manifest_files_objects(&files, &a);
	CHECK_STR(names_of(&list, &a), STR("1.yaml 3.yaml "));
	CHECK(p.n_errors == 2);

	shell("rm -r ../${PWD##*/}");
	CHECK_INT(manifest_load(&paths, &a, &p, &files, &err), -ENOENT);
	arena_done(&a);
}
