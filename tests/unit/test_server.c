#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "https_client.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/tls.h"
#include "test.h"
#include "test_certs.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

struct fixture {
	struct tls_context tls;
	struct test_cert cert;
	struct server *server;
	unsigned port;
};

/* Responds with method, path, query and length of the body. */
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

static void load_cert(struct fixture *f)
{
	struct err err = { 0 };

	test_cert_make(&f->cert, "localhost");
	CHECK_OK(tls_context_load_server(&f->tls,
					 &(struct tls_server_config){ .cert_pem = f->cert.cert_pem,
								      .key_pem = f->cert.key_pem,
								      .alpn = "h2,http/1.1" },
					 &err));
}

static void start(struct fixture *f, unsigned threads, unsigned max_connections)
{
	struct server_config config = { .threads = threads,
					.max_connections = max_connections,
					.tls = &f->tls,
					.handler = echo };
	struct err err = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	tls_context_init(&f->tls);
	load_cert(f);
	CHECK_OK(net_address_parse(STR("127.0.0.1:0"), &config.address, &err));
	CHECK_OK(server_start(&config, &f->server, &err));
	f->port = server_port(f->server);
}

static void stop(struct fixture *f)
{
	server_stop(f->server);
	tls_context_done(&f->tls);
	test_cert_done(&f->cert);
}

static void send_text(struct https_client *c, const char *text)
{
	CHECK(https_send(c, text, strlen(text)));
}

static void connect_to(struct https_client *c, const struct fixture *f)
{
	CHECK(https_connect(c, f->port, NULL));
}

static uint64_t closed_for(const struct fixture *f, enum server_close_reason reason)
{
	struct server_stats stats;

	server_stats(f->server, &stats);
	return stats.closed[reason];
}

/* The server counts asynchronously. */
static void wait_closed(const struct fixture *f, enum server_close_reason reason, uint64_t n)
{
	for (int i = 0; i < 2000 && closed_for(f, reason) < n; i++)
		(void)poll(NULL, 0, 10);
	CHECK_UINT(closed_for(f, reason), n);
}

TEST(responses_come_in_the_order_of_the_requests)
{
	struct fixture f;
	struct https_client c;
	char body[256];

	start(&f, 2, 0);
	connect_to(&c, &f);
	send_text(&c, GET("/a?q") "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" GET(
			      "/c") "HEAD /d HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK_INT(https_response(&c, body, sizeof(body)), 200);
	CHECK_STR(body, "GET /a q 0");
	CHECK_INT(https_response(&c, body, sizeof(body)), 200);
	CHECK_STR(body, "POST /b  3");
	CHECK_INT(https_response(&c, body, sizeof(body)), 200);
	CHECK_STR(body, "GET /c  0");
	send_text(&c, "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	while (https_more(&c)) /* the response to HEAD has a length and no body */
		;
	CHECK(strstr(c.buf, "Content-Length: 9\r\n") && !strstr(c.buf, "HEAD"));
	CHECK(strstr(c.buf, "GET /last  0") && strstr(c.buf, "Connection: close\r\n"));
	https_close(&c);
	wait_closed(&f, SERVER_CLOSE_REQUESTED, 1);
	stop(&f);
}

TEST(a_body_up_to_the_limit_is_accepted_and_a_larger_one_refused)
{
	static char big[LIMIT_BODY_BYTES];
	struct https_client c;
	struct fixture f;
	char text[256];

	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("an emulator encrypts 32 MiB slower than the server waits for them");
	start(&f, 1, 0);
	connect_to(&c, &f);
	(void)snprintf(text, sizeof(text),
		       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
		       LIMIT_BODY_BYTES);
	send_text(&c, text);
	CHECK(https_send(&c, big, LIMIT_BODY_BYTES));
	CHECK_INT(https_response(&c, text, sizeof(text)), 200);
	CHECK_STR(text, "POST /  33554432");
	(void)snprintf(text, sizeof(text),
		       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
		       LIMIT_BODY_BYTES + 1);
	send_text(&c, text);
	(void)https_send(&c, big, 1 << 20); /* as a client that has not read the refusal yet */
	CHECK_INT(https_response(&c, text, sizeof(text)), 413);
	CHECK_INT(https_response(&c, text, sizeof(text)), 0);
	https_close(&c);
	wait_closed(&f, SERVER_CLOSE_TOO_LARGE, 1);
	stop(&f);
}

TEST(a_client_that_expects_100_continue_gets_it)
{
	struct https_client c;
	struct fixture f;

	start(&f, 1, 0);
	connect_to(&c, &f);
	send_text(
		&c,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
	CHECK_INT(https_response(&c, NULL, 0), 100);
	send_text(&c, "abc");
	CHECK_INT(https_response(&c, NULL, 0), 200);
	https_close(&c);
	stop(&f);
}

TEST(an_invalid_request_gets_a_response_and_the_connection_closes)
{
	static const struct {
		const char *bytes;
		int status;
	} cases[] = {
		{ "\x01\x02\x03\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n\r\n", 400 },
		{ "GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: br\r\n\r\n", 501 },
	};
	struct fixture f;

	start(&f, 1, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct https_client c;

		TEST_ROW("row %zu", i);
		connect_to(&c, &f);
		send_text(&c, cases[i].bytes);
		CHECK_INT(https_response(&c, NULL, 0), cases[i].status);
		CHECK_INT(https_response(&c, NULL, 0), 0);
		https_close(&c);
	}
	wait_closed(&f, SERVER_CLOSE_BAD_REQUEST, ARRAY_LEN(cases));
	stop(&f);
}

TEST(a_header_without_end_is_refused)
{
	char line[1100];
	struct https_client c;
	struct fixture f;
	int sent = 0;

	start(&f, 1, 0);
	connect_to(&c, &f);
	send_text(&c, "GET / HTTP/1.1\r\n");
	memset(line, 'x', sizeof(line));
	memcpy(line, "X: ", 3);
	memcpy(line + sizeof(line) - 2, "\r\n", 2);
	while (sent < 64 && https_send(&c, line, sizeof(line)))
		sent++;
	CHECK_INT(https_response(&c, NULL, 0), 431);
	https_close(&c);
	stop(&f);
}

TEST(a_client_without_tls_gets_a_plain_http_response)
{
	char response[256] = { 0 };
	struct fixture f;
	int fd;

	start(&f, 1, 0);
	fd = tcp_connect_local(f.port);
	CHECK(write(fd, GET("/"), sizeof(GET("/")) - 1) > 0);
	CHECK(read(fd, response, sizeof(response) - 1) > 0);
	CHECK(strstr(response, "HTTP/1.0 400 Bad Request") && strstr(response, "HTTPS only"));
	(void)close(fd);
	wait_closed(&f, SERVER_CLOSE_NO_TLS, 1);
	stop(&f);
}

/* Bytes from a fixed generator, so that a crash can be reproduced. */
TEST(garbage_on_one_connection_does_not_affect_others)
{
	uint32_t x = 12345;
	struct https_client c;
	struct fixture f;

	start(&f, 2, 0);
	for (int i = 0; i < 200; i++) {
		unsigned char bytes[512];
		int fd = tcp_connect_local(f.port);

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
		if (i % 2) /* begins like TLS */
			memcpy(bytes, "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 11);
		(void)!write(fd, bytes, sizeof(bytes));
		(void)close(fd);
	}
	connect_to(&c, &f);
	send_text(&c, GET("/after"));
	CHECK_INT(https_response(&c, NULL, 0), 200);
	https_close(&c);
	stop(&f);
}

TEST(idle_connections_are_closed_when_the_limit_is_reached)
{
	enum { MAX = 8 };
	static struct https_client clients[3 * MAX];
	struct https_client last;
	struct server_stats stats;
	struct fixture f;

	start(&f, 1, MAX);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		connect_to(&clients[i], &f);
		send_text(&clients[i], GET("/"));
		CHECK_INT(https_response(&clients[i], NULL, 0), 200);
	}
	connect_to(&last, &f);
	send_text(&last, GET("/"));
	CHECK_INT(https_response(&last, NULL, 0), 200);
	server_stats(f.server, &stats);
	CHECK(stats.open <= MAX + 1);
	CHECK(stats.closed[SERVER_CLOSE_EVICTED] >= 2ul * MAX);
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		https_close(&clients[i]);
	https_close(&last);
	stop(&f);
}

TEST(slow_clients_are_disconnected)
{
	struct https_client slow;
	struct fixture f;
	int silent;

	start(&f, 1, 0);
	silent = tcp_connect_local(f.port);
	connect_to(&slow, &f);
	send_text(&slow, GET("/"));
	CHECK_INT(https_response(&slow, NULL, 0), 200);
	for (int i = 0; i < 40 && !closed_for(&f, SERVER_CLOSE_SLOW); i++) {
		(void)https_send(&slow, "G", 1);
		(void)poll(NULL, 0, 500);
	}
	wait_closed(&f, SERVER_CLOSE_SLOW, 1);
	wait_closed(&f, SERVER_CLOSE_HANDSHAKE, 1);
	https_close(&slow);
	(void)close(silent);
	stop(&f);
}

TEST(a_client_that_never_reads_is_disconnected)
{
	static const char request[] = GET("/0123456789012345678901234567890123456789");
	struct server_stats before = { 0 }, after;
	struct https_client c;
	struct fixture f;
	int rounds;

	start(&f, 1, 0);
	connect_to(&c, &f);
	(void)fcntl(c.fd, F_SETFL, O_NONBLOCK);
	SSL_set_mode(c.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	for (rounds = 0; rounds < 200; rounds++) {
		for (int i = 0; i < 5000; i++)
			if (SSL_write(c.ssl, request, sizeof(request) - 1) <= 0)
				break;
		(void)poll(NULL, 0, 20);
		server_stats(f.server, &after);
		if (rounds > 10 && after.requests == before.requests)
			break; /* the server has stopped reading */
		before = after;
	}
	CHECK(rounds < 200);
	TEST_NOTE("%llu requests before the server stopped reading",
		  (unsigned long long)after.requests);
	https_close(&c);
	wait_closed(&f, SERVER_CLOSE_PEER, 1);
	stop(&f);
}

struct load {
	struct fixture *f;
	atomic_bool stop;
	atomic_uint served, failed, reconnected;
};

/* A client like the API server: it keeps its connection until the server closes it. */
static void *load_client(void *arg)
{
	static _Thread_local struct https_client client;
	struct https_client *c = &client;
	struct load *load = arg;
	bool connected = false;

	while (!atomic_load(&load->stop)) {
		if (!connected && !https_connect(c, load->f->port, NULL)) {
			https_close(c);
			break; /* no longer listening */
		}
		connected = true;
		if (!https_send(c, GET("/"), sizeof(GET("/")) - 1) ||
		    https_response(c, NULL, 0) != 200) {
			/* a connection may close between requests, not during one */
			if (c->n)
				atomic_fetch_add(&load->failed, 1);
			https_close(c);
			connected = false;
			atomic_fetch_add(&load->reconnected, 1);
			continue;
		}
		atomic_fetch_add(&load->served, 1);
	}
	if (connected)
		https_close(c);
	return NULL;
}

TEST(no_request_fails_when_certificates_change_under_load)
{
	struct load load = { 0 };
	pthread_t threads[4];
	struct fixture f;

	start(&f, 2, 0);
	load.f = &f;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_INT(pthread_create(&threads[i], NULL, load_client, &load), 0);
	for (int i = 0; i < 20; i++) {
		test_cert_done(&f.cert);
		load_cert(&f);
		(void)poll(NULL, 0, 10);
	}
	atomic_store(&load.stop, true);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	CHECK_UINT(atomic_load(&load.failed), 0);
	CHECK_UINT(atomic_load(&load.reconnected), 0);
	CHECK(atomic_load(&load.served) > 0);
	TEST_NOTE("%u requests, 20 certificates", atomic_load(&load.served));
	stop(&f);
}

#define PATIENCE                                                                                   \
	3000 /* of 10 ms: the phase must reach the threads first, and machines are busy            \
	      */

/* Sends requests until a response ends the connection. */
static bool is_told_to_go(struct https_client *c)
{
	bool is_told = false;

	for (int i = 0; i < PATIENCE && !is_told; i++) {
		send_text(c, GET("/still"));
		while (!strstr(c->buf, "\r\n\r\n") && https_more(c))
			;
		is_told = strstr(c->buf, "Connection: close") != NULL;
		CHECK_INT(https_response(c, NULL, 0), 200);
		(void)poll(NULL, 0, 10);
	}
	return is_told;
}

static bool is_shut(unsigned port)
{
	for (int i = 0; i < PATIENCE; i++) {
		int fd = tcp_connect_local(port);

		if (fd < 0)
			return true;
		(void)close(fd);
		(void)poll(NULL, 0, 10);
	}
	return false;
}

TEST(a_request_in_progress_is_served_during_shutdown)
{
	struct https_client busy, idle;
	struct fixture f;
	char body[64];

	start(&f, 2, 0);
	connect_to(&idle, &f);
	send_text(&idle, GET("/"));
	CHECK_INT(https_response(&idle, NULL, 0), 200);
	connect_to(&busy, &f);
	send_text(&busy, "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
			 "Expect: 100-continue\r\n\r\n");
	CHECK_INT(https_response(&busy, NULL, 0), 100); /* so the request is in progress */
	send_text(&busy, "ab");
	server_announce_end(f.server);
	CHECK(is_told_to_go(&idle));
	CHECK_INT(https_response(&idle, NULL, 0), 0);
	server_close(f.server);
	CHECK(is_shut(f.port)); /* no new connection */
	send_text(&busy, "cd");
	CHECK_INT(https_response(&busy, body, sizeof(body)), 200);
	CHECK_STR(body, "POST /b  4");
	CHECK_INT(https_response(&busy, NULL, 0), 0);
	https_close(&busy);
	https_close(&idle);
	stop(&f);
}

TEST(no_response_is_lost_when_the_server_drains_under_load)
{
	struct load load = { 0 };
	pthread_t threads[4];
	struct fixture f;

	start(&f, 2, 0);
	load.f = &f;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_INT(pthread_create(&threads[i], NULL, load_client, &load), 0);
	(void)poll(NULL, 0, 100);
	server_announce_end(f.server);
	(void)poll(NULL, 0, 100);
	server_close(f.server);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	CHECK_UINT(atomic_load(&load.failed), 0);
	CHECK(atomic_load(&load.served) > 0);
	stop(&f);
}
