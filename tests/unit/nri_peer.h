#pragma once

/* A runtime for one plugin, over a Unix socket: accepts its connection and calls it. For programs
 * that run the agent as a process; nri_runtime.h does the same without a socket. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "nri/nri_messages.h"
#include "rpc/mux.h"
#include "rpc/ttrpc.h"

#define PEER_SERVICE "nri.pkg.api.v1alpha1.Plugin"

struct peer {
	int listener, fd;
	struct mux_reader mux;
	struct ttrpc_reader readers[2];
	char bytes[65536];
	struct str rest; /* of `bytes` */
	uint32_t stream;
	struct arena a;
};

static inline void peer_fail(const char *what)
{
	(void)fprintf(stderr, "runtime: %s: %s\n", what, strerror(errno));
	exit(2);
}

static inline uint64_t peer_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void peer_send(struct peer *p, struct str bytes)
{
	while (bytes.n > 0) {
		const ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0)
			peer_fail("send");
		bytes = str_skip(bytes, (size_t)n);
	}
}

/* The next message of a connection; its data is valid until the next call. */
static inline struct ttrpc_frame peer_receive(struct peer *p, uint32_t conn)
{
	for (;;) {
		struct mux_piece piece;
		struct ttrpc_frame frame;
		ssize_t n;

		while (mux_read(&p->mux, &p->rest, &piece, NULL) > 0)
			while (piece.bytes.n > 0 && piece.conn - 1 < 2 &&
			       ttrpc_read(&p->readers[piece.conn - 1], &piece.bytes, &frame))
				if (piece.conn == conn)
					return frame;
		n = recv(p->fd, p->bytes, sizeof(p->bytes), 0);
		if (n <= 0)
			peer_fail("the plugin closed the connection");
		p->rest = (struct str){ p->bytes, (size_t)n };
	}
}

static inline struct str peer_encode(const struct pb_message *m, const void *value, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	pb_encode(m, value, &b);
	return strbuf_str(&b);
}

/* Returns the time until the response; *ret is the encoded ttrpc_response, in p->a. */
static inline uint64_t peer_call(struct peer *p, const char *method, struct str payload,
				 struct str *ret)
{
	const struct ttrpc_request request = { PEER_SERVICE, method, payload, 2000000000 };
	struct ttrpc_frame frame;
	struct strbuf b;
	uint64_t began_ns;

	strbuf_init(&b, &p->a);
	p->stream += 2;
	if (ttrpc_write_request(&b, MUX_CONN_PLUGIN, p->stream, &request, &p->a) < 0)
		peer_fail(method);
	began_ns = peer_now_ns();
	peer_send(p, strbuf_str(&b));
	frame = peer_receive(p, MUX_CONN_PLUGIN);
	if (ret)
		*ret = str_dup(&p->a, frame.data);
	return peer_now_ns() - began_ns;
}

static inline void peer_listen(struct peer *p, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*p = (struct peer){ .stream = UINT32_MAX }; /* the first is 1 */
	arena_init(&p->a, 0);
	if (strlen(path) >= sizeof(address.sun_path))
		peer_fail(path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	(void)unlink(path);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->listener < 0 ||
	    bind(p->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(p->listener, 1) < 0)
		peer_fail(path);
}

/* Registers and configures the plugin; Synchronize is next. */
static inline void peer_accept(struct peer *p, const char *runtime)
{
	const struct nri_runtime about = { .name = runtime,
					   .version = "1",
					   .registration_timeout_ms = 5000,
					   .request_timeout_ms = 2000 };
	struct strbuf b;

	p->fd = accept(p->listener, NULL, NULL);
	if (p->fd < 0)
		peer_fail("accept");
	(void)peer_receive(p, MUX_CONN_RUNTIME);
	strbuf_init(&b, &p->a);
	(void)ttrpc_write_response(&b, MUX_CONN_RUNTIME, 1, &(struct ttrpc_response){ 0 }, &p->a);
	peer_send(p, strbuf_str(&b));
	(void)peer_call(p, "Configure", peer_encode(&nri_runtime_message, &about, &p->a), NULL);
}

static inline void peer_done(struct peer *p)
{
	(void)close(p->fd);
	(void)close(p->listener);
	ttrpc_reader_done(&p->readers[0]);
	ttrpc_reader_done(&p->readers[1]);
	arena_done(&p->a);
}
