#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/macro.h"
#include "https_client.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/tls.h"
#include "test.h"
#include "test_certs.h"

/* What a client received on one connection. Streams are numbered 1, 3, 5... */
struct client {
	struct https_client https;
	nghttp2_session *session;
	size_t body_n; /* length of the next request's body; SIZE_MAX: it never ends */
	int status[16];
	char response[16][64];
	size_t response_n[16];
	unsigned closed, goaways;
	int32_t last_goaway;
};

static unsigned slot(int32_t id)
{
	return (unsigned)id / 2 % 16;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct client *c = user;

	(void)session;
	(void)value_n;
	(void)flags;
	if (name_n == 7 && memcmp(name, ":status", 7) == 0)
		c->status[slot(frame->hd.stream_id)] = atoi((const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *user)
{
	struct client *c = user;
	size_t *have = &c->response_n[slot(id)];

	(void)session;
	(void)flags;
	for (size_t i = 0; i < n && *have < sizeof(c->response[0]) - 1; i++)
		c->response[slot(id)][(*have)++] = (char)data[i];
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct client *c = user;

	(void)session;
	(void)id;
	(void)error;
	c->closed++;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct client *c = user;
	size_t n = c->body_n < cap ? c->body_n : cap;

	(void)session;
	(void)id;
	(void)source;
	if (c->body_n == SIZE_MAX)
		return NGHTTP2_ERR_DEFERRED; /* never ends */
	memset(buf, 'x', n);
	c->body_n -= n;
	if (!c->body_n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static void client_connect(struct client *c, unsigned port)
{
	nghttp2_session_callbacks *callbacks;

	memset(c, 0, sizeof(*c));
	CHECK(https_connect(&c->https, port, "\x02h2\x08http/1.1"));
	CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	CHECK_INT(nghttp2_session_client_new(&c->session, callbacks, c), 0);
	nghttp2_session_callbacks_del(callbacks);
	CHECK_INT(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void client_close(struct client *c)
{
	nghttp2_session_del(c->session);
	https_close(&c->https);
}

static int32_t ask(struct client *c, const char *method, const char *path, size_t body_n)
{
	const nghttp2_nv fields[] = {
#define NV(k, v) { (uint8_t *)(k), (uint8_t *)(v), strlen(k), strlen(v), 0 }
		NV(":method", method),
		NV(":path", path),
		NV(":scheme", "https"),
		NV(":authority", "x"),
#undef NV
	};
	nghttp2_data_provider provider = { .read_callback = read_body };

	c->body_n = body_n;
	return nghttp2_submit_request(c->session, NULL, fields, ARRAY_LEN(fields),
				      body_n ? &provider : NULL, NULL);
}

/* Sends pending frames; false when the connection is closed. */
static bool push(struct client *c)
{
	const uint8_t *bytes;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(c->session, &bytes)) > 0)
		if (!https_send(&c->https, (const char *)bytes, (size_t)n))
			return false;
	return true;
}

static bool pull(struct client *c)
{
	uint8_t buf[16384];
	int n = SSL_read(c->https.ssl, buf, sizeof(buf));

	/* nghttp2 ignores a second GOAWAY when the client has no streams, so the test reads it
	 * from the bytes. The server sends every frame in a record of its own. */
	if (n >= 17 && buf[3] == NGHTTP2_GOAWAY) {
		c->goaways++;
		c->last_goaway = buf[9] << 24 | buf[10] << 16 | buf[11] << 8 | buf[12];
	}
	return n > 0 && nghttp2_session_mem_recv(c->session, buf, (size_t)n) == n;
}

static void until_closed(struct client *c, unsigned streams)
{
	while (c->closed < streams && push(c) && pull(c))
		;
	CHECK_UINT(c->closed, streams);
}

static void echo(const struct http_request *request, struct http_response *ret, void *context)
{
	(void)context;
	*ret = (struct http_response){
		.status = request->is_truncated ? 413 : 200,
		.content_type = "text/plain",
		.body = str_printf(request->arena, PRI_STR " " PRI_STR " " PRI_STR " %zu",
				   FMT_STR(request->method), FMT_STR(request->path),
				   FMT_STR(request->query), request->body.n),
	};
}

struct fixture {
	struct tls_context tls;
	struct test_cert cert;
	struct server *server;
};

static void start(struct fixture *f)
{
	struct server_config config = { .threads = 2, .tls = &f->tls, .handler = echo };
	struct err err = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	test_cert_make(&f->cert, "localhost");
	tls_context_init(&f->tls);
	CHECK_OK(tls_context_load_server(&f->tls,
					 &(struct tls_server_config){ .cert_pem = f->cert.cert_pem,
								      .key_pem = f->cert.key_pem,
								      .alpn = "h2,http/1.1" },
					 &err));
	CHECK_OK(net_address_parse(STR("127.0.0.1:0"), &config.address, &err));
	CHECK_OK(server_start(&config, &f->server, &err));
}

static void stop(struct fixture *f)
{
	server_stop(f->server);
	tls_context_done(&f->tls);
	test_cert_done(&f->cert);
}

TEST(concurrent_streams_of_one_connection_are_served)
{
	static struct client c;
	struct server_stats stats;
	struct fixture f;

	start(&f);
	client_connect(&c, server_port(f.server));
	(void)ask(&c, "GET", "/a?q", 0);
	(void)ask(&c, "HEAD", "/b", 0);
	(void)ask(&c, "POST", "/c", 100000);
	until_closed(&c, 3);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(c.status[i], 200);
	CHECK_STR(c.response[0], "GET /a q 0");
	CHECK_STR(c.response[1], "");
	CHECK_STR(c.response[2], "POST /c  100000");
	/* The server gives the memory back after it has sent the response. */
	for (int i = 0; i < 10000; i++) {
		server_stats(f.server, &stats);
		if (!stats.in_flight_bytes)
			break;
		(void)poll(NULL, 0, 1);
	}
	CHECK_UINT(stats.http2_connections, 1);
	CHECK_UINT(stats.in_flight_bytes, 0);
	client_close(&c);
	stop(&f);
}

TEST(a_body_above_the_limit_is_refused_and_the_connection_stays_open)
{
	static struct client c;
	struct fixture f;

	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("an emulator encrypts 32 MiB slower than the server waits for them");
	start(&f);
	client_connect(&c, server_port(f.server));
	(void)ask(&c, "POST", "/big", LIMIT_BODY_BYTES + 1);
	until_closed(&c, 1);
	CHECK_INT(c.status[0], 413);
	(void)ask(&c, "GET", "/next", 0);
	until_closed(&c, 2);
	CHECK_INT(c.status[1], 200);
	client_close(&c);
	stop(&f);
}

TEST(goaway_is_sent_before_the_connection_closes)
{
	static struct client c;
	struct fixture f;

	start(&f);
	client_connect(&c, server_port(f.server));
	(void)ask(&c, "GET", "/", 0);
	until_closed(&c, 1);
	server_announce_end(f.server);
	while (!c.goaways)
		CHECK(pull(&c));
	CHECK_INT(c.last_goaway, INT32_MAX);
	server_close(f.server);
	while (pull(&c))
		;
	CHECK_UINT(c.goaways, 2);
	CHECK_INT(c.last_goaway, 1);
	client_close(&c);
	stop(&f);
}

/* A request is in progress when the server closes: the client must know at once that it cannot
 * send another one. */
TEST(goaway_is_sent_at_once_on_a_busy_connection)
{
	struct timeval patience = { .tv_sec = 3 };
	struct server_stats stats = { 0 };
	static struct client c;
	struct fixture f;

	start(&f);
	client_connect(&c, server_port(f.server));
	(void)ask(&c, "GET", "/", 0);
	until_closed(&c, 1);
	(void)ask(&c, "POST", "/", SIZE_MAX);
	CHECK(push(&c));
	for (int i = 0; i < 1000 && !stats.active; i++) {
		(void)poll(NULL, 0, 10);
		server_stats(f.server, &stats);
	}
	server_announce_end(f.server);
	while (!c.goaways)
		CHECK(pull(&c));
	server_close(f.server);
	(void)setsockopt(c.https.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (c.goaways < 2 && pull(&c))
		;
	CHECK_UINT(c.goaways, 2);
	CHECK_INT(c.last_goaway, 3);
	client_close(&c);
	stop(&f);
}

TEST(a_client_that_only_resets_streams_is_disconnected)
{
	static struct client c;
	struct server_stats stats;
	struct fixture f;
	bool alive = true;

	start(&f);
	client_connect(&c, server_port(f.server));
	for (int i = 0; alive && i < 3 * LIMIT_HTTP2_RESETS; i++) {
		int32_t id = ask(&c, "POST", "/", SIZE_MAX);

		if (id < 0)
			break;
		alive = push(&c);
		(void)nghttp2_submit_rst_stream(c.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		alive = alive && push(&c);
	}
	while (pull(&c))
		;
	client_close(&c);
	for (int i = 0; i < 1000; i++) { /* the server counts asynchronously */
		server_stats(f.server, &stats);
		if (stats.closed[SERVER_CLOSE_BAD_REQUEST])
			break;
		(void)poll(NULL, 0, 10);
	}
	CHECK_UINT(stats.closed[SERVER_CLOSE_BAD_REQUEST], 1);
	stop(&f);
}

TEST(invalid_frames_close_only_their_connection)
{
	struct https_client h;
	struct fixture f;
	static struct client c;
	char garbage[1000];

	start(&f);
	CHECK(https_connect(&h, server_port(f.server), "\x02h2"));
	memset(garbage, 0x5a, sizeof(garbage));
	CHECK(https_send(&h, garbage, sizeof(garbage)));
	while (https_more(&h))
		h.n = 0;
	https_close(&h);
	client_connect(&c, server_port(f.server));
	(void)ask(&c, "GET", "/", 0);
	until_closed(&c, 1);
	client_close(&c);
	stop(&f);
}
