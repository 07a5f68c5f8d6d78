/* The profiles of a cluster, as the agent keeps them. */

#include "api_server.h"
#include "nodesync/api_failures.h"
#include "nodesync/profile_watch.h"

#define PATH "/apis/performance.openshift.io/v2/performanceprofiles"
#define PROFILE(name, version, reserved)                                                           \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version                      \
	"\",\"managedFields\":[]},\"spec\":{\"cpu\":{\"reserved\":\"" reserved                     \
	"\"}},\"status\":{\"x\":" version "}}"

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct profile_watch watch;
};

static void fixture_init(struct fixture *f, unsigned status, const char *items, const char *events)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	api_server_set(&f->server,
		       &(struct api_server_rule){ "GET", PATH, "limit=", status, items });
	api_server_set(&f->server,
		       &(struct api_server_rule){ "GET", PATH, "resourceVersion=7", 200, events });
	profile_watch_start(&f->watch, &f->server.api, &f->failures);
}

static void fixture_done(struct fixture *f)
{
	profile_watch_close(&f->watch);
	api_server_done(&f->server);
	profile_watch_done(&f->watch);
}

TEST(profiles_are_kept_without_status_and_a_change_of_it_is_no_change)
{
	CLEANUP(fixture_done) struct fixture f;
	CLEANUP(arena_done) struct arena a;
	yyjson_val **objects;
	size_t n;

	arena_init(&a, 0);
	fixture_init(&f, 200,
		     "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" PROFILE(
			     "p", "5", "0") "," PROFILE("q", "6", "1") "]}",
		     "{\"type\":\"MODIFIED\",\"object\":" PROFILE("p", "8", "0") "}\n");
	API_SERVER_WAIT(&f.server, f.watch.is_known);
	CHECK(f.watch.is_changed && !f.watch.is_listing);
	CHECK_UINT(f.watch.n, 2);
	CHECK_STR(f.watch.items[0].text,
		  "{\"apiVersion\":\"performance.openshift.io/v2\",\"kind\":\"PerformanceProfile\","
		  "\"metadata\":{\"name\":\"p\",\"annotations\":{}},"
		  "\"spec\":{\"cpu\":{\"reserved\":\"0\"}}}");
	f.watch.is_changed = false;
	API_SERVER_WAIT(&f.server, f.watch.watch.events_seen >= 1);
	CHECK(!f.watch.is_changed);
	objects = profile_watch_objects(&f.watch, &a, &n);
	CHECK_UINT(n, 2);
	CHECK_STR(doc_str(doc_find(objects[1], "/spec/cpu/reserved")), "1");
}

TEST(added_changed_and_deleted_profiles_are_changes)
{
	static const char *const versions[] = { PROFILE("p", "8", "1"), PROFILE("p", "9", "0") };
	CLEANUP(fixture_done) struct fixture f;
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;

	arena_init(&a, 0);
	fixture_init(&f, 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", "");
	API_SERVER_WAIT(&f.server, f.watch.is_known);
	watch_pause(&f.watch.watch); /* from here on the events are those of this test */
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		f.watch.is_changed = false;
		CHECK_OK(doc_parse(str_from(versions[i]), STR(""), NULL, &a, &doc, &err));
		f.watch.watch.events->on_object(&f.watch.watch, doc.root);
		CHECK(f.watch.is_changed && f.watch.n == 1);
	}
	f.watch.is_changed = false;
	f.watch.watch.events->on_deleted(&f.watch.watch, doc.root);
	CHECK(f.watch.is_changed && f.watch.n == 0);
}

TEST(a_missing_crd_is_not_at_once_a_cluster_without_profiles)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, 404, "{}", "");
	API_SERVER_WAIT(&f.server, f.watch.watch.is_absent);
	CHECK(!f.watch.is_known);
	f.watch.absent_since_ms -= 30000; /* the uptime is longer */
	f.watch.watch.events->on_list(&f.watch.watch);
	f.watch.watch.events->on_synced(&f.watch.watch);
	CHECK(f.watch.is_known && f.watch.is_changed);
}

TEST(an_error_leaves_the_profiles_unknown)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, 500, "{}", "");
	CHECK(profile_watch_is_undecided(&f.watch));
	API_SERVER_WAIT(&f.server, f.failures.n >= 2);
	CHECK(!f.watch.is_known && !f.watch.is_changed);
	CHECK(profile_watch_is_undecided(&f.watch)); /* the server may have just started */
	API_SERVER_WAIT(&f.server, f.failures.n >= 3);
	CHECK(!profile_watch_is_undecided(&f.watch)); /* the last profile stays in effect */
}

TEST(profiles_are_undecided_from_a_change_until_the_owner_has_seen_it)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", "");
	CHECK(profile_watch_is_undecided(&f.watch));
	API_SERVER_WAIT(&f.server, f.watch.is_known);
	CHECK(profile_watch_is_undecided(&f.watch));
	f.watch.is_changed = false;
	CHECK(!profile_watch_is_undecided(&f.watch));
	f.watch.is_changed = true;
	CHECK(profile_watch_is_undecided(&f.watch));
}
