/* The HTTP/2 server session: no crash with any frames, also when streams are given up in between,
 * and no bytes counted after the session is freed. The connection is replaced by a stub, so that no
 * TLS is needed. The first byte chooses how the bytes are split and what the server does meanwhile.
 */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "net/conn.h"
#include "net/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t n_put, n_requests;

void conn_put(struct conn *c, struct str plain)
{
	(void)c;
	n_put += plain.n;
}

void conn_finish(struct conn *c, enum server_close_reason reason)
{
	c->is_last = true;
	c->reason = reason;
}

void conn_move(struct conn *c, enum conn_state state)
{
	c->state = state;
}

void conn_handle(struct conn *c, struct http_request *request, struct http_response *ret)
{
	request->arena = &c->worker->arena;
	http_response_status(ret, request->body.n % 2 ? 200 : 404, request->arena);
	ret->allow = request->is_truncated ? "POST" : NULL;
	n_requests++;
}

/* A valid preface and SETTINGS precede every input, so the fuzzer need not find them. */
static const struct str hello = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
					 "\0\0\0\x04\0\0\0\0\0");

enum { STEP_BITS = 31, IS_UNTRUSTED = 32, GIVES_UP = 64, IS_DRAINING = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t choice = size ? data[0] : 0;
	const size_t step = 1 + (choice & STEP_BITS) * 8u;
	struct worker w = { .phase = choice & IS_DRAINING ? WORKER_ANNOUNCING : WORKER_SERVING };
	struct conn c = { .worker = &w, .state = CONN_NEW, .is_trusted = !(choice & IS_UNTRUSTED) };

	arena_init(&w.arena, LIMIT_MEMORY_BYTES);
	http2_new(&c);
	http2_receive(c.http2, hello);
	for (size_t at = 1; at < size && !c.is_last; at += step) {
		size_t n = size - at < step ? size - at : step;

		http2_receive(c.http2, (struct str){ (const char *)data + at, n });
		w.loop.uv.time += 1000;
		if (choice & GIVES_UP && !c.is_last)
			http2_give_up(c.http2, http2_oldest_ms(c.http2), at / step % 2 ? 0 : 4096);
	}
	http2_announce_end(c.http2);
	http2_close(c.http2);
	http2_free(c.http2);
	arena_done(&w.arena);
	return 0;
}
