/* Attacks on the port of the webhook, which has 256 MiB. During each of them a client that behaves
 * like an API server sends reviews and must get an answer to every one; its latency is printed. */

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "webhook_daemon.h"

#define MEMORY_MIB 256
#define STR_ARGS(text) (text), sizeof(text) - 1

/* The well-behaved client. */
struct witness {
	struct daemon *d;
	pthread_t thread;
	atomic_bool stop;
	struct https_client https;
	atomic_uint n; /* also read while it runs */
	unsigned n_quiet, failed, reconnected;
	uint64_t *us;
};

#define MAX_SAMPLES 1000000
#define QUIET_SAMPLES 100 /* before the attack, for comparison */

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

static size_t post(char *buf, size_t cap, const char *body, size_t announced)
{
	return (size_t)snprintf(buf, cap,
				"POST /mutate/pods HTTP/1.1\r\nHost: x\r\nContent-Length: "
				"%zu\r\n\r\n%s",
				announced, body);
}

static void *witness_run(void *arg)
{
	struct witness *w = arg;
	bool is_open = false;
	char request[4096], response[4096];
	size_t n = post(request, sizeof(request), REVIEW, strlen(REVIEW));

	tcp_source = 2; /* as an API server beside hostile pods: limits are per address */
	while (!atomic_load(&w->stop) && w->n < MAX_SAMPLES) {
		uint64_t begin = now_us();

		if (!is_open) {
			is_open = https_connect(&w->https, w->d->port, NULL);
			w->reconnected++;
		}
		response[0] = '\0';
		if (!is_open || !https_send(&w->https, request, n) ||
		    https_response(&w->https, response, sizeof(response)) != 200 ||
		    !strstr(response, "\"patchType\":\"JSONPatch\"")) {
			w->failed++;
			https_close(&w->https);
			is_open = false;
		}
		w->us[w->n] = now_us() - begin;
		w->n++;
		(void)poll(NULL, 0, 2);
	}
	if (is_open)
		https_close(&w->https);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void witness_start(struct witness *w, struct daemon *d)
{
	memset(w, 0, sizeof(*w));
	w->d = d;
	w->us = malloc(MAX_SAMPLES * sizeof(*w->us));
	CHECK_INT(pthread_create(&w->thread, NULL, witness_run, w), 0);
	while (w->n < QUIET_SAMPLES)
		(void)poll(NULL, 0, 2);
	w->n_quiet = w->n;
}

struct latency {
	uint64_t p50, p99, longest;
};

static struct latency latency_of(uint64_t *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_value);
	return (struct latency){ us[n / 2], us[n - 1 - n / 100], us[n - 1] };
}

static long peak_kib(const struct daemon *d)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)d->pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		(void)fclose(f);
	return kib;
}

/* Nothing failed, the process is the same, and it stayed below its limit. */
static void witness_end(struct witness *w, const char *what)
{
	struct latency before, during;
	unsigned n;

	atomic_store(&w->stop, true);
	CHECK_INT(pthread_join(w->thread, NULL), 0);
	n = w->n - w->n_quiet;
	CHECK(n > 0);
	before = latency_of(w->us, w->n_quiet);
	during = latency_of(w->us + w->n_quiet, n);
	TEST_NOTE("latency: %s: %u reviews; p50 %" PRIu64 " us before, %" PRIu64
		  " us during; p99 %" PRIu64 " us before, %" PRIu64 " us during; longest %" PRIu64
		  " us; peak %ld MiB",
		  what, n, before.p50, during.p50, before.p99, during.p99, during.longest,
		  peak_kib(w->d) >> 10);
	CHECK_UINT(w->failed, 0);
	CHECK_UINT(w->reconnected, 1);
	CHECK_INT(kill(w->d->pid, 0), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CHECK(peak_kib(w->d) < MEMORY_MIB << 10);
#endif
	free(w->us);
}

static void start(struct daemon *d)
{
	daemon_start(d, "--memory-limit=256");
}

/* For what measures time or memory, and for bodies of many MiB. */
static void start_flood(struct daemon *d)
{
	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("an emulator decrypts too slowly, and its own memory counts");
	start(d);
}

/* Sends without waiting for anything, as long as the server reads. */
static bool send_all(struct https_client *c, const char *bytes, size_t n)
{
	while (n) {
		size_t part = n < 1 << 16 ? n : 1 << 16;

		if (!https_send(c, bytes, part))
			return false;
		bytes += part;
		n -= part;
	}
	return true;
}

struct uploader {
	pthread_t thread;
	struct daemon *d;
	const char *body;
	size_t n, announced;
	unsigned rounds;
	atomic_uint *n_served;
	struct https_client https;
};

static void *upload(void *arg)
{
	struct uploader *u = arg;
	char head[256];
	size_t n = post(head, sizeof(head), "", u->announced);

	for (unsigned i = 0; i < u->rounds; i++) {
		if (https_connect(&u->https, u->d->port, NULL) && https_send(&u->https, head, n) &&
		    send_all(&u->https, u->body, u->n) && https_response(&u->https, NULL, 0))
			atomic_fetch_add(u->n_served, 1);
		https_close(&u->https);
	}
	return NULL;
}

static char *filled(size_t n, char c)
{
	char *p = malloc(n + 1);

	memset(p, c, n);
	p[n] = '\0';
	return p;
}

/* Parsing takes sixteen times the memory of the text. */
TEST(attack_concurrent_bodies_of_brackets_do_not_exhaust_memory)
{
	static const size_t sizes[] = { (size_t)8 << 20, (size_t)31 << 20 };
	static struct uploader u[8];
	struct witness w;
	struct daemon d;

	start_flood(&d);
	for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
		AUTO_FREE char *body = filled(sizes[k], '[');
		atomic_uint n_served = 0;

		witness_start(&w, &d);
		for (size_t i = 0; i < ARRAY_LEN(u); i++) {
			u[i] = (struct uploader){ .d = &d,
						  .body = body,
						  .n = sizes[k],
						  .announced = sizes[k],
						  .rounds = 2,
						  .n_served = &n_served };
			CHECK_INT(pthread_create(&u[i].thread, NULL, upload, &u[i]), 0);
		}
		for (size_t i = 0; i < ARRAY_LEN(u); i++)
			CHECK_INT(pthread_join(u[i].thread, NULL), 0);
		witness_end(&w, sizes[k] > 8 << 20 ? "8 bodies of 31 MiB" : "8 bodies of 8 MiB");
		CHECK(atomic_load(&n_served) > 0); /* they were read, not only refused */
	}
	daemon_stop(&d);
}

/* Frames of HTTP/2, made by hand: nghttp2 would not send such things. */
static size_t frame(char *p, size_t n, int type, int flags, uint32_t stream)
{
	const unsigned char head[9] = { (unsigned char)(n >> 16),
					(unsigned char)(n >> 8),
					(unsigned char)n,
					(unsigned char)type,
					(unsigned char)flags,
					(unsigned char)(stream >> 24),
					(unsigned char)(stream >> 16),
					(unsigned char)(stream >> 8),
					(unsigned char)stream };

	memcpy(p, head, sizeof(head));
	return sizeof(head);
}

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, END_STREAM = 1, END_HEADERS = 4 };

static bool http2_hello(struct https_client *c, unsigned port)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	char settings[9];

	(void)frame(settings, 0, SETTINGS, 0, 0);
	return https_connect(c, port, "\x02h2") && https_send(c, preface, 24) &&
	       https_send(c, settings, sizeof(settings));
}

/* A request with a path of this length, without huffman coding and without the dynamic table. */
static bool http2_request(struct https_client *c, uint32_t stream, const char *path, bool is_get,
			  bool ends)
{
	static _Thread_local char buf[20000];
	size_t path_n = strlen(path), n = 9;

	buf[n++] = (char)(is_get ? 0x82 : 0x83); /* :method */
	buf[n++] = (char)0x87;			 /* :scheme https */
	buf[n++] = 0x01;			 /* :authority x */
	buf[n++] = 1;
	buf[n++] = 'x';
	buf[n++] = 0x04; /* :path, length with a prefix of 7 bits (RFC 7541 section 5.1) */
	if (path_n < 127) {
		buf[n++] = (char)path_n;
	} else {
		size_t rest = path_n - 127;

		buf[n++] = 127;
		for (; rest >= 128; rest >>= 7)
			buf[n++] = (char)((rest & 127) | 128);
		buf[n++] = (char)rest;
	}
	memcpy(buf + n, path, path_n);
	n += path_n;
	(void)frame(buf, n - 9, HEADERS, END_HEADERS | (ends ? END_STREAM : 0), stream);
	return https_send(c, buf, n);
}

TEST(attack_unfinished_http2_streams_with_long_paths_do_not_exhaust_memory)
{
	enum { CONNECTIONS = 117, STREAMS = 126 };
	static struct https_client c[CONNECTIONS];
	AUTO_FREE char *path = filled(16000, 'p');
	struct witness w;
	struct daemon d;

	path[0] = '/';
	start_flood(&d);
	witness_start(&w, &d);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		CHECK(http2_hello(&c[i], d.port));
		for (uint32_t k = 0; k < STREAMS; k++)
			if (!http2_request(&c[i], 2 * k + 1, path, false, false))
				break;
	}
	(void)poll(NULL, 0, 1000);
	witness_end(&w, "117 connections with 126 streams");
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		https_close(&c[i]);
	daemon_stop(&d);
}

/* Nothing is sent of what was announced, on as many connections as there may be. */
TEST(attack_announced_bodies_do_not_lock_others_out)
{
	static struct https_client c[64];
	char head[256];
	size_t n = post(head, sizeof(head), "", 8000000);
	struct witness w;
	struct daemon d;

	start_flood(&d);
	witness_start(&w, &d);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		CHECK(https_connect(&c[i], d.port, NULL) && https_send(&c[i], head, n));
	/* Below the minimum rate they end soon, and not at the deadline. */
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		struct timeval patience = { .tv_sec = 5 };

		(void)setsockopt(c[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		CHECK_INT(https_response(&c[i], NULL, 0), 413);
		https_close(&c[i]);
	}
	witness_end(&w, "64 announced bodies");
	daemon_stop(&d);
}

/* How many requests the webhook answered before they were complete. */
static unsigned long given_up(struct https_client *c)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char line[] = "\npinfold_http_requests_given_up_total ";
	static char metrics[1 << 16];
	const char *found;

	CHECK(https_send(c, get, sizeof(get) - 1));
	CHECK_INT(https_response(c, metrics, sizeof(metrics)), 200);
	found = strstr(metrics, line);
	return found ? strtoul(found + sizeof(line) - 1, NULL, 10) : 0;
}

/* Almost all of each body, which fills the memory for large requests, and then nothing. */
TEST(attack_bodies_that_stall_make_room_for_a_large_review)
{
	static const char tail[] =
		"{\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u-2\",\"x\":\"";
	static struct https_client c[8], large;
	AUTO_FREE char *body = filled((size_t)31 << 20, 'x');
	AUTO_FREE char *review = malloc((size_t)4 << 20);
	char head[256], response[4096];
	struct witness w;
	struct daemon d;
	uint64_t begin;
	size_t n;

	memcpy(body, tail, sizeof(tail) - 1);
	n = (size_t)sprintf(review, "%.*s,\"x\":\"", (int)strlen(REVIEW) - 1, REVIEW);
	memset(review + n, 'x', 3 << 20);
	n += 3 << 20;
	n += (size_t)sprintf(review + n, "\"}");
	start_flood(&d);
	witness_start(&w, &d);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		struct timeval patience = { .tv_sec = 1 };
		size_t head_n = post(head, sizeof(head), "", (size_t)31 << 20);

		CHECK(https_connect(&c[i], d.port, NULL) && https_send(&c[i], head, head_n));
		(void)setsockopt(c[i].fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		(void)send_all(&c[i], body, ((size_t)31 << 20) - 1);
	}
	begin = now_us();
	CHECK(https_connect(&large, d.port, NULL));
	CHECK(https_send(&large, head, post(head, sizeof(head), "", n)));
	CHECK(send_all(&large, review, n));
	CHECK_INT(https_response(&large, response, sizeof(response)), 200);
	CHECK(strstr(response, "\"patchType\":\"JSONPatch\"") != NULL);
	TEST_NOTE("the review of 3 MiB took %llu ms",
		  (unsigned long long)(now_us() - begin) / 1000);
	CHECK(given_up(&large) > 0);
	witness_end(&w, "8 stalled bodies of 31 MiB");
	https_close(&large);
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		https_close(&c[i]);
	daemon_stop(&d);
}

/* Whether the server ends the connection or the stream within this time; reads what it sends. */
static bool is_ended(struct https_client *c, int ms, int frame_type, uint32_t stream)
{
	uint64_t end = now_us() + (uint64_t)ms * 1000;
	struct timeval patience = { .tv_usec = 200000 };

	(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (now_us() < end) {
		unsigned char buf[16384];
		int n = SSL_read(c->ssl, buf, sizeof(buf));

		if (n <= 0 && SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ &&
		    SSL_get_error(c->ssl, n) != SSL_ERROR_SYSCALL)
			return true;
		/* Frames of one response are in one record each. */
		for (int at = 0; n > 0 && at + 9 <= n;
		     at += 9 + (buf[at] << 16 | buf[at + 1] << 8 | buf[at + 2]))
			if (buf[at + 3] == frame_type &&
			    (buf[at + 7] << 8 | buf[at + 8]) == (int)stream)
				return true;
	}
	return false;
}

/* A request every second kept the connection young, and with it the stream that never ends. */
TEST(attack_an_open_stream_expires_although_others_are_served)
{
	static struct https_client c;
	struct daemon d;
	bool ended = false;

	start(&d);
	CHECK(http2_hello(&c, d.port));
	CHECK(http2_request(&c, 1, "/livez", true, true));
	CHECK(http2_request(&c, 3, "/mutate/pods", false, false));
	for (uint32_t i = 0; i < 14 && !ended; i++) {
		CHECK(http2_request(&c, 5 + 2 * i, "/livez", true, true));
		ended = is_ended(&c, 1000, HEADERS, 3);
	}
	CHECK(ended);
	CHECK(http2_request(&c, 101, "/livez", true, true)); /* the connection stays */
	CHECK(is_ended(&c, 2000, HEADERS, 101));
	https_close(&c);
	daemon_stop(&d);
}

/* Responses that are never read: pipelined over HTTP/1.1, and in the windows of HTTP/2. */
TEST(attack_unread_responses_do_not_exhaust_memory)
{
	static struct https_client c[100];
	AUTO_FREE char *requests = malloc(1 << 16);
	struct timeval patience = { .tv_usec = 200000 };
	struct witness w;
	struct daemon d;
	size_t n = 0;

	while (n + 64 < 1 << 16)
		n += (size_t)sprintf(requests + n, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	start_flood(&d);
	witness_start(&w, &d);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		bool is_http2 = i % 2;

		if (!(is_http2 ? http2_hello(&c[i], d.port) : https_connect(&c[i], d.port, NULL)))
			continue;
		(void)setsockopt(c[i].fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		for (uint32_t k = 0; k < 500 && is_http2; k++)
			if (!http2_request(&c[i], 2 * k + 1, "/metrics", true, true))
				break;
		for (int k = 0; k < 20 && !is_http2; k++)
			if (!https_send(&c[i], requests, n))
				break;
	}
	witness_end(&w, "100 connections that do not read");
	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		https_close(&c[i]);
	daemon_stop(&d);
}

/* More connections than there may be: handshakes, headers without end, and idle ones. */
TEST(attack_many_connections_do_not_lock_others_out)
{
	enum { N = 1500 };
	AUTO_FREE struct https_client *c = calloc(N, sizeof(*c));
	struct witness w;
	struct daemon d;

	start_flood(&d);
	witness_start(&w, &d);
	for (size_t i = 0; i < N; i++) {
		c[i].fd = tcp_connect_local(d.port);
		if (i % 3 == 0 || c[i].fd < 0)
			continue; /* without a handshake */
		(void)close(c[i].fd);
		if (https_connect(&c[i], d.port, NULL))
			(void)https_send(&c[i], "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
					 i % 3 == 1 ? 20 : 33);
	}
	witness_end(&w, "1500 connections");
	for (size_t i = 0; i < N; i++)
		https_close(&c[i]);
	daemon_stop(&d);
}

/* The end of a review that is larger than anything an API server sends is not awaited. */
TEST(attack_a_review_beyond_every_limit_is_refused_by_its_uid)
{
	static struct https_client c;
	AUTO_FREE char *body = filled((size_t)64 << 10, 'x');
	char head[256], response[4096];
	struct daemon d;

	(void)memcpy(body, STR_ARGS("{\"request\":{\"uid\":\"u-3\",\"object\":{\"a\":\""));
	start(&d);
	CHECK(https_connect(&c, d.port, NULL));
	CHECK(https_send(&c, head, post(head, sizeof(head), "", (size_t)200 << 20)));
	CHECK(https_send(&c, body, 64 << 10));
	CHECK_INT(https_response(&c, response, sizeof(response)), 200);
	CHECK(strstr(response, "\"uid\":\"u-3\",\"allowed\":false") != NULL);
	CHECK(strstr(response, "\"code\":413") != NULL);
	https_close(&c);
	daemon_stop(&d);
}

TEST(attack_brackets_beyond_the_memory_of_a_request_are_refused_by_their_uid)
{
	static struct https_client c;
	AUTO_FREE char *brackets = filled((size_t)31 << 20, '[');
	char head[256], response[4096];
	struct daemon d;

	start_flood(&d);
	(void)memcpy(brackets, STR_ARGS("{\"request\":{\"uid\":\"u-4\",\"object\":{\"a\":["));
	CHECK(https_connect(&c, d.port, NULL));
	CHECK(https_send(&c, head, post(head, sizeof(head), "", (size_t)31 << 20)));
	CHECK(send_all(&c, brackets, (size_t)31 << 20));
	CHECK_INT(https_response(&c, response, sizeof(response)), 200);
	CHECK(strstr(response, "\"uid\":\"u-4\",\"allowed\":false") != NULL);
	https_close(&c);
	daemon_stop(&d);
}

static int status_of(struct daemon *d, const struct test_cert *identity, const char *alpn,
		     const char *request)
{
	static struct https_client c;
	char cert[4096] = "", key[4096] = "";
	int status = -1;

	if (identity) {
		memcpy(cert, identity->cert_pem.p, identity->cert_pem.n);
		memcpy(key, identity->key_pem.p, identity->key_pem.n);
	}
	/* With TLS 1.3 the client learns from the first read that its certificate is refused. */
	if (https_connect_as(&c, d->port, alpn, identity ? cert : NULL, key) &&
	    https_send(&c, request, strlen(request)))
		status = https_response(&c, NULL, 0);
	https_close(&c);
	return status;
}

/* With --client-ca only the API server may send a review, and nothing is kept for others. */
TEST(attack_a_client_without_certificate_cannot_send_a_review)
{
	static struct https_client c;
	struct test_cert api_server, other_name, foreign;
	char review[4096], announced[256];
	struct daemon d;

	(void)post(review, sizeof(review), REVIEW, strlen(REVIEW));
	(void)post(announced, sizeof(announced), "", 8000000);
	test_cert_make(&api_server, "api-server");
	test_cert_make(&other_name, "kubelet");
	test_cert_make(&foreign, "api-server");
	daemon_prepare(&d);
	{
		char ca[8192];
		int n = snprintf(ca, sizeof(ca), PRI_STR PRI_STR, FMT_STR(api_server.cert_pem),
				 FMT_STR(other_name.cert_pem));

		daemon_put(&d, "client-ca.crt", (struct str){ ca, (size_t)n });
	}
	daemon_launch(&d, "--client-ca=client-ca.crt", "--client-name=api-server");
	CHECK_INT(status_of(&d, &api_server, NULL, review), 200);
	CHECK_INT(status_of(&d, NULL, NULL, review), 403);
	CHECK_INT(status_of(&d, &other_name, NULL, review), 403);
	CHECK(status_of(&d, &foreign, NULL, review) <= 0);    /* the handshake fails */
	CHECK_INT(status_of(&d, NULL, NULL, announced), 403); /* its body is not awaited */
	CHECK_INT(status_of(&d, NULL, NULL, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	CHECK(http2_hello(&c, d.port));
	CHECK(http2_request(&c, 1, "/mutate/pods", false, false));
	{
		char data[9 + 5] = "";

		(void)frame(data, 5, DATA, 0, 1);
		CHECK(https_send(&c, data, sizeof(data)));
	}
	CHECK(is_ended(&c, 2000, HEADERS, 1));
	https_close(&c);
	daemon_stop(&d);
	test_cert_done(&api_server);
	test_cert_done(&other_name);
	test_cert_done(&foreign);
}
