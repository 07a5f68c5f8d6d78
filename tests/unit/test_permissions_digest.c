/* The digest of namespace permissions: its text, and what agents accept. */

#include "pin/permissions_digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "pin/namespace_allowlist.h"
#include "test.h"

#define RENEWED "2026-11-17T05:00:00Z"

static yyjson_val *make_namespace(const char *name, const char *annotation, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = doc_put_obj(m, root, STR("metadata"));

	doc_put_str(m, meta, STR("name"), str_dup(a, str_from(name)));
	if (annotation)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")),
			    STR("workload.openshift.io/allowed"), str_dup(a, str_from(annotation)));
	return doc_freeze(root, a);
}

static yyjson_val *parse(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(text, STR("digest"), NULL, a, &doc, &err));
	return doc.root;
}

TEST(a_digest_lists_the_namespaces_of_each_workload_type)
{
	static const char *const namespaces[][2] = { { "shop", "ran,management" },
						     { "dns", "management" },
						     { "plain", NULL },
						     { "odd", "Not A Type,,management " } };
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	namespace_allowlist_begin_list(&list);
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
		namespace_allowlist_put(&list,
					make_namespace(namespaces[i][0], namespaces[i][1], &a));
	namespace_allowlist_end_list(&list);
	CHECK_OK(permissions_digest_write(&list, STR(RENEWED), &a, &text, &err));
	CHECK_STR(text,
		  "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
		  "\"pinfold-permissions\",\"namespace\":\"kube-system\",\"annotations\":{"
		  "\"pinfold.io/renewed\":\"" RENEWED "\"}},\"data\":{\"management\":\"dns\\nshop"
		  "\\n\",\"ran\":\"shop\\n\"}}");
}

/* Whatever namespaces say: what was written gives the same permissions when it is read. */
TEST(a_digest_gives_the_permissions_that_it_was_made_of)
{
	static const char *const types[] = { "management", "ran", "infra", "a b", "", "-x" };
	uint32_t random = 7;

	for (unsigned round = 0; round < 200; round++) {
		CLEANUP(namespace_allowlist_done)
		struct namespace_allowlist list = { 0 }, back = { 0 };
		CLEANUP(arena_done) struct arena a;
		struct str text, renewed;
		struct err err = { 0 };

		TEST_ROW("round %u", round);
		arena_init(&a, 0);
		namespace_allowlist_begin_list(&list);
		for (unsigned i = 0; i < round % 40; i++) {
			char name[16], allowed[64] = "";

			(void)snprintf(name, sizeof(name), "ns-%u", i);
			for (unsigned k = 0; k < 3; k++) {
				random = random * 1664525 + 1013904223;
				(void)snprintf(allowed + strlen(allowed),
					       sizeof(allowed) - strlen(allowed), "%s%s",
					       types[(random >> 16) % ARRAY_LEN(types)],
					       k < 2 ? "," : "");
			}
			namespace_allowlist_put(&list, make_namespace(name, allowed, &a));
		}
		namespace_allowlist_end_list(&list);
		CHECK_OK(permissions_digest_write(&list, STR(RENEWED), &a, &text, &err));
		CHECK_OK(permissions_digest_read(parse(text, &a), &back, &renewed, &err));
		CHECK_STR(renewed, RENEWED);
		CHECK(namespace_allowlist_allows_same(&list, &back));
		back.is_known = true;
		for (size_t i = 0; i < list.n; i++)
			for (size_t k = 0; k < 3; k++) /* the valid ones */
				CHECK_INT(
					namespace_allowlist_check(&back,
								  str_from(list.items[i].namespace),
								  str_from(types[k])),
					namespace_allowlist_check(&list,
								  str_from(list.items[i].namespace),
								  str_from(types[k])));
	}
}

TEST(permissions_that_differ_are_told_apart)
{
	static const struct {
		const char *name, *allowed;
		bool want;
	} rows[] = {
		{ "shop", "management,ran", true },    { "shop", "ran,management", true },
		{ "shop", "ran,management,", true },   { "shop", "management", false },
		{ "shop", "management,ran,x", false }, { "dns", "management,ran", false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(namespace_allowlist_done) struct namespace_allowlist x = { 0 }, y = { 0 };

		TEST_ROW("row %zu", i);
		namespace_allowlist_put(&x, make_namespace("shop", "management,ran", &a));
		namespace_allowlist_put(&y, make_namespace(rows[i].name, rows[i].allowed, &a));
		CHECK_INT(namespace_allowlist_allows_same(&x, &y), rows[i].want);
		CHECK_INT(namespace_allowlist_allows_same(&y, &x), rows[i].want);
	}
}

TEST(a_list_that_is_taken_over_is_a_change_only_if_it_says_something_else)
{
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 }, from = { 0 };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	namespace_allowlist_take(&list, &from); /* an empty list is news */
	CHECK(list.is_known && list.is_changed);
	list.is_changed = false;
	namespace_allowlist_put(&from, make_namespace("shop", "management", &a));
	namespace_allowlist_take(&list, &from);
	CHECK(list.is_changed && from.n == 0);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
		  PERMISSION_GRANTED);
	list.is_changed = false;
	namespace_allowlist_put(&from, make_namespace("shop", "management", &a));
	namespace_allowlist_take(&list, &from);
	CHECK(!list.is_changed);
	/* A complete list of namespaces then replaces it. */
	namespace_allowlist_begin_list(&list);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_end_list(&list);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
		  PERMISSION_DENIED);
}

/* n namespaces with names of `length` characters that allow `allowed`, or a type of their own. */
static void fill(struct namespace_allowlist *list, unsigned n, int length, const char *allowed)
{
	char name[64], type[16];

	namespace_allowlist_begin_list(list);
	for (unsigned i = 0; i < n; i++) {
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, 0);
		(void)snprintf(name, sizeof(name), "%0*u", length, i);
		(void)snprintf(type, sizeof(type), "t%u", i);
		namespace_allowlist_put(list, make_namespace(name, allowed ? allowed : type, &a));
	}
	namespace_allowlist_end_list(list);
}

TEST(permissions_that_do_not_fit_give_a_digest_that_no_agent_uses)
{
	static const struct {
		unsigned n;
		int length;
		const char *allowed;
		bool want;
	} rows[] = {
		{ 4000, 63, "management", true }, /* 4000 * 64 bytes are below 256 KiB */
		{ 4100, 63, "management", false },
		{ 2100, 63, "management,ran", false }, /* the sum of all keys */
		{ 64, 10, NULL, true },
		{ 65, 10, NULL, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(namespace_allowlist_done)
		struct namespace_allowlist list = { 0 }, back = { 0 };
		CLEANUP(arena_done) struct arena a;
		struct str text, renewed;
		struct err err = { 0 };
		int r;

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		fill(&list, rows[i].n, rows[i].length, rows[i].allowed);
		r = permissions_digest_write(&list, STR(RENEWED), &a, &text, &err);
		CHECK_INT(r, rows[i].want ? 0 : -E2BIG);
		CHECK(text.n < ((size_t)1 << 20));
		r = permissions_digest_read(parse(text, &a), &back, &renewed, &err);
		CHECK_INT(r, rows[i].want ? 0 : -EINVAL);
		CHECK_UINT(back.n, rows[i].want ? rows[i].n : 0);
	}
}

#define META(namespace, name, annotations)                                                         \
	"\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name                           \
						   "\",\"annotations\":{" annotations "}}"
#define GOOD_META                                                                                  \
	META("kube-system", "pinfold-permissions", "\"pinfold.io/renewed\":\"" RENEWED "\"")

TEST(what_is_not_a_digest_permits_nothing)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"{" META("kube-system", "pinfold-permissions", "") "}",
		"{" GOOD_META ",\"data\":[]}",
		"{" GOOD_META ",\"data\":{\"management\":7}}",
		"{" GOOD_META ",\"data\":{\"management\":\"a\\n\\nb\\n\"}}",
		"{" GOOD_META ",\"data\":{\"management\":\"a,b\\n\"}}",
		"{" GOOD_META ",\"data\":{\"management\":\"a\\nB\\n\"}}",
		"{" GOOD_META ",\"data\":{\"management\":\"good\\n\",\"Bad Type\":\"a\\n\"}}",
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 };
		struct err err = { 0 };
		struct str renewed;

		TEST_ROW("%s", texts[i]);
		CHECK_INT(permissions_digest_read(parse(str_from(texts[i]), &a), &list, &renewed,
						  &err),
			  -EINVAL);
		CHECK(err.msg[0]);
		CHECK_UINT(list.n, 0);
	}
}

/* A user who may create namespaces can own one that is named as Pinfold's, never kube-system. */
TEST(attack_a_digest_in_a_namespace_of_its_author_is_not_used)
{
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str renewed;

	arena_init(&a, 0);
	CHECK_ERR(permissions_digest_read(
			  parse(STR("{" META("pinfold", "pinfold-permissions",
					     "\"pinfold.io/renewed\":\"" RENEWED
					     "\"") ",\"data\":{\"management\":\"evil\\n\"}}"),
				&a),
			  &list, &renewed, &err),
		  EINVAL, "not the ConfigMap kube-system/pinfold-permissions");
}
