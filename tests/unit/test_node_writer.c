/* What the agent writes to its Node, when, and when it stops trying. */

#include "api_server.h"
#include "nodesync/api_failures.h"
#include "nodesync/node_writer.h"
#include "pin/event_queue.h"

#define CORES "management.workload.openshift.io/cores"
#define NODE "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"1\"}"
#define CONDITION(reason)                                                                          \
	"\"conditions\":[{\"type\":\"PartitioningReady\",\"status\":\"True\","                     \
	"\"reason\":\"" reason "\",\"message\":\"fine\"}]"
#define NODE_WRITTEN                                                                               \
	NODE ",\"status\":{\"capacity\":{\"" CORES "\":\"8k\"},\"allocatable\":{\"" CORES          \
	     "\":\"8k\"}," CONDITION("Pinning") "}}"
#define NODE_TAINTED                                                                               \
	NODE ",\"spec\":{\"taints\":[{\"key\":\"pinfold.io/unpartitioned\","                       \
	     "\"effect\":\"NoSchedule\"}]},\"status\":{\"capacity\":{\"" CORES                     \
	     "\":\"8k\"},\"allocatable\":{\"" CORES "\":\"8k\"}," CONDITION("Pinning") "}}"

struct fixture {
	struct api_server server;
	struct arena a;
	struct api_failures failures;
	struct event_queue events;
	struct node_writer writer;
};

static struct node_desired desired(void *data, bool is_leaving, struct arena *a)
{
	(void)data;
	(void)a;
	return (struct node_desired){ .amounts = { .milli = { 8000, NODE_ABSENT, NODE_ABSENT } },
				      .reason = is_leaving ? NODE_AGENT_STOPPED : NODE_PINNING,
				      .message = STR("fine"),
				      .taint = NODE_TAINT_REMOVE,
				      .now_s = 1794700800 };
}

static void fixture_init(struct fixture *f, bool registers)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	arena_init(&f->a, 0);
	event_queue_init(&f->events);
	node_writer_init(&f->writer, &(struct node_writer_config){ .registration.name = STR("n1"),
								   .registers = registers,
								   .desired = desired,
								   .events = &f->events,
								   .failures = &f->failures });
	node_writer_start(&f->writer, &f->server.api);
}

static void fixture_done(struct fixture *f)
{
	node_writer_close(&f->writer);
	api_server_done(&f->server);
	event_queue_done(&f->events);
	arena_done(&f->a);
}

static void observe(struct fixture *f, const char *json)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	if (json)
		CHECK_OK(doc_parse(str_from(json), STR("test"), NULL, &f->a, &doc, &err));
	node_writer_observe(&f->writer, doc.root);
}

static void respond_to_status(struct fixture *f, unsigned status, const char *node)
{
	api_server_set(&f->server, &(struct api_server_rule){ "PATCH", "/api/v1/nodes/n1/status",
							      "", status, node });
}

TEST(the_next_write_is_the_status_then_the_taint)
{
	static const struct {
		const char *what, *node;
		struct node_write_rules rules;
		enum node_write_kind want;
		const char *method, *path;
	} rows[] = {
		{ "nothing differs",
		  NODE_WRITTEN,
		  { .may_register = true, .may_taint = true },
		  NODE_WRITE_NONE,
		  "",
		  "" },
		{ "no resources",
		  NODE "}",
		  { .may_taint = true },
		  NODE_WRITE_STATUS,
		  "PATCH",
		  "/api/v1/nodes/n1/status" },
		{ "the taint is left to remove",
		  NODE_TAINTED,
		  { .may_taint = true },
		  NODE_WRITE_TAINT,
		  "PATCH",
		  "/api/v1/nodes/n1" },
		{ "taints are forbidden", NODE_TAINTED, { 0 }, NODE_WRITE_NONE, "", "" },
		{ "no Node",
		  NULL,
		  { .may_register = true },
		  NODE_WRITE_REGISTER,
		  "POST",
		  "/api/v1/nodes" },
		{ "no Node, registering is off",
		  NULL,
		  { .may_taint = true },
		  NODE_WRITE_NONE,
		  "",
		  "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct node_write_rules rules = rows[i].rules;
		struct node_write write = { .request.method = "" };
		struct node_observed observed;
		struct node_desired want;
		struct err err = { 0 };
		struct doc doc = { 0 };

		TEST_ROW("%s", rows[i].what);
		arena_init(&a, 0);
		if (rows[i].node)
			CHECK_OK(doc_parse(str_from(rows[i].node), STR("test"), NULL, &a, &doc,
					   &err));
		node_observed_of(doc.root, &observed);
		rules.registration.name = STR("n1");
		want = desired(NULL, false, &a);
		CHECK_INT(node_write_plan(&observed, &want, &rules, &a, &write, &err),
			  rows[i].want != NODE_WRITE_NONE);
		CHECK_INT(write.kind, rows[i].want);
		CHECK_STR(write.request.method, rows[i].method);
		CHECK_STR(write.request.path, rows[i].path);
	}
}

TEST(a_node_whose_pools_are_undecided_is_left_alone_but_registered)
{
	const struct node_write_rules rules = { .may_register = true,
						.may_taint = true,
						.registration.name = STR("n1") };
	CLEANUP(arena_done) struct arena a;
	struct node_observed observed;
	struct node_desired want;
	struct node_write write;
	struct err err = { 0 };
	struct doc doc;

	arena_init(&a, 0);
	want = desired(NULL, false, &a);
	want.is_undecided = want.is_heartbeat_due = true;
	CHECK_OK(doc_parse(STR(NODE_TAINTED), STR("test"), NULL, &a, &doc, &err));
	node_observed_of(doc.root, &observed);
	CHECK_INT(node_write_plan(&observed, &want, &rules, &a, &write, &err), 0);
	node_observed_of(NULL, &observed);
	CHECK_INT(node_write_plan(&observed, &want, &rules, &a, &write, &err), 1);
	CHECK_INT(write.kind, NODE_WRITE_REGISTER);
}

TEST(a_node_without_the_resources_gets_them_once)
{
	CLEANUP(fixture_done) struct fixture f;
	struct api_server_request request;

	fixture_init(&f, false);
	respond_to_status(&f, 200, NODE_WRITTEN);
	observe(&f, NODE "}");
	node_writer_update(&f.writer);
	node_writer_update(&f.writer); /* one request at a time */
	API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
	request = api_server_get(&f.server, 0);
	CHECK_STR(request.method, "PATCH");
	CHECK_STR(request.path, "/api/v1/nodes/n1/status");
	CHECK(strstr(request.body, "\"" CORES "\":\"8k\"") != NULL);
	CHECK_UINT(f.writer.n_written[NODE_WRITE_STATUS], 1);
	API_SERVER_WAIT(&f.server, !timer_is_active(&f.writer.delay));
	node_writer_update(&f.writer);
	CHECK_INT(f.writer.writing, NODE_WRITE_NONE);
	CHECK_UINT(api_server_count(&f.server), 1);
	CHECK_UINT(f.events.n, 0);
}

TEST(a_failed_write_is_retried_after_a_growing_delay)
{
	CLEANUP(fixture_done) struct fixture f;
	uint64_t start_ms;

	fixture_init(&f, false);
	respond_to_status(&f, 500, "{\"message\":\"etcd is down\"}");
	observe(&f, NODE "}");
	start_ms = loop_now_ms(&f.server.loop);
	node_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.failures.n == 3);
	/* Half of 100 ms and half of 200 ms are the least. */
	CHECK(loop_now_ms(&f.server.loop) - start_ms >= 150);
	respond_to_status(&f, 200, NODE_WRITTEN);
	API_SERVER_WAIT(&f.server, f.writer.n_written[NODE_WRITE_STATUS] == 1);
	CHECK_UINT(api_server_count(&f.server), 4);
}

TEST(a_controller_that_reverts_every_write_is_not_fought_at_full_speed)
{
	CLEANUP(fixture_done) struct fixture f;
	uint64_t start_ms;

	fixture_init(&f, false);
	respond_to_status(&f, 200, NODE ",\"status\":{\"capacity\":{\"" CORES "\":\"0\"}}}");
	observe(&f, NODE "}");
	start_ms = loop_now_ms(&f.server.loop);
	node_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.n_written[NODE_WRITE_STATUS] == 4);
	/* Half of 100 + 200 + 400 ms between four writes. */
	CHECK(loop_now_ms(&f.server.loop) - start_ms >= 350);
	CHECK_UINT(f.events.n, 1);
	CHECK_INT(f.events.items[0].kind, EVENT_RESOURCES_RESTORED);
	CHECK_UINT(f.failures.n, 0);
}

TEST(a_quiet_time_resets_the_delay_between_writes)
{
	static const struct {
		uint64_t since_last_write_ms;
		unsigned want; /* failures that the delay counts */
	} rows[] = { { 9000, 6 }, { 11000, 1 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("row %zu", i);
		fixture_init(&f, false);
		respond_to_status(&f, 200, NODE_WRITTEN);
		observe(&f, NODE "}");
		f.writer.backoff.n = 5;
		f.writer.written_ms = loop_now_ms(&f.server.loop) - rows[i].since_last_write_ms;
		node_writer_update(&f.writer);
		API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
		CHECK_UINT(f.writer.backoff.n, rows[i].want);
	}
}

TEST(a_conflict_is_not_a_failure)
{
	static const unsigned statuses[] = { 409, 404 };

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("%u", statuses[i]);
		fixture_init(&f, false);
		respond_to_status(&f, statuses[i], "{}");
		observe(&f, NODE "}");
		node_writer_update(&f.writer);
		API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
		CHECK_UINT(f.failures.n, 0);
		CHECK_UINT(f.writer.n_written[NODE_WRITE_STATUS], 0);
		CHECK(timer_is_active(&f.writer.delay));
	}
}

TEST(tainting_stops_for_a_while_when_it_stays_forbidden)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, false);
	api_server_set(&f.server,
		       &(struct api_server_rule){ "PATCH", "/api/v1/nodes/n1", "", 403, "{}" });
	observe(&f, NODE_TAINTED);
	f.writer.heartbeat_ms = loop_now_ms(&f.server.loop); /* the status needs no write */
	node_writer_update(&f.writer);
	CHECK_INT(f.writer.writing, NODE_WRITE_TAINT);
	API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
	CHECK_UINT(f.writer.taint_after_ms, 0); /* an API server that starts refuses at first */
	timer_stop(&f.writer.delay);
	f.writer.n_taint_refused = BACKOFF_SURE_FAILURES;
	node_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
	CHECK(f.writer.taint_after_ms > loop_now_ms(&f.server.loop));
	timer_stop(&f.writer.delay);
	node_writer_update(&f.writer);
	CHECK_INT(f.writer.writing, NODE_WRITE_NONE);
	CHECK_UINT(api_server_count(&f.server), 2);
}

TEST(a_server_that_starts_after_an_outage_does_not_stop_tainting)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, false);
	observe(&f, NODE_TAINTED);
	f.writer.heartbeat_ms = loop_now_ms(&f.server.loop);
	f.writer.backoff.n = 100; /* no response for a long time */
	api_server_set(&f.server,
		       &(struct api_server_rule){ "PATCH", "/api/v1/nodes/n1", "", 403, "{}" });
	for (int i = 0; i < BACKOFF_SURE_FAILURES; i++) {
		node_writer_update(&f.writer);
		API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
		timer_stop(&f.writer.delay);
	}
	CHECK_UINT(f.writer.taint_after_ms, 0);
	api_server_set(&f.server,
		       &(struct api_server_rule){ "PATCH", "/api/v1/nodes/n1", "", 500, "{}" });
	node_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.writing == NODE_WRITE_NONE);
	CHECK_UINT(f.writer.n_taint_refused, 0);
	CHECK_UINT(api_server_count(&f.server), BACKOFF_SURE_FAILURES + 1);
}

TEST(a_node_is_registered_only_if_it_has_never_existed)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, true);
	api_server_set(&f.server,
		       &(struct api_server_rule){ "POST", "/api/v1/nodes", "", 201, NODE_WRITTEN });
	observe(&f, NULL);
	node_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.n_written[NODE_WRITE_REGISTER] == 1);
	CHECK(f.writer.observed.exists);
	observe(&f, NULL); /* deleted */
	timer_stop(&f.writer.delay);
	node_writer_update(&f.writer);
	CHECK_INT(f.writer.writing, NODE_WRITE_NONE);
	CHECK_UINT(api_server_count(&f.server), 1);
}

TEST(leaving_writes_the_condition_and_nothing_else)
{
	CLEANUP(fixture_done) struct fixture f;
	struct api_server_request request;

	fixture_init(&f, true);
	respond_to_status(&f, 200, NODE_TAINTED);
	node_writer_leave(&f.writer); /* there is no Node: returns at once */
	CHECK_UINT(api_server_count(&f.server), 0);
	observe(&f, NODE_TAINTED);
	node_writer_leave(&f.writer);
	CHECK_UINT(api_server_count(&f.server), 1);
	request = api_server_get(&f.server, 0);
	CHECK_STR(request.path, "/api/v1/nodes/n1/status");
	CHECK(strstr(request.body, "\"reason\":\"AgentStopped\"") != NULL);
}
