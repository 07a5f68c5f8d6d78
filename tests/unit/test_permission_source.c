/* Where the agent takes permissions from, and the change between the digest and the namespaces. */

#include "nodesync/permission_source.h"

#include <stdlib.h>
#include <time.h>

#include "api_server.h"
#include "kube/object_time.h"
#include "nodesync/api_failures.h"

TEST(the_digest_counts_only_while_it_can_be_used)
{
	static const struct {
		enum permission_origin now;
		struct permission_facts facts; /* answered, usable, listed, same */
		enum permission_origin want;
	} rows[] = {
		{ PERMISSIONS_UNDECIDED, { 0, 0, 0, 0 }, PERMISSIONS_UNDECIDED },
		{ PERMISSIONS_UNDECIDED, { 1, 0, 0, 0 }, PERMISSIONS_FROM_NAMESPACES },
		{ PERMISSIONS_UNDECIDED, { 1, 1, 0, 0 }, PERMISSIONS_FROM_DIGEST },
		{ PERMISSIONS_FROM_DIGEST, { 1, 1, 0, 0 }, PERMISSIONS_FROM_DIGEST },
		{ PERMISSIONS_FROM_DIGEST, { 1, 0, 0, 0 }, PERMISSIONS_FROM_NAMESPACES },
		{ PERMISSIONS_FROM_NAMESPACES, { 1, 1, 0, 0 }, PERMISSIONS_FROM_DIGEST },
		{ PERMISSIONS_FROM_NAMESPACES, { 1, 1, 1, 1 }, PERMISSIONS_FROM_DIGEST },
		{ PERMISSIONS_FROM_NAMESPACES, { 1, 1, 1, 0 }, PERMISSIONS_FROM_NAMESPACES },
		{ PERMISSIONS_FROM_NAMESPACES, { 1, 0, 1, 1 }, PERMISSIONS_FROM_NAMESPACES },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("row %zu", i);
		CHECK_INT(permission_origin_decide(rows[i].now, &rows[i].facts), rows[i].want);
	}
}

TEST(a_digest_expires_unless_it_is_confirmed)
{
	const int64_t now_s = 1800000000;
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (unsigned minutes = 0; minutes < 12; minutes++) {
		struct digest_age age = { .valid_ms = 300000 };
		const bool is_young = minutes < 5;

		TEST_ROW("%u minutes old", minutes);
		digest_age_observe(&age, object_time(now_s - INT64_C(60) * minutes, &a), now_s,
				   1000);
		CHECK_INT(digest_age_is_valid(&age, true, 1000), is_young);
		CHECK(!digest_age_is_valid(&age, true, 1000 + 300000));
		/* The same again is no confirmation, another time is one, whatever the clocks. */
		digest_age_observe(&age, object_time(now_s - INT64_C(60) * minutes, &a), now_s,
				   400000);
		CHECK(!digest_age_is_valid(&age, true, 400000));
		digest_age_observe(&age, object_time(now_s - 86400, &a), now_s, 500000);
		CHECK(digest_age_is_valid(&age, true, 799999));
		/* Time without a connection does not count. */
		CHECK(digest_age_is_valid(&age, false, 5000000));
		CHECK(digest_age_is_valid(&age, true, 5299999));
		CHECK(!digest_age_is_valid(&age, true, 5300000));
		CHECK(!digest_age_is_valid(&age, false, 5300001));
	}
}

TEST(a_digest_without_a_time_or_from_a_fast_clock_is_handled)
{
	struct digest_age age = { .valid_ms = 300000 };

	digest_age_observe(&age, STR("soon"), 1800000000, 1000);
	CHECK(!digest_age_is_valid(&age, true, 1000));
	age = (struct digest_age){ .valid_ms = 300000 };
	digest_age_observe(&age, STR("2200-01-01T00:00:00Z"), 1800000000, 1000);
	CHECK(digest_age_is_valid(&age, true, 300999));
	CHECK(!digest_age_is_valid(&age, true, 301000));
}

#define NAMESPACES "/api/v1/namespaces"
#define DIGESTS "/api/v1/namespaces/kube-system/configmaps"

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct permission_source source;
	struct arena arena; /* of texts that the server sends */
	unsigned n_known;
	unsigned n_times; /* makes every digest a confirmation */
};

static void on_known(struct permission_source *s)
{
	container_of(s, struct fixture, source)->n_known++;
}

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	arena_init(&f->arena, 0);
	f->source.on_known = on_known;
}

static void fixture_done(struct fixture *f)
{
	permission_source_close(&f->source);
	api_server_done(&f->server);
	permission_source_done(&f->source);
	arena_done(&f->arena);
}

static const char *list_of(struct fixture *f, struct str items)
{
	return str_cstr(&f->arena,
			str_printf(&f->arena,
				   "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" PRI_STR
				   "]}",
				   FMT_STR(items)));
}

static void serve_namespace(struct fixture *f, const char *name, const char *allowed)
{
	api_server_set(
		&f->server,
		&(struct api_server_rule){
			"GET", NAMESPACES, "limit=50", 200,
			list_of(f, str_printf(&f->arena,
					      "{\"metadata\":{\"name\":\"%s\",\"annotations\":{"
					      "\"workload.openshift.io/allowed\":\"%s\"}}}",
					      name, allowed)) });
}

/* A digest that says that these namespaces (lines, escaped) allow the type management. */
static struct str digest(struct fixture *f, const char *names, const char *version)
{
	const struct str time_text =
		object_time((int64_t)time(NULL) - 10 + f->n_times++, &f->arena);

	return str_printf(&f->arena,
			  "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":"
			  "\"pinfold-permissions\",\"resourceVersion\":\"%s\",\"annotations\":{"
			  "\"pinfold.io/renewed\":\"" PRI_STR "\"}},\"data\":{\"management\":\"%s\""
			  "}}",
			  version, FMT_STR(time_text), names);
}

static void serve_digest(struct fixture *f, const char *names)
{
	static const char *const versions[] = { "resourceVersion=7", "resourceVersion=8",
						"resourceVersion=9" };

	api_server_set(&f->server, &(struct api_server_rule){
					   "GET", DIGESTS, "limit=1", 200,
					   list_of(f, names ? digest(f, names, "5") : STR("")) });
	/* A watch without a response keeps what is known. */
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		api_server_set(&f->server,
			       &(struct api_server_rule){ "GET", DIGESTS, versions[i], 500, "{}" });
}

/* An event for a watch that resumes from `version`. */
static void serve_event(struct fixture *f, const char *type, struct str object, const char *version)
{
	const struct str query = str_printf(&f->arena, "resourceVersion=%s", version);

	api_server_set(
		&f->server,
		&(struct api_server_rule){
			"GET", DIGESTS, str_cstr(&f->arena, query), 200,
			str_cstr(&f->arena,
				 str_printf(&f->arena, "{\"type\":\"%s\",\"object\":" PRI_STR "}\n",
					    type, FMT_STR(object))) });
}

static enum permission check(const struct fixture *f, const char *namespace)
{
	return namespace_allowlist_check(&f->source.namespaces.allowlist, str_from(namespace),
					 STR("management"));
}

static bool has_requested_namespaces(struct fixture *f)
{
	const size_t n = api_server_count(&f->server);

	for (size_t i = 0; i < n && i < API_SERVER_REQUESTS; i++)
		if (strcmp(api_server_get(&f->server, i).path, NAMESPACES) == 0)
			return true;
	return false;
}

static void start(struct fixture *f)
{
	permission_source_start(&f->source, &f->server.api, &f->failures);
}

TEST(an_agent_with_a_digest_requests_no_namespaces)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	serve_digest(&f, "dns\\nshop\\n");
	start(&f);
	CHECK_INT(check(&f, "shop"), PERMISSION_UNKNOWN);
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_DIGEST);
	CHECK_UINT(f.n_known, 1);
	CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
	CHECK_INT(check(&f, "other"), PERMISSION_DENIED);
	/* Changes follow by the watch. */
	serve_event(&f, "MODIFIED", digest(&f, "dns\\nnew\\n", "8"), "7");
	serve_event(&f, "MODIFIED", digest(&f, "dns\\nnew\\n", "8"), "8");
	API_SERVER_WAIT(&f.server, check(&f, "new") == PERMISSION_GRANTED);
	CHECK_INT(check(&f, "shop"), PERMISSION_DENIED);
	CHECK(!has_requested_namespaces(&f));
	CHECK_UINT(f.n_known, 1);
}

TEST(an_agent_without_a_digest_watches_the_namespaces)
{
	static const struct {
		unsigned status;
		const char *body;
	} rows[] = {
		{ 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}" },
		{ 403, "{\"message\":\"configmaps is forbidden\"}" },
		{ 500, "{}" },
		{ 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{}}]}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("row %zu", i);
		fixture_init(&f);
		api_server_set(&f.server,
			       &(struct api_server_rule){ "GET", DIGESTS, "limit=1", rows[i].status,
							  rows[i].body });
		serve_namespace(&f, "shop", "management");
		api_server_set(&f.server, &(struct api_server_rule){ "GET", NAMESPACES,
								     "resourceVersion=", 200, "" });
		start(&f);
		API_SERVER_WAIT(&f.server, f.source.namespaces.is_listed);
		CHECK_INT(f.source.origin, PERMISSIONS_FROM_NAMESPACES);
		CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
		CHECK_UINT(f.n_known, 1);
		/* A missing permission to read the digest is no failure: there is no operator. */
		if (rows[i].status == 403)
			CHECK_UINT(f.failures.n, f.source.namespaces.watch.failures);
	}
}

TEST(a_digest_that_disappears_leaves_its_permissions_until_the_namespaces_are_listed)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	serve_digest(&f, "shop\\n");
	api_server_set(&f.server,
		       &(struct api_server_rule){ "GET", NAMESPACES, "limit=50", 503, "{}" });
	start(&f);
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_DIGEST);
	serve_event(&f, "DELETED", digest(&f, "shop\\n", "8"), "7");
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_NAMESPACES);
	API_SERVER_WAIT(&f.server, f.source.namespaces.watch.failures >= 2);
	CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
	serve_namespace(&f, "dns", "management");
	API_SERVER_WAIT(&f.server, f.source.namespaces.is_listed);
	CHECK_INT(check(&f, "shop"), PERMISSION_DENIED);
	CHECK_INT(check(&f, "dns"), PERMISSION_GRANTED);
}

TEST(a_digest_replaces_the_namespaces_only_while_both_say_the_same)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	serve_digest(&f, NULL);
	serve_namespace(&f, "shop", "management");
	start(&f);
	API_SERVER_WAIT(&f.server, f.source.namespaces.is_listed);
	/* An operator that has not seen the latest change yet. */
	serve_event(&f, "ADDED", digest(&f, "dns\\n", "8"), "7");
	API_SERVER_WAIT(&f.server, f.source.has_digest);
	permission_source_tick(&f.source);
	CHECK_INT(f.source.origin, PERMISSIONS_FROM_NAMESPACES);
	CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
	CHECK_INT(check(&f, "dns"), PERMISSION_DENIED);
	serve_event(&f, "MODIFIED", digest(&f, "shop\\n", "9"), "8");
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_DIGEST);
	CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
	CHECK_INT(f.source.namespaces.watch.phase, WATCH_WAITING);
	CHECK(!timer_is_active(&f.source.namespaces.watch.timer));
}

TEST(a_digest_that_is_no_longer_confirmed_gives_way_and_comes_back)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	serve_digest(&f, "shop\\n");
	serve_namespace(&f, "shop", "management");
	start(&f);
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_DIGEST);
	f.source.age.expires_ms = 1; /* instead of minutes later */
	f.source.digest_watch.is_current = true;
	permission_source_tick(&f.source);
	CHECK_INT(f.source.origin, PERMISSIONS_FROM_NAMESPACES);
	API_SERVER_WAIT(&f.server, f.source.namespaces.is_listed);
	CHECK_UINT(f.n_known, 2);
	serve_event(&f, "MODIFIED", digest(&f, "shop\\n", "8"), "7");
	API_SERVER_WAIT(&f.server, f.source.origin == PERMISSIONS_FROM_DIGEST);
	CHECK_UINT(f.n_known, 3);
	CHECK_INT(check(&f, "shop"), PERMISSION_GRANTED);
}

TEST(labels_of_2021_are_read_from_the_namespaces)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	serve_digest(&f, "shop\\n");
	serve_namespace(&f, "dns", "management");
	f.source.namespaces.allowlist.is_legacy = true;
	start(&f);
	API_SERVER_WAIT(&f.server, f.source.namespaces.is_listed);
	CHECK_INT(check(&f, "dns"), PERMISSION_GRANTED);
	CHECK_INT(check(&f, "shop"), PERMISSION_DENIED);
}
