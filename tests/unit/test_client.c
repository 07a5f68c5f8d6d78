#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "net/client.h"
#include "net/server.h"
#include "test.h"
#include "test_certs.h"

/* The server of net/server.h on loopback, and the client's loop in the test's thread. */
struct fixture {
	struct test_cert cert;
	struct tls_context server_tls, client_tls;
	struct server *server;
	struct loop loop;
	struct http_client client;
	struct timer patience;
	unsigned pending;
};

struct call {
	struct http_call http;
	struct fixture *f;
	struct buffer got;
	struct err err;
	unsigned ends, heads;
	bool again; /* start again from on_end */
};

static void response(const struct http_request *rq, struct http_response *ret, void *context)
{
	(void)context;
	*ret = (struct http_response){ .status = 200, .content_type = "text/plain" };
	if (str_eq(rq->path, STR("/echo"))) {
		ret->body = str_printf(rq->arena, PRI_STR " " PRI_STR " " PRI_STR,
				       FMT_STR(rq->method), FMT_STR(rq->query), FMT_STR(rq->body));
	} else if (str_eq(rq->path, STR("/big"))) {
		char *p = arena_alloc(rq->arena, 5 << 20, 1);

		memset(p, 'x', 5 << 20);
		ret->body = (struct str){ p, 5 << 20 };
	} else {
		http_response_status(ret, 404, rq->arena);
	}
}

static void on_patience(struct timer *t)
{
	struct fixture *f = container_of(t, struct fixture, patience);

	loop_stop(&f->loop);
}

static unsigned serve(struct fixture *f, unsigned port, const char *alpn)
{
	struct server_config config = { .threads = 1, .tls = &f->server_tls, .handler = response };
	struct err err = { 0 };
	char address[32];

	CHECK_OK(tls_context_load_server(&f->server_tls,
					 &(struct tls_server_config){ .cert_pem = f->cert.cert_pem,
								      .key_pem = f->cert.key_pem,
								      .alpn = alpn },
					 &err));
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	CHECK_OK(net_address_parse(str_from(address), &config.address, &err));
	CHECK_OK(server_start(&config, &f->server, &err));
	return server_port(f->server);
}

static void fixture_init(struct fixture *f, const char *host, const char *alpn)
{
	struct http_client_config config = { .host = host,
					     .tls = &f->client_tls,
					     .user_agent = "test" };
	struct err err = { 0 };

	memset(f, 0, sizeof(*f));
	test_cert_make(&f->cert, "localhost");
	tls_context_init(&f->server_tls);
	tls_context_init(&f->client_tls);
	config.port = (uint16_t)serve(f, 0, alpn);
	CHECK_OK(tls_context_load_client(
		&f->client_tls,
		&(struct tls_client_config){ .ca_pem = f->cert.cert_pem, .alpn = "h2" }, &err));
	CHECK_OK(loop_init(&f->loop, &err));
	http_client_init(&f->client, &f->loop, &config);
	timer_init(&f->patience, &f->loop, on_patience);
}

static void fixture_done(struct fixture *f)
{
	http_client_close(&f->client);
	loop_done(&f->loop);
	if (f->server)
		server_stop(f->server);
	tls_context_done(&f->server_tls);
	tls_context_done(&f->client_tls);
	test_cert_done(&f->cert);
}

static void on_head(struct http_call *http)
{
	container_of(http, struct call, http)->heads++;
}

static void on_data(struct http_call *http, struct str bytes)
{
	buffer_add(&container_of(http, struct call, http)->got, bytes);
}

static void on_end(struct http_call *http, const struct err *err)
{
	struct call *c = container_of(http, struct call, http);

	c->ends++;
	if (err)
		c->err = *err;
	if (c->again) {
		c->again = false;
		http_client_start(&c->f->client, http);
	} else if (--c->f->pending == 0) {
		loop_stop(&c->f->loop);
	}
}

static void begin(struct fixture *f, struct call *c, const char *method, const char *path,
		  struct str body)
{
	c->f = f;
	c->http = (struct http_call){ .method = method,
				      .path = path,
				      .body = body,
				      .timeout_ms = 60000,
				      .on_head = on_head,
				      .on_data = on_data,
				      .on_end = on_end };
	f->pending++;
	http_client_start(&f->client, &c->http);
}

static void wait_all(struct fixture *f)
{
	timer_start(&f->patience, 120000, 0);
	loop_run(&f->loop);
	CHECK_UINT(f->pending, 0);
}

TEST(many_calls_share_one_connection)
{
	static struct call calls[50];
	struct call big = { 0 }, missing = { 0 };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2,http/1.1");
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		begin(&f, &calls[i], "POST", "/echo?q", STR("hello"));
	begin(&f, &big, "GET", "/big", STR(""));
	begin(&f, &missing, "GET", "/nothing", STR(""));
	wait_all(&f);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		CHECK_STR(calls[i].err.msg, "");
		CHECK_UINT(calls[i].http.status, 200);
		CHECK_UINT(calls[i].heads, 1);
		CHECK_STR(buffer_str(&calls[i].got), "POST q hello");
		buffer_done(&calls[i].got);
	}
	CHECK_UINT(buffer_len(&big.got), 5 << 20); /* more than any window */
	CHECK_UINT(missing.http.status, 404);
	CHECK_UINT(f.client.connections, 1);
	buffer_done(&big.got);
	buffer_done(&missing.got);
	fixture_done(&f);
}

static void wait_until_the_socket_is_full(struct http_call *http)
{
	(void)http;
	(void)poll(NULL, 0, 200);
}

static void drop_connection(struct http_call *http, struct str bytes)
{
	(void)bytes;
	http_client_drop(http->client, "enough");
}

/* The socket has more than one read holds: libuv reads again before the teardown. */
TEST(bytes_that_arrive_while_the_connection_closes_are_discarded)
{
	struct call c = { 0 };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &c, "GET", "/big", STR(""));
	c.http.on_head = wait_until_the_socket_is_full;
	c.http.on_data = drop_connection;
	wait_all(&f);
	CHECK_STR(c.err.msg, "enough");
	CHECK_UINT(c.ends, 1);
	fixture_done(&f);
}

TEST(a_large_body_is_sent_completely)
{
	AUTO_FREE char *body = malloc(3 << 20);
	struct call c = { 0 };
	struct fixture f;

	memset(body, 'y', 3 << 20);
	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &c, "PUT", "/echo", (struct str){ body, 3 << 20 });
	wait_all(&f);
	CHECK_UINT(buffer_len(&c.got), (3 << 20) + strlen("PUT  "));
	buffer_done(&c.got);
	fixture_done(&f);
}

TEST(a_name_is_resolved)
{
	struct call c = { 0 };
	struct fixture f;

	fixture_init(&f, "localhost", "h2");
	begin(&f, &c, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_STR(c.err.msg, "");
	CHECK_STR(buffer_str(&c.got), "GET  ");
	buffer_done(&c.got);
	fixture_done(&f);
}

TEST(after_the_server_restarts_the_next_call_gets_a_new_connection)
{
	struct call first = { 0 }, lost = { 0 }, second = { 0 };
	struct fixture f;
	unsigned port;

	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &first, "GET", "/echo", STR(""));
	wait_all(&f);
	port = server_port(f.server);
	server_stop(f.server);
	f.server = NULL;
	begin(&f, &lost, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK(lost.err.code != 0);
	CHECK_UINT(lost.ends, 1);
	(void)serve(&f, port, "h2");
	begin(&f, &second, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_STR(second.err.msg, "");
	CHECK_UINT(f.client.connections, 2);
	buffer_done(&first.got);
	buffer_done(&second.got);
	fixture_done(&f);
}

TEST(a_failed_connection_is_followed_by_one_to_the_other_address)
{
	struct call lost = { 0 }, second = { 0 }, third = { 0 };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2");
	f.client.config.other_host = "127.0.0.1";
	f.client.config.other_port = f.client.config.port;
	f.client.config.port = 1; /* nothing listens there */
	begin(&f, &lost, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK(lost.err.code != 0);
	begin(&f, &second, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_STR(second.err.msg, "");
	/* It stays at the address that works. */
	http_client_drop(&f.client, "test");
	begin(&f, &third, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_STR(third.err.msg, "");
	buffer_done(&second.got);
	buffer_done(&third.got);
	fixture_done(&f);
}

TEST(a_call_may_be_started_again_from_its_end)
{
	struct call c = { .again = true };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &c, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_UINT(c.ends, 2);
	CHECK_STR(buffer_str(&c.got), "GET  GET  ");
	buffer_done(&c.got);
	fixture_done(&f);
}

TEST(dropping_the_connection_ends_only_calls_in_progress)
{
	struct call first = { 0 }, lost = { 0 }, later = { 0 };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &first, "GET", "/echo", STR(""));
	wait_all(&f);
	begin(&f, &lost, "GET", "/big", STR(""));
	http_client_drop(&f.client, "new credentials");
	begin(&f, &later, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK_STR(lost.err.msg, "new credentials");
	CHECK_STR(later.err.msg, "");
	CHECK_STR(buffer_str(&later.got), "GET  ");
	buffer_done(&first.got);
	buffer_done(&lost.got);
	buffer_done(&later.got);
	fixture_done(&f);
}

TEST(a_cancelled_call_has_no_further_callback)
{
	struct call cancelled = { 0 }, other = { 0 };
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "h2");
	begin(&f, &cancelled, "GET", "/big", STR(""));
	begin(&f, &other, "GET", "/big", STR(""));
	http_call_cancel(&cancelled.http);
	http_call_cancel(&cancelled.http);
	f.pending--;
	wait_all(&f);
	CHECK_UINT(cancelled.ends, 0);
	CHECK_UINT(buffer_len(&other.got), 5 << 20);
	buffer_done(&cancelled.got);
	buffer_done(&other.got);
	fixture_done(&f);
}

TEST(connection_errors_name_the_server)
{
	struct call c = { 0 };
	struct err err = { 0 };
	struct test_cert other;
	struct fixture f;

	fixture_init(&f, "127.0.0.1", "http/1.1");
	begin(&f, &c, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK(c.err.code && strstr(c.err.msg, "127.0.0.1") && strstr(c.err.msg, "HTTP/2"));
	test_cert_make(&other, "localhost");
	CHECK_OK(tls_context_load_client(
		&f.client_tls,
		&(struct tls_client_config){ .ca_pem = other.cert_pem, .alpn = "h2" }, &err));
	begin(&f, &c, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK(strstr(c.err.msg, "server certificate") != NULL);
	server_stop(f.server);
	f.server = NULL;
	begin(&f, &c, "GET", "/echo", STR(""));
	wait_all(&f);
	CHECK(strstr(c.err.msg, "connection refused") != NULL);
	test_cert_done(&other);
	fixture_done(&f);
}
