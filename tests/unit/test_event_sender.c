/* Events: one request at a time, retried while that can help. */

#include <errno.h>

#include "api_server.h"
#include "nodesync/api_failures.h"
#include "nodesync/event_sender.h"

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct event_sender sender;
};

static void fixture_init(struct fixture *f, unsigned status)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	event_sender_init(&f->sender);
	event_sender_tick(&f->sender); /* before the start nothing is sent */
	event_sender_start(&f->sender, &f->server.api, STR("n1"), &f->failures);
	api_server_set(&f->server,
		       &(struct api_server_rule){ "POST", "/api/v1/namespaces/shop/events", "",
						  status, "{\"kind\":\"Event\"}" });
	api_server_set(&f->server,
		       &(struct api_server_rule){ "POST", "/api/v1/namespaces/default/events", "",
						  status, "{\"kind\":\"Event\"}" });
}

static void fixture_done(struct fixture *f)
{
	event_sender_close(&f->sender);
	api_server_done(&f->server);
	event_sender_done(&f->sender);
}

static void add(struct fixture *f, const char *pod)
{
	event_queue_add(&f->sender.queue, EVENT_CONTAINER_REFUSED,
			&(struct event_subject){ "shop", pod, pod, "c" }, STR("no CPUs"));
}

TEST(events_are_sent_one_at_a_time)
{
	CLEANUP(fixture_done) struct fixture f;
	struct api_server_request request;

	fixture_init(&f, 201);
	add(&f, "pod-1");
	add(&f, "pod-2");
	event_sender_tick(&f.sender);
	event_sender_tick(&f.sender);
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	CHECK_UINT(api_server_count(&f.server), 1);
	event_sender_tick(&f.sender);
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	event_sender_tick(&f.sender);
	CHECK(!f.sender.in_flight);
	CHECK_UINT(api_server_count(&f.server), 2);
	request = api_server_get(&f.server, 1);
	CHECK(strstr(request.body, "\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"pod-2\"") !=
	      NULL);
	CHECK(strstr(request.body, "\"host\":\"n1\"") != NULL);
	CHECK_UINT(f.failures.n, 0);
}

TEST(an_event_about_the_node_has_its_name_as_uid)
{
	CLEANUP(fixture_done) struct fixture f;
	struct api_server_request request;

	fixture_init(&f, 201);
	event_queue_add(&f.sender.queue, EVENT_RUNTIME_LOST, &(struct event_subject){ 0 },
			STR("gone"));
	event_sender_tick(&f.sender);
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	request = api_server_get(&f.server, 0);
	CHECK_STR(request.path, "/api/v1/namespaces/default/events");
	CHECK(strstr(request.body, "\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"n1\"") != NULL);
}

TEST(repeats_are_counted_and_later_ones_wait)
{
	CLEANUP(fixture_done) struct fixture f;
	struct api_server_request request;

	fixture_init(&f, 201);
	add(&f, "pod-1");
	add(&f, "pod-1");
	add(&f, "pod-1");
	event_sender_tick(&f.sender);
	add(&f, "pod-1"); /* while the request is under way */
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	request = api_server_get(&f.server, 0);
	CHECK(strstr(request.body, "\"count\":3") != NULL);
	CHECK_UINT(f.sender.queue.items[0].count, 1);
	event_sender_tick(&f.sender);
	CHECK(!f.sender.in_flight); /* the same Event is repeated only after some minutes */
}

TEST(an_overloaded_server_gets_the_event_later)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, 503);
	add(&f, "pod-1");
	event_sender_tick(&f.sender);
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	CHECK_UINT(f.sender.queue.items[0].count, 1);
	CHECK_UINT(f.sender.queue.sent, 0);
	CHECK_UINT(f.failures.n, 1);
	event_sender_tick(&f.sender);
	CHECK(!f.sender.in_flight);
	f.sender.retry_ms = loop_now_ms(&f.server.loop);
	event_sender_tick(&f.sender);
	API_SERVER_WAIT(&f.server, !f.sender.in_flight);
	CHECK_UINT(api_server_count(&f.server), 2);
}

TEST(an_event_that_is_refused_is_dropped)
{
	static const unsigned statuses[] = { 403, 404, 409, 422 };

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("%u", statuses[i]);
		fixture_init(&f, statuses[i]);
		add(&f, "pod-1");
		event_sender_tick(&f.sender);
		API_SERVER_WAIT(&f.server, !f.sender.in_flight);
		CHECK_UINT(f.sender.queue.items[0].count, 0);
		CHECK_UINT(f.sender.retry_ms, 0);
		CHECK_UINT(f.failures.n, 1);
	}
}

TEST(only_failures_that_may_pass_are_retried)
{
	static const struct {
		unsigned status;
		int code;
		bool want;
	} rows[] = {
		{ 0, ECONNREFUSED, true }, { 401, EACCES, true },  { 429, EBUSY, true },
		{ 500, EBUSY, true },	   { 403, EACCES, false }, { 404, ENOENT, false },
		{ 409, EEXIST, false },	   { 422, EINVAL, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%u", rows[i].status);
		CHECK_INT(event_sender_retries(rows[i].status, rows[i].code), rows[i].want);
	}
}
