#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "net/http.h"
#include "net/http1.h"
#include "net/limits.h"
#include "test.h"

#define HOST "Host: x\r\n"

struct parsed {
	int64_t result;
	struct http1_request request;
};

/* Gives the bytes in pieces of `step`, as a connection would. */
static struct parsed parse(char *bytes, size_t n, size_t step)
{
	struct http1_parser parser = { 0 };
	struct parsed p = { 0 };

	for (size_t shown = 0; !p.result && shown < n;) {
		shown = shown + step < n ? shown + step : n;
		p.result = http1_parse(&parser, bytes, shown, &p.request);
	}
	return p;
}

TEST(a_request_parses_the_same_however_it_is_split)
{
	static const struct {
		const char *bytes, *method, *target, *body;
		bool keep_alive;
	} cases[] = {
		{ "GET /livez HTTP/1.1\r\n" HOST "\r\n", "GET", "/livez", "", true },
		{ "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET", "/", "", true },
		{ "POST /m HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "POST", "/m",
		  "hello", true },
		{ "POST /m HTTP/1.1\r\n" HOST
		  "content-LENGTH:\t5 \r\nContent-Length: 5\r\n\r\nhello",
		  "POST", "/m", "hello", true },
		{ "POST /m?x=1 HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
		  "3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nX: y\r\n\r\n",
		  "POST", "/m?x=1", "hello", true },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST",
		  "/", "", true },
		{ "GET / HTTP/1.0\r\n\r\n", "GET", "/", "", false },
		{ "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/", "", true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: x, CLOSE\r\n\r\n", "GET", "/", "", false },
		{ "GET / HTTP/1.1\r\n" HOST "X: \r\n\r\n", "GET", "/", "", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = strlen(cases[i].bytes);

		for (size_t step = 1; step <= n; step++) {
			AUTO_FREE char *bytes = strdup(cases[i].bytes);
			struct parsed p = parse(bytes, n, step);

			TEST_ROW("row %zu, %zu bytes at a time", i, step);
			CHECK_INT(p.result, (intmax_t)n);
			CHECK_STR(p.request.method, cases[i].method);
			CHECK_STR(p.request.target, cases[i].target);
			CHECK_STR(p.request.body, cases[i].body);
			CHECK(p.request.keep_alive == cases[i].keep_alive);
		}
	}
}

TEST(ambiguous_requests_are_refused)
{
	static const struct {
		const char *bytes;
		int status;
	} cases[] = {
		{ "GET / HTTP/1.1\n" HOST "\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n\r\n", 400 }, /* no Host */
		{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400 },
		{ "GET / HTTP/1.1\r\n" HOST "X : y\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n", 400 },
		{ "GET  / HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "GET / HTTP/1.1 \r\n" HOST "\r\n", 400 },
		{ "GET http://x/ HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "G\x01T / HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "GET /\r\n\r\n", 400 },
		{ "\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST
		  "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\nab\n", 400 },
		{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413 },
		{ "POST / HTTP/1.1\r\n" HOST
		  "Content-Length: 33554433\r\nExpect: 100-continue\r\n\r\n",
		  413 },
		{ "GET / HTTP/1.1\r\n" HOST "Expect: miracles\r\n\r\n", 417 },
		{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505 },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = strlen(cases[i].bytes);
		AUTO_FREE char *bytes = strdup(cases[i].bytes);

		TEST_ROW("row %zu: %s", i, cases[i].bytes);
		CHECK_INT(parse(bytes, n, n).result, -cases[i].status);
		memcpy(bytes, cases[i].bytes, n);
		CHECK_INT(parse(bytes, n, 1).result, -cases[i].status);
	}
}

TEST(a_chunk_line_of_the_maximum_length_parses_the_same_however_it_is_split)
{
	static const size_t sizes[] = { 255, 256, 257, 258 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t step = 1; step < 400; step += step < 4 ? 1 : 99) {
			char bytes[512];
			int n = snprintf(bytes, sizeof(bytes),
					 "POST / HTTP/1.1\r\n" HOST
					 "Transfer-Encoding: chunked\r\n\r\n0;%0*d\r\n\r\n",
					 (int)sizes[i] - 2, 0);

			TEST_ROW("a line of %zu bytes in steps of %zu", sizes[i], step);
			CHECK_INT(parse(bytes, (size_t)n, step).result, sizes[i] > 256 ? -400 : n);
		}
}

TEST(a_header_is_limited_in_bytes_and_in_lines)
{
	const size_t n = LIMIT_HEAD_BYTES + 100;
	AUTO_FREE char *bytes = malloc(n);
	size_t at;

	memset(bytes, 'a', n);
	memcpy(bytes, "GET /", 5);
	CHECK_INT(parse(bytes, n, 1000).result, -431);
	CHECK_INT(parse(bytes, LIMIT_HEAD_BYTES, 1000).result, 0); /* still waiting */

	at = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < LIMIT_HEADER_FIELDS; i++)
		at += (size_t)sprintf(bytes + at, "X: %d\r\n", i);
	at += (size_t)sprintf(bytes + at, "\r\n");
	CHECK_INT(parse(bytes, at, at).result, -431);
}

TEST(the_overhead_of_tiny_chunks_is_limited)
{
	const size_t n = LIMIT_BODY_BYTES + LIMIT_HEAD_BYTES + 2 * LIMIT_CHUNK_OVERHEAD_BYTES;
	AUTO_FREE char *bytes = malloc(n);
	size_t at = (size_t)sprintf(bytes, "POST / HTTP/1.1\r\n" HOST
					   "Transfer-Encoding: chunked\r\n\r\n");

	for (; at + 6 <= n; at += 6)
		memcpy(bytes + at, "1\r\nx\r\n", 6);
	CHECK_INT(parse(bytes, at, 1 << 20).result, -413);
}

TEST(the_second_of_two_requests_starts_where_the_first_ends)
{
	char bytes[] = "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi"
		       "GET /b HTTP/1.1\r\n" HOST "\r\n";
	struct http1_parser parser = { 0 };
	struct http1_request request;
	int64_t first = http1_parse(&parser, bytes, sizeof(bytes) - 1, &request);

	CHECK_STR(request.target, "/a");
	CHECK_INT(http1_parse(&parser, bytes + first, sizeof(bytes) - 1 - (size_t)first, &request),
		  (intmax_t)sizeof(bytes) - 1 - first);
	CHECK_STR(request.target, "/b");
}

TEST(a_parser_reports_that_the_client_expects_100_continue)
{
	char bytes[] = "POST / HTTP/1.1\r\n" HOST
		       "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n";
	struct http1_parser parser = { 0 };
	struct http1_request request;

	CHECK_INT(http1_parse(&parser, bytes, sizeof(bytes) - 1, &request), 0);
	CHECK(parser.expects_continue);
	CHECK_UINT(parser.need, sizeof(bytes) - 1 + 2);
}

TEST(a_query_parameter_is_found_by_its_full_name)
{
	static const struct {
		struct str query;
		bool want;
	} cases[] = {
		{ STR_INIT("verbose"), true },	   { STR_INIT("verbose=1"), true },
		{ STR_INIT("a=b&verbose"), true }, { STR_INIT("verbosely"), false },
		{ STR_INIT("a=verbose"), false },  { STR_INIT(""), false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK(http_query_has(cases[i].query, STR("verbose")) == cases[i].want);
}

TEST(of_a_body_that_is_too_large_the_beginning_is_returned)
{
	AUTO_FREE char *bytes = calloc(1, 1 << 16);
	int head = sprintf(bytes, "POST /m HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
			   LIMIT_BODY_BYTES + 1);
	struct parsed p;

	CHECK_INT(parse(bytes, (size_t)head + LIMIT_BODY_PREFIX_BYTES - 1, 1000).result, 0);
	p = parse(bytes, (size_t)head + LIMIT_BODY_PREFIX_BYTES, 1000);
	CHECK_INT(p.result, (intmax_t)((size_t)head + LIMIT_BODY_PREFIX_BYTES));
	CHECK(p.request.is_truncated && !p.request.keep_alive);
	CHECK_STR(p.request.target, "/m");
	CHECK_UINT(p.request.body.n, LIMIT_BODY_PREFIX_BYTES);
}

TEST(a_request_that_is_not_complete_can_be_read_as_far_as_it_is)
{
	static const struct {
		const char *bytes, *target, *body; /* NULL: nothing yet */
	} rows[] = {
		{ "", NULL, NULL },
		{ "POST /m HTTP/1.1\r\n" HOST, NULL, NULL },
		{ "POST /m HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", "/m", "" },
		{ "\r\nPOST /m HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel", "/m", "hel" },
		{ "POST /m HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n5\r\nlo",
		  "/m", "hello" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *bytes = strdup(rows[i].bytes);
		struct http1_parser parser = { 0 };
		struct http1_request request;

		TEST_ROW("row %zu", i);
		CHECK_INT(http1_parse(&parser, bytes, strlen(bytes), &request), 0);
		CHECK(http1_partial(&parser, str_from(bytes), &request) ==
		      (rows[i].target != NULL));
		if (!rows[i].target)
			continue;
		CHECK_STR(request.method, "POST");
		CHECK_STR(request.target, rows[i].target);
		CHECK_STR(request.body, rows[i].body);
		CHECK(request.is_truncated);
	}
}
