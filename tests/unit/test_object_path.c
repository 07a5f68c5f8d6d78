#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/object_path.h"
#include "codec/doc.h"
#include "test.h"

TEST(paths_are_built_from_group_namespace_and_name)
{
	static const struct {
		struct object_ref ref;
		const char *want;
	} rows[] = {
		{ { STR_INIT("v1"), STR_INIT("nodes"), { 0 }, STR_INIT("n1"), STR_INIT("status") },
		  "/api/v1/nodes/n1/status" },
		{ { STR_INIT("v1"), STR_INIT("namespaces"), { 0 }, { 0 }, { 0 } },
		  "/api/v1/namespaces" },
		{ { STR_INIT("apps/v1"),
		    STR_INIT("deployments"),
		    STR_INIT("shop"),
		    STR_INIT("web"),
		    { 0 } },
		  "/apis/apps/v1/namespaces/shop/deployments/web" },
		{ { STR_INIT("v1"), STR_INIT("nodes"), { 0 }, STR_INIT("../a b?"), { 0 } },
		  "/api/v1/nodes/..%2Fa%20b%3F" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].want);
		CHECK_STR(object_path(&rows[i].ref, &a), rows[i].want);
	}
	CHECK_STR(object_apply_path(&rows[0].ref, STR("pinfold agent"), &a),
		  "/api/v1/nodes/n1/status?force=true&fieldManager=pinfold%20agent");
}

TEST(an_event_fits_the_limits_of_the_api_server)
{
	struct object_event e = { .api = STR("v1"),
				  .kind = STR("Node"),
				  .reason = STR("Tested"),
				  .component = STR("test"),
				  .now_s = 1794700800,
				  .random = 7 };
	CLEANUP(arena_done) struct arena a;
	char message[2000], name[253];
	struct err err = { 0 };
	struct str path, body, got;
	struct doc doc;

	arena_init(&a, 0);
	memset(name, 'n', sizeof(name));
	memset(message, 'm', sizeof(message));
	memcpy(message + 1023, "\xc3\xa4", 2); /* must not be cut in two */
	e.name = (struct str){ name, sizeof(name) };
	e.message = (struct str){ message, sizeof(message) };
	CHECK_OK(object_event_write(&e, &a, &path, &body, &err));
	CHECK_STR(path, "/api/v1/namespaces/default/events");
	CHECK_OK(doc_parse(body, STR(""), NULL, &a, &doc, &err)); /* valid UTF-8, too */
	CHECK_UINT(doc_str(doc_get(doc.root, STR("message"))).n, 1023);
	got = doc_str(doc_find(doc.root, "/metadata/name"));
	CHECK(got.n <= 253 && str_ends(got, STR("nn.6af8f60000000007")));
	CHECK_STR(doc_str(doc_get(doc.root, STR("type"))), "Normal");
	CHECK_STR(doc_str(doc_get(doc.root, STR("lastTimestamp"))), "2026-11-15T00:00:00Z");
	CHECK(!doc_find(doc.root, "/involvedObject/uid"));
}
