#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "bundle/bundle_build.h"
#include "bundle/bundle_load.h"
#include "bundle/tar.h"
#include "test.h"

#define NOW_S INT64_C(1763380800)

static void build(struct bundle_build *b, struct arena *a)
{
	struct err err = { 0 };

	bundle_build_init(b, 1000, a);
	bundle_build_source(b, STR("node worker-0"));
	CHECK(bundle_build_add(b, STR("nodes/worker-0/status.json"),
			       STR("{\"node\":\"worker-0\"}")));
	CHECK(bundle_build_add(b, STR("nodes/worker-1/status.json"), STR("{}")));
	CHECK(bundle_build_add(
		b, STR("objects/nodes.json"),
		STR("{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\"},{\"kind\":\"Node\"}]}")));
	CHECK(!bundle_build_add(b, STR("logs/large.log"),
				(struct str){ arena_zalloc(a, 1000, 1), 1000 }));
	bundle_build_leave_out(b, STR("Secrets"), STR("never read"));
	CHECK_OK(bundle_build_finish(b, STR("1.2.3"), NOW_S, &err));
}

static int count(void *context, yyjson_val *object, struct err *err)
{
	(void)err;
	*(size_t *)context += str_eq(doc_str(doc_get(object, STR("kind"))), STR("Node"));
	return 0;
}

static void check_contents(const struct saved_bundle *s, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;
	struct str node;
	size_t n = 0;

	CHECK_STR(s->created, "2025-11-17T12:00:00Z");
	CHECK_STR(s->version, "1.2.3");
	CHECK_OK(saved_bundle_each_object(s, a, count, &n, &err));
	CHECK_UINT(n, 2);
	CHECK_OK(saved_bundle_doc(s, STR("nodes/worker-0/status.json"), a, &doc, &err));
	CHECK_STR(doc_str(doc_get(doc.root, STR("node"))), "worker-0");
	CHECK_OK(saved_bundle_node(s, "worker-1", a, &node, &err));
	CHECK_STR(node, "worker-1");
	CHECK_INT(saved_bundle_node(s, NULL, a, &node, &err), -EINVAL);
	CHECK_INT(saved_bundle_node(s, "worker-2", a, &node, &err), -ENOENT);
	CHECK_INT(saved_bundle_doc(s, STR("check.json"), a, &doc, &err), -ENOENT);
}

TEST(the_index_names_what_is_left_out)
{
	CLEANUP(arena_done) struct arena a;
	struct bundle_build b;
	struct err err = { 0 };
	struct doc index;
	yyjson_val *left;

	arena_init(&a, 0);
	build(&b, &a);
	CHECK_STR(b.files[b.n - 1].path, BUNDLE_INDEX);
	CHECK_OK(doc_parse(b.files[b.n - 1].bytes, STR("index"), NULL, &a, &index, &err));
	left = doc_get(index.root, STR("leftOut"));
	CHECK_UINT(yyjson_arr_size(left), 2);
	CHECK_STR(doc_str(doc_find(left, "/0/what")), "logs/large.log");
	CHECK_STR(doc_str(doc_find(left, "/0/why")),
		  "1000 bytes: the bundle has reached its size (1000 bytes)");
	CHECK_STR(doc_str(doc_find(left, "/1/what")), "Secrets");
	CHECK_UINT(yyjson_arr_size(doc_get(index.root, STR("files"))), 3);
}

TEST(an_archive_and_a_directory_have_the_same_contents)
{
	CLEANUP(arena_done) struct arena a;
	char dir[] = "/tmp/pinfold-bundle-XXXXXX";
	const char *path, *outside;
	struct saved_bundle s;
	struct bundle_build b;
	struct err err = { 0 };

	arena_init(&a, 0);
	build(&b, &a);
	CHECK_OK(saved_bundle_parse(bundle_build_tar(&b, STR("name"), NOW_S, &a), STR("t"), &a, &s,
				    &err));
	CHECK_UINT(s.n, 4);
	check_contents(&s, &a);
	CHECK(mkdtemp(dir) != NULL);
	path = str_printf(&a, "%s/bundle", dir).p;
	CHECK_OK(bundle_build_write(&b, path, &err));
	CHECK_INT(bundle_build_write(&b, path, &err), -EEXIST);
	/* Files of others do not enter by links. */
	outside = str_printf(&a, "%s/objects/link.json", path).p;
	CHECK_INT(symlink("/etc/passwd", outside), 0);
	CHECK(bundle_at(path));
	CHECK(!bundle_at(dir));
	CHECK_OK(bundle_load(path, &a, &s, &err));
	CHECK_UINT(s.n, 4);
	check_contents(&s, &a);
	CHECK_INT(system(str_printf(&a, "rm -r %s", dir).p), 0); // NOLINT(cert-env33-c)
}

TEST(names_become_safe_parts_of_paths)
{
	static const struct {
		struct str name;
		const char *part;
	} rows[] = {
		{ STR_INIT("worker-0.example"), "worker-0.example" },
		{ STR_INIT("../../etc"), "%2E.%2F..%2Fetc" },
		{ STR_INIT(".."), "%2E." },
		{ STR_INIT("a\nb<"), "a%0Ab%3C" },
		{ STR_INIT(""), "unnamed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct str part;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		part = bundle_path_part(rows[i].name, &a);
		CHECK_STR(part, rows[i].part);
		CHECK(tar_name_is_safe(part));
	}
}

TEST(other_archives_are_not_bundles)
{
	static const struct {
		struct str path[2], text[2];
		const char *why;
	} rows[] = {
		{ { STR_INIT("a"), STR_INIT("b") },
		  { STR_INIT(""), STR_INIT("") },
		  "t: not a support bundle: it has no index.json of kind SupportBundle" },
		{ { STR_INIT("index.json"), STR_INIT("b") },
		  { STR_INIT("{\"kind\":\"Other\"}"), STR_INIT("") },
		  "t: not a support bundle: it has no index.json of kind SupportBundle" },
		{ { STR_INIT("index.json"), STR_INIT("b") },
		  { STR_INIT("{\"kind\":\"SupportBundle\",\"apiVersion\":\"pinfold.io/v1alpha1\","
			     "\"format\":2}"),
		    STR_INIT("") },
		  "t: the bundle has format 2, and this program reads format 1" },
		{ { STR_INIT("b"), STR_INIT("b") },
		  { STR_INIT(""), STR_INIT("") },
		  "t: \"b\" occurs twice" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct saved_bundle s;
		struct err err = { 0 };
		struct strbuf out;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		strbuf_init(&out, &a);
		for (size_t k = 0; k < 2; k++)
			tar_add(&out, &(struct tar_member){ rows[i].path[k], rows[i].text[k] }, 0);
		tar_end(&out);
		CHECK_ERR(saved_bundle_parse(strbuf_str(&out), STR("t"), &a, &s, &err), EINVAL,
			  rows[i].why);
	}
}
