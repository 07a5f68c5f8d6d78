/* gRPC without sockets: framing, status texts, and a client and a server that exchange bytes. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "rpc/grpc.h"
#include "test.h"

TEST(a_body_is_one_message)
{
	static const struct {
		struct str body;
		int code;
		const char *message;
	} rows[] = {
		{ STR_INIT("\0\0\0\0\0"), 0, "" },
		{ STR_INIT("\0\0\0\0\3abc"), 0, "abc" },
		{ STR_INIT(""), EBADMSG, "no whole message: 0 bytes" },
		{ STR_INIT("\0\0\0\0"), EBADMSG, "no whole message: 4 bytes" },
		{ STR_INIT("\0\0\0\0\4abc"), EBADMSG, "not one message: 3 bytes, announced are 4" },
		{ STR_INIT("\0\0\0\0\2abc"), EBADMSG, "not one message: 3 bytes, announced are 2" },
		{ STR_INIT("\0\xff\xff\xff\xff"), EBADMSG,
		  "not one message: 0 bytes, announced are 4294967295" },
		{ STR_INIT("\1\0\0\0\0"), ENOTSUP, "compressed messages are not understood" },
		{ STR_INIT("\2\0\0\0\0"), EBADMSG, "not one message: 0 bytes, announced are 0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };
		struct str message = { 0 };
		int r = grpc_message_of(rows[i].body, &message, &err);

		TEST_ROW("row %zu", i);
		if (rows[i].code)
			CHECK_ERR(r, rows[i].code, rows[i].message);
		else
			CHECK_STR(message, rows[i].message);
	}
}

TEST(status_texts_survive_escaping_and_unescaping)
{
	static const struct {
		const char *text, *wire;
	} rows[] = {
		{ "", "" },
		{ "pod web in namespace shop not found", "pod web in namespace shop not found" },
		{ "100%\n", "100%25%0A" },
		{ "\xc3\xa4", "%C3%A4" },
	};
	char wire[64], back[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].text);
		grpc_escape(str_from(rows[i].text), wire, sizeof(wire));
		CHECK_STR((const char *)wire, rows[i].wire);
		grpc_unescape(str_from(wire), back, sizeof(back));
		CHECK_STR((const char *)back, rows[i].text);
	}
	grpc_unescape(STR("%4 %zz %"), back, sizeof(back));
	CHECK_STR((const char *)back, "%4 %zz %");
	grpc_escape(STR("abc\nd"), back, 6); /* an escape is never cut */
	CHECK_STR((const char *)back, "abc");
	grpc_unescape(STR("abcdefgh"), back, 4);
	CHECK_STR((const char *)back, "abc");
}

/* A server that responds at once, or keeps the call for later. */
struct peer {
	struct grpc *server, *client;
	int32_t kept; /* the last call, when it is not answered at once */
	bool keeps;
	size_t cut; /* bytes a piece */
	unsigned n_answers;
	struct grpc_response last;
	char text[4096], asked[4096], path[256];
};

static char large[300000];

static void on_call(void *user, int32_t call, struct str path, struct str message)
{
	struct peer *p = user;

	(void)snprintf(p->path, sizeof(p->path), PRI_STR, FMT_STR(path));
	(void)snprintf(p->asked, sizeof(p->asked), PRI_STR, FMT_STR(message));
	p->kept = call;
	if (p->keeps)
		return;
	if (str_eq(path, STR("/echo")))
		grpc_respond(p->server, call, &(struct grpc_response){ .message = message });
	else if (str_eq(path, STR("/large")))
		grpc_respond(p->server, call,
			     &(struct grpc_response){ .message = { large, sizeof(large) } });
	else
		grpc_respond(p->server, call,
			     &(struct grpc_response){ .code = GRPC_UNKNOWN,
						      .text = STR("50% of it") });
}

static void on_response(void *user, int32_t call, const struct grpc_response *response)
{
	struct peer *p = user;

	(void)call;
	p->n_answers++;
	p->last = *response;
	(void)snprintf(p->text, sizeof(p->text), PRI_STR,
		       FMT_STR(response->code ? response->text : response->message));
}

/* Exchanges bytes until neither side has any. */
static void shuttle(struct peer *p)
{
	struct str bytes;
	bool moved = true;

	while (moved) {
		struct grpc *ends[] = { p->client, p->server };

		moved = false;
		for (size_t i = 0; i < 2; i++)
			while (grpc_send(ends[i], &bytes)) {
				char *copy = malloc(bytes.n);

				moved = true;
				memcpy(copy, bytes.p, bytes.n);
				for (size_t at = 0; at < bytes.n; at += p->cut) {
					const size_t left = bytes.n - at;
					struct str piece = { copy + at,
							     left < p->cut ? left : p->cut };
					struct err err = { 0 };

					CHECK_OK(grpc_receive(ends[1 - i], piece, &err));
				}
				free(copy);
			}
	}
}

static void meet(struct peer *p, size_t cut)
{
	*p = (struct peer){ .cut = cut };
	p->server = grpc_server_new(on_call, p);
	p->client = grpc_client_new(on_response, p);
}

static void part(struct peer *p)
{
	grpc_free(p->client);
	grpc_free(p->server);
}

TEST(a_call_gets_its_response_for_any_split_of_the_bytes)
{
	static const size_t cuts[] = { 1, 2, 7, 100, 1 << 20 };
	struct peer p;

	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		TEST_ROW("cut every %zu bytes", cuts[i]);
		meet(&p, cuts[i]);
		CHECK(grpc_call(p.client, "/echo", STR("hello")) > 0);
		shuttle(&p);
		CHECK_UINT(p.n_answers, 1);
		CHECK_INT(p.last.code, GRPC_OK);
		CHECK_STR((const char *)p.text, "hello");
		CHECK(grpc_call(p.client, "/nothing", STR("")) > 0);
		shuttle(&p);
		CHECK_INT(p.last.code, GRPC_UNKNOWN);
		CHECK_STR((const char *)p.text, "50% of it");
		CHECK(grpc_call(p.client, "/large", STR("")) > 0);
		shuttle(&p);
		CHECK_INT(p.last.code, GRPC_OK);
		CHECK_UINT(p.n_answers, 3);
		part(&p);
	}
}

TEST(a_response_may_come_later_or_after_the_client_cancelled)
{
	struct peer p;

	meet(&p, 1 << 20);
	p.keeps = true;
	CHECK(grpc_call(p.client, "/echo", STR("now")) > 0);
	shuttle(&p);
	CHECK_STR((const char *)p.asked, "now");
	CHECK_UINT(p.n_answers, 0);
	grpc_respond(p.server, p.kept, &(struct grpc_response){ .message = STR("later") });
	shuttle(&p);
	CHECK_STR((const char *)p.text, "later");
	grpc_respond(p.server, p.kept, &(struct grpc_response){ .message = STR("again") });
	grpc_respond(p.server, 99, &(struct grpc_response){ .message = STR("late") });
	shuttle(&p);
	CHECK_UINT(p.n_answers, 1);
	part(&p);
}

TEST(a_request_beyond_the_limit_is_refused)
{
	struct peer p;

	meet(&p, 1 << 20);
	CHECK(grpc_call(p.client, "/echo", (struct str){ large, GRPC_MAX_REQUEST + 1 }) > 0);
	shuttle(&p);
	CHECK_INT(p.last.code, GRPC_RESOURCE_EXHAUSTED);
	CHECK_STR((const char *)p.text, "the request is too large");
	part(&p);
}

TEST(bytes_that_are_not_http2_end_the_connection)
{
	struct grpc *g = grpc_server_new(on_call, NULL);
	struct err err = { 0 };

	CHECK(grpc_receive(g, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), &err) < 0);
	CHECK_INT(err.code, EPROTO);
	grpc_free(g);
}
