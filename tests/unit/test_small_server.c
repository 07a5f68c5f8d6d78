/* Clients that do not read what they asked for, or ask late. */

#include "net/small_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "test.h"

#define BODY_BYTES ((size_t)6 << 20)
#define HOSTILE 60

struct fixture {
	struct loop loop;
	struct small_server server;
	char *body;
	in_port_t port;
	unsigned n_requests;
};

/* "/small", "/large" or "/stream". */
static void handle(const struct small_request *q, struct small_response *ret, void *context)
{
	struct fixture *f = context;

	f->n_requests++;
	*ret = (struct small_response){ .http = { .status = 200, .content_type = "text/plain" } };
	if (str_eq(q->http.path, STR("/large")))
		ret->http.body = (struct str){ f->body, BODY_BYTES };
	else if (str_eq(q->http.path, STR("/stream")))
		ret->is_stream = true;
	else
		ret->http.body = STR("small\n");
}

static void start(struct fixture *f)
{
	struct err err = { 0 };

	*f = (struct fixture){ .server = { .handler = handle, .context = f } };
	f->body = calloc(1, BODY_BYTES);
	CHECK(f->body);
	CHECK_OK(loop_init(&f->loop, &err));
	CHECK_OK(small_server_listen(&f->server, &f->loop, "127.0.0.1:0", &err));
	f->port = (in_port_t)net_local_port(f->server.listener.fd);
}

static void end(struct fixture *f, int *clients, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(clients[i]);
	small_server_close(&f->server);
	loop_done(&f->loop);
	free(f->body);
}

static void turn(struct fixture *f, int times)
{
	while (times-- > 0)
		(void)uv_run(&f->loop.uv, UV_RUN_NOWAIT);
}

static int ask_from(const struct fixture *f, const char *source, const char *request)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(f->port) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const ssize_t n = (ssize_t)strlen(request);

	CHECK(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1);
	CHECK(inet_pton(AF_INET, source, &from.sin_addr) == 1);
	CHECK(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(send(fd, request, (size_t)n, 0) == n);
	return fd;
}

static int ask(const struct fixture *f, const char *request)
{
	return ask_from(f, "127.0.0.1", request);
}

/* Whether the server answers with this; waits for as long as the server lets it. */
static bool answers(struct fixture *f, const char *request, const char *want)
{
	const int fd = ask(f, request);
	char bytes[512] = "";
	ssize_t n = -1;

	for (int i = 0; i < 1000000 && n <= 0; i++) {
		turn(f, 1);
		n = recv(fd, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);
	}
	(void)close(fd);
	return n > 0 && strstr(bytes, want);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

TEST(attack_responses_that_are_not_read_do_not_fill_the_memory_of_the_dashboard)
{
	int clients[HOSTILE];
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < HOSTILE; i++) {
		clients[i] = ask(&f, GET("/large"));
		turn(&f, 20);
		CHECK(small_server_unread(&f.server) <= SMALL_SERVER_MAX_UNREAD_SUM);
	}
	CHECK(small_server_unread(&f.server) > BODY_BYTES); /* the attack takes effect */
	CHECK(answers(&f, GET("/small"), "200 OK"));
	end(&f, clients, HOSTILE);
}

TEST(attack_streams_that_are_not_read_do_not_fill_the_memory_of_the_dashboard)
{
	int clients[HOSTILE];
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < HOSTILE; i++)
		clients[i] = ask(&f, GET("/stream"));
	while (small_server_streams(&f.server) < HOSTILE)
		turn(&f, 1);
	for (int i = 0; i < 64; i++) {
		small_server_broadcast(&f.server, (struct str){ f.body, (size_t)256 << 10 });
		turn(&f, 2);
		CHECK(small_server_unread(&f.server) <= SMALL_SERVER_MAX_UNREAD_SUM);
	}
	CHECK(small_server_streams(&f.server) < HOSTILE); /* the attack takes effect */
	CHECK(answers(&f, GET("/small"), "200 OK"));
	end(&f, clients, HOSTILE);
}

TEST(attack_connections_without_a_pause_do_not_keep_probes_of_others_waiting)
{
	enum { CONNECTIONS = 3 * PEER_RATE_LIMIT };
	int clients[CONNECTIONS];
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < CONNECTIONS; i++)
		clients[i] = ask_from(&f, "127.0.0.66", GET("/small"));
	/* They are all in the backlog, before the probe. */
	CHECK(answers(&f, GET("/small"), "200 OK"));
	/* The windows of a slow machine may be two. */
	CHECK(f.n_requests > 1 && f.n_requests <= 2 * PEER_RATE_LIMIT + 1);
	end(&f, clients, CONNECTIONS);
}

/* On an overloaded node seconds pass between a probe's connection and its request. */
TEST(a_probe_that_arrives_late_is_answered)
{
	char bytes[64] = "";
	struct fixture f;
	int client;

	start(&f);
	client = ask(&f, "GET /small HTTP/1.1\r\n");
	for (int i = 0; i < 25; i++) { /* 2.5 s: longer than a hook may take */
		turn(&f, 2);
		(void)poll(NULL, 0, 100);
	}
	CHECK(send(client, "Host: x\r\n\r\n", 11, MSG_NOSIGNAL) == 11);
	for (int i = 0; i < 50 && recv(client, bytes, sizeof(bytes) - 1, MSG_DONTWAIT) < 0; i++) {
		turn(&f, 2);
		(void)poll(NULL, 0, 100);
	}
	CHECK(str_starts(str_from(bytes), STR("HTTP/1.1 200 ")));
	end(&f, &client, 1);
}

/* Only the beginning of such a body is ever awaited, and it is no whole request. */
TEST(a_body_beyond_every_limit_is_refused)
{
	static char request[8192];
	struct fixture f;

	start(&f);
	memset(request, 'x', 5000);
	memcpy(request, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", 59);
	CHECK(answers(&f, request, "413 "));
	end(&f, NULL, 0);
}
