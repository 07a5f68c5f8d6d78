#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "base/arena.h"
#include "base/macro.h"
#include "cluster/backoff.h"
#include "cluster/watch.h"
#include "cluster/watch_event.h"
#include "test.h"

#define EVENT(type, version)                                                                       \
	"{\"type\":\"" type "\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}"

TEST(events_are_complete_however_the_bytes_are_split)
{
	static const char text[] = EVENT("ADDED", "1") "\n" EVENT("MODIFIED", "22") "\n\n" EVENT(
		"DELETED", "333") "\n" EVENT("BOOKMARK", "4");
	static const size_t steps[] = { 1, 2, 3, 7, 64, sizeof(text) };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		CLEANUP(arena_done) struct arena a;
		struct watch_lines lines = { 0 };
		struct err err = { 0 };
		char seen[64] = "";

		TEST_ROW("%zu bytes at a time", steps[i]);
		arena_init(&a, 0);
		for (size_t at = 0; at < sizeof(text) - 1; at += steps[i]) {
			struct str rest = { text + at, sizeof(text) - 1 - at }, line;

			rest.n = rest.n < steps[i] ? rest.n : steps[i];
			while (watch_lines_next(&lines, &rest, &line, &err) > 0) {
				struct watch_event event;
				size_t n = strlen(seen);

				if (!line.n)
					continue;
				CHECK_OK(watch_event_parse(line, &a, &event, &err));
				(void)snprintf(seen + n, sizeof(seen) - n, "%d:" PRI_STR " ",
					       (int)event.type, FMT_STR(event.resource_version));
			}
		}
		CHECK_STR(seen, "0:1 1:22 2:333 "); /* the last line is incomplete */
		watch_lines_done(&lines);
	}
}

TEST(a_line_above_the_limit_is_an_error)
{
	AUTO_FREE char *piece = malloc(1 << 20);
	struct watch_lines lines = { 0 };
	struct err err = { 0 };
	struct str line;
	int r = 0;

	memset(piece, 'x', 1 << 20);
	for (int i = 0; i < 9 && r >= 0; i++) {
		struct str bytes = { piece, 1 << 20 };

		do
			r = watch_lines_next(&lines, &bytes, &line, &err);
		while (r >= 0 && bytes.n);
	}
	CHECK_INT(r, -EMSGSIZE);
	CHECK(buffer_len(&lines.rest) <= WATCH_EVENT_MAX_BYTES);
	watch_lines_done(&lines);
}

TEST(an_invalid_event_is_an_error)
{
	static const char *const rows[] = {
		"",
		"null",
		"[]",
		"{",
		"{}",
		"{\"type\":\"ADDED\"}",
		"{\"type\":\"ADDED\",\"object\":[]}",
		"{\"type\":\"ADDED\",\"object\":{}}",
		"{\"type\":\"NEW\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct watch_event event = { .code = 7 };
		struct err err = { 0 };

		TEST_ROW("%s", rows[i]);
		arena_init(&a, 0);
		CHECK(watch_event_parse(str_from(rows[i]), &a, &event, &err) < 0);
		CHECK(err.msg[0] != '\0');
		CHECK_UINT(event.code, 7);
	}
}

TEST(an_error_event_has_a_code_and_a_message)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct watch_event event;

	arena_init(&a, 0);
	CHECK_OK(watch_event_parse(STR("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
				       "\"code\":410,\"message\":\"too old resource version\"}}"),
				   &a, &event, &err));
	CHECK_UINT(event.type, WATCH_EVENT_ERROR);
	CHECK_UINT(event.code, 410);
	CHECK_STR(event.message, "too old resource version");
}

TEST(the_delay_doubles_up_to_a_limit_and_has_jitter)
{
	static const uint64_t most[] = { 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };
	struct backoff low = { 0 }, high = { 0 }, many = { .n = UINT32_MAX - 1 };

	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		TEST_ROW("failure %zu", i);
		CHECK_UINT(backoff_next(&high, 0), most[i]);
		CHECK_UINT(backoff_next(&low, UINT32_MAX), most[i] / 2);
	}
	CHECK_UINT(backoff_next(&many, 0), BACKOFF_MAX_MS);
	backoff_reset(&high);
	CHECK_UINT(backoff_next(&high, 0), 100);
}

TEST(clients_that_start_together_are_spread_over_the_whole_time)
{
	CHECK_UINT(backoff_spread(1000, 0), 0);
	CHECK_UINT(backoff_spread(1000, UINT32_MAX / 2), 499);
	CHECK_UINT(backoff_spread(1000, UINT32_MAX), 1000);
	CHECK_UINT(backoff_spread(0, UINT32_MAX), 0);
}

TEST(only_a_version_that_is_too_old_causes_a_new_list)
{
	static const struct {
		const char *what;
		struct watch_outcome o;
		struct watch_plan plan;
	} rows[] = {
		{ "list complete",
		  { .was_list = true, .status = 200 },
		  { false, WATCH_AT_ONCE, false } },
		{ "list: no connection",
		  { .was_list = true, .failed = true },
		  { true, WATCH_BACK_OFF, true } },
		{ "list: the server is busy",
		  { .was_list = true, .failed = true, .status = 429, .failures = 4 },
		  { true, WATCH_BACK_OFF, true } },
		{ "list: the server fails for this page again and again",
		  { .was_list = true, .failed = true, .status = 500, .failures = 5 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: an unreadable page",
		  { .was_list = true, .failed = true, .status = 200 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: forbidden",
		  { .was_list = true, .failed = true, .status = 403 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: token of a page too old",
		  { .was_list = true, .failed = true, .status = 410 },
		  { true, WATCH_AT_ONCE, false } },
		{ "list: token too old again",
		  { .was_list = true, .failed = true, .status = 410, .failures = 1 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: no such collection",
		  { .was_list = true, .failed = true, .status = 404 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: no such collection, again",
		  { .was_list = true, .failed = true, .status = 404, .failures = 3 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: a CRD that is not installed",
		  { .was_list = true, .failed = true, .status = 404, .may_be_absent = true },
		  { true, WATCH_ABSENT, false } },
		{ "list: a CRD that is not installed, for a minute",
		  { .was_list = true,
		    .failed = true,
		    .status = 404,
		    .may_be_absent = true,
		    .absences = 6 },
		  { true, WATCH_LONG_ABSENT, false } },
		{ "list: forbidden, not expected",
		  { .was_list = true, .failed = true, .status = 403 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: forbidden repeatedly",
		  { .was_list = true,
		    .failed = true,
		    .status = 403,
		    .may_be_forbidden = true,
		    .refusals = 8 },
		  { true, WATCH_FORBIDDEN, false } },
		{ "list: forbidden by a starting server",
		  { .was_list = true,
		    .failed = true,
		    .status = 403,
		    .may_be_forbidden = true,
		    .refusals = 7 },
		  { true, WATCH_BACK_OFF, false } },
		{ "list: forbidden by a server that starts after an outage",
		  { .was_list = true,
		    .failed = true,
		    .status = 403,
		    .may_be_forbidden = true,
		    .failures = 100 },
		  { true, WATCH_BACK_OFF, false } },
		{ "watch: forbidden repeatedly",
		  { .status = 403, .may_be_forbidden = true, .refusals = 8 },
		  { true, WATCH_FORBIDDEN, false } },
		{ "watch: ended by its timeout",
		  { .status = 200 },
		  { false, WATCH_AT_ONCE, false } },
		{ "watch: connection lost",
		  { .failed = true, .status = 200 },
		  { false, WATCH_BACK_OFF, false } },
		{ "watch: no connection", { .failed = true }, { false, WATCH_BACK_OFF, false } },
		{ "watch: no connection for hours",
		  { .failed = true, .failures = 1000 },
		  { false, WATCH_BACK_OFF, false } },
		{ "watch: server not ready", { .status = 503 }, { false, WATCH_BACK_OFF, false } },
		{ "watch: rejected repeatedly",
		  { .status = 500, .failures = 5 },
		  { true, WATCH_BACK_OFF, false } },
		{ "watch: too old", { .status = 410 }, { true, WATCH_AT_ONCE, false } },
		{ "watch: too old, by an ERROR event",
		  { .status = 200, .event_code = 410 },
		  { true, WATCH_AT_ONCE, false } },
		{ "watch: another error event",
		  { .status = 200, .event_code = 500 },
		  { false, WATCH_BACK_OFF, false } },
		{ "watch: unreadable",
		  { .status = 200, .unreadable = true },
		  { true, WATCH_BACK_OFF, false } },
		{ "watch: ends immediately",
		  { .status = 200, .was_brief = true },
		  { false, WATCH_BACK_OFF, false } },
		{ "watch: the CRD was removed",
		  { .status = 404, .may_be_absent = true },
		  { true, WATCH_AT_ONCE, false } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct watch_plan got = watch_decide(&rows[i].o);

		TEST_ROW("%s", rows[i].what);
		CHECK_INT(got.relist, rows[i].plan.relist);
		CHECK_INT(got.delay, rows[i].plan.delay);
		CHECK_INT(got.keeps_page, rows[i].plan.keeps_page);
	}
}

static struct {
	unsigned lists, objects, synced, failures;
} seen;

static void on_object(struct watch *w, yyjson_val *object)
{
	(void)w;
	CHECK(object);
	seen.objects++;
}

static void on_list(struct watch *w)
{
	(void)w;
	seen.lists++;
}

static void on_synced(struct watch *w)
{
	(void)w;
	seen.synced++;
}

static void on_failure(struct watch *w, const struct err *err)
{
	(void)w;
	CHECK(err->code);
	seen.failures++;
}

#define NODE(name) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"7\"}}"

TEST(a_list_goes_on_with_the_page_that_failed)
{
	static const struct watch_config config = { .path = "/api/v1/nodes", .page = 1 };
	static const struct watch_callbacks callbacks = { .on_object = on_object,
							  .on_deleted = on_object,
							  .on_list = on_list,
							  .on_synced = on_synced,
							  .on_failure = on_failure };
	struct api_server_rule second = { "GET", "/api/v1/nodes", "continue=", 503, "{}" };
	struct api_server server;
	struct watch w;

	api_server_init(&server);
	api_server_set(&server, &second);
	api_server_set(&server, &(struct api_server_rule){ "GET", "/api/v1/nodes", "limit=1", 200,
							   "{\"metadata\":{\"continue\":\"ab\"},"
							   "\"items\":[" NODE("a") "]}" });
	watch_init(&w, &server.api, &config, &callbacks);
	API_SERVER_WAIT(&server, seen.failures == 2);
	second.status = 200;
	second.body = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" NODE("b") "]}";
	api_server_set(&server, &second);
	API_SERVER_WAIT(&server, seen.synced == 1);
	CHECK_UINT(seen.lists, 1); /* the first page was read once */
	CHECK_UINT(seen.objects, 2);
	watch_close(&w);
	api_server_done(&server);
	watch_done(&w);
}
