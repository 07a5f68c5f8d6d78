/* When the operator writes the digest of permissions. */

#include "operator/permissions.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/object_time.h"
#include "operator/reconcile.h"
#include "test.h"

#define NOW_S 1800000000

struct fixture {
	struct arena arena;
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct operator_snapshot snapshot;
	struct operator_writes writes;
	struct reconcile_figures figures;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, 0);
}

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&f->stores[i]);
	arena_done(&f->arena);
}

static void put_namespace(struct fixture *f, const char *name, const char *allowed)
{
	struct str text = str_printf(&f->arena,
				     "{\"metadata\":{\"name\":\"%s\",\"annotations\":{"
				     "\"workload.openshift.io/allowed\":\"%s\"}}}",
				     name, allowed);

	(void)object_store_put(&f->stores[OPERATOR_NAMESPACES], str_from(name), STR("1"), text);
}

/* `names` is NULL for a digest that is not in use. */
static void put_digest(struct fixture *f, const char *names, int64_t renewed_s)
{
	struct str text = STR("{\"metadata\":{\"namespace\":\"kube-system\",\"name\":"
			      "\"pinfold-permissions\"}}");

	if (names)
		text = str_printf(&f->arena,
				  "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":"
				  "\"pinfold-permissions\",\"annotations\":{\"pinfold.io/renewed\":"
				  "\"" PRI_STR "\"}},\"data\":{\"management\":\"%s\"}}",
				  FMT_STR(object_time(renewed_s, &f->arena)), names);
	(void)object_store_put(&f->stores[OPERATOR_DIGEST], STR("kube-system/pinfold-permissions"),
			       STR("1"), text);
}

static const struct operator_write *decide(struct fixture *f)
{
	f->snapshot = (struct operator_snapshot){ .arena = &f->arena,
						  .now_s = NOW_S,
						  .stores = f->stores,
						  .has_current_namespaces = true };
	f->writes = (struct operator_writes){ .arena = &f->arena };
	reconcile_permissions(&f->snapshot, &f->writes, &f->figures);
	CHECK(f->writes.n <= 1);
	return f->writes.n ? &f->writes.items[0] : NULL;
}

TEST(the_first_digest_is_created_by_its_name)
{
	CLEANUP(fixture_done) struct fixture f;
	const struct operator_write *write;

	fixture_init(&f);
	put_namespace(&f, "shop", "management");
	write = decide(&f);
	CHECK(write);
	CHECK(strcmp(write->request.method, "PATCH") == 0);
	CHECK_STR(write->request.path, "/api/v1/namespaces/kube-system/configmaps/"
				       "pinfold-permissions?force=true&fieldManager=pinfold");
	CHECK(str_has(write->request.body, STR("\"data\":{\"management\":\"shop\\n\"}")));
	CHECK(str_has(write->request.body, STR("\"pinfold.io/renewed\":\"2027-01-15T08:00:00Z\"")));
	CHECK_UINT(f.figures.namespaces_allowed, 1);
}

TEST(a_digest_is_written_when_it_differs_or_has_to_be_confirmed)
{
	static const struct {
		const char *names;
		int64_t age_s;
		bool want;
	} rows[] = {
		{ "dns\\nshop\\n", 0, false },
		{ "dns\\nshop\\n", 119, false },
		{ "dns\\nshop\\n", 120, true },
		{ "dns\\nshop\\n", -5, true },
		{ "shop\\n", 0, true },
		{ "dns\\nevil\\nshop\\n", 0, true },
		{ "dns\\nshop\\nNO\\n", 0, true },
		{ NULL, 0, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;
		const struct operator_write *write;

		TEST_ROW("row %zu", i);
		fixture_init(&f);
		put_namespace(&f, "shop", "management");
		put_namespace(&f, "dns", "management");
		put_digest(&f, rows[i].names, NOW_S - rows[i].age_s);
		write = decide(&f);
		CHECK_INT(write != NULL, rows[i].want);
		/* The whole object is replaced: nothing that others added stays. */
		CHECK(!write || strcmp(write->request.method, "PUT") == 0);
	}
}

TEST(the_digest_is_not_confirmed_while_the_namespaces_are_not_watched)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_namespace(&f, "shop", "management");
	put_digest(&f, "shop\\n", NOW_S - 600);
	CHECK(decide(&f));
	f.snapshot.has_current_namespaces = false;
	f.writes.n = 0;
	reconcile_permissions(&f.snapshot, &f.writes, &f.figures);
	CHECK_UINT(f.writes.n, 0);
}

TEST(permissions_that_do_not_fit_take_the_digest_out_of_use_once)
{
	CLEANUP(fixture_done) struct fixture f;
	const struct operator_write *write;
	char name[64];

	fixture_init(&f);
	for (unsigned i = 0; i < 4200; i++) {
		(void)snprintf(name, sizeof(name), "%063u", i);
		put_namespace(&f, name, "management");
	}
	put_digest(&f, "shop\\n", NOW_S);
	write = decide(&f);
	CHECK(write && f.figures.is_digest_too_large);
	CHECK(!str_has(write->request.body, STR("renewed")));
	CHECK(!str_has(write->request.body, STR("\"data\"")));
	put_digest(&f, NULL, 0);
	CHECK(!decide(&f));
}

/* Only namespaces that allow something are kept, and of them only that. */
TEST(a_namespace_is_kept_only_if_it_allows_a_type)
{
	CLEANUP(fixture_done) struct fixture f;
	const struct operator_kind_info *info = &operator_kinds[OPERATOR_NAMESPACES];
	struct err err = { 0 };
	struct doc doc;
	struct str text;

	fixture_init(&f);
	CHECK_OK(doc_parse(STR("{\"metadata\":{\"name\":\"shop\",\"labels\":{\"a\":\"b\"},"
			       "\"annotations\":{\"x\":\"y\"}}}"),
			   STR(""), NULL, &f.arena, &doc, &err));
	CHECK(!info->is_wanted(doc.root));
	CHECK_OK(doc_parse(STR("{\"metadata\":{\"name\":\"shop\",\"labels\":{\"a\":\"b\"},"
			       "\"annotations\":{\"x\":\"y\",\"workload.openshift.io/allowed\":"
			       "\"management\"}}}"),
			   STR(""), NULL, &f.arena, &doc, &err));
	CHECK(info->is_wanted(doc.root));
	CHECK_OK(operator_object_trim(OPERATOR_NAMESPACES, doc.root, &f.arena, &text, &err));
	CHECK_STR(text, "{\"metadata\":{\"name\":\"shop\",\"annotations\":{"
			"\"workload.openshift.io/allowed\":\"management\"}}}");
}
