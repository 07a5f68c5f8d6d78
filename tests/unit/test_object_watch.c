/* The watch of one object, the agent's own Node. */

#include "api_server.h"
#include "nodesync/api_failures.h"
#include "nodesync/object_watch.h"

#define NODE "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"8\"}}"

static const struct object_watch_config nodes = { "/api/v1/nodes", "watch the Node", false };

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct object_watch watch;
	char seen[64]; /* + for a Node, - for none, s for synced */
};

static void note(struct fixture *f, const char *what)
{
	(void)strncat(f->seen, what, sizeof(f->seen) - strlen(f->seen) - 1);
}

static void on_node(struct object_watch *w, yyjson_val *node)
{
	note(container_of(w, struct fixture, watch), node ? "+" : "-");
}

static void on_synced(struct object_watch *w)
{
	note(container_of(w, struct fixture, watch), "s");
}

static void fixture_init(struct fixture *f, const char *items, const char *events)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	f->watch.on_object = on_node;
	f->watch.on_synced = on_synced;
	api_server_set(&f->server,
		       &(struct api_server_rule){ "GET", "/api/v1/nodes",
						  "limit=1&fieldSelector=metadata.name%3Dn1", 200,
						  items });
	api_server_set(&f->server, &(struct api_server_rule){ "GET", "/api/v1/nodes",
							      "resourceVersion=7", 200, events });
	object_watch_start(&f->watch, &f->server.api, &nodes, STR("n1"), &f->failures);
}

static void fixture_done(struct fixture *f)
{
	watch_close(&f->watch.watch);
	api_server_done(&f->server);
	watch_done(&f->watch.watch);
}

TEST(every_version_of_the_node_is_delivered_and_its_deletion)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" NODE "]}",
		     "{\"type\":\"MODIFIED\",\"object\":" NODE "}\n"
		     "{\"type\":\"DELETED\",\"object\":" NODE "}\n");
	API_SERVER_WAIT(&f.server, strlen(f.seen) >= 5);
	f.seen[5] = '\0'; /* then the server knows no version 8, and the list is read again */
	CHECK_STR(f.seen, "-+s+-");
}

TEST(a_node_that_does_not_exist_is_known_to_be_absent)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", "");
	API_SERVER_WAIT(&f.server, f.watch.watch.is_synced);
	CHECK_STR(f.seen, "-s");
}

TEST(a_failure_is_counted_and_retried)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, "no JSON", "");
	API_SERVER_WAIT(&f.server, f.failures.n == 2);
	CHECK(!f.watch.watch.is_synced);
	CHECK_STR(f.seen, "");
}

TEST(a_server_that_rejects_every_request_is_not_asked_at_full_speed)
{
	static const struct {
		const char *what, *query;
		unsigned status;
	} rows[] = {
		{ "no such collection", "limit=1&fieldSelector=metadata.name%3Dn1", 404 },
		{ "no watch of it", "resourceVersion=7", 404 },
		{ "every version is too old", "resourceVersion=7", 410 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("%s", rows[i].what);
		fixture_init(&f, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", "");
		api_server_set(&f.server,
			       &(struct api_server_rule){ "GET", "/api/v1/nodes", rows[i].query,
							  rows[i].status, "{}" });
		/* At least half of 200 + 400 + 800 ms between the first five. */
		api_server_run(&f.server, 400);
		CHECK(api_server_count(&f.server) <= 10);
		API_SERVER_WAIT(&f.server, f.failures.n >= 1);
	}
}
