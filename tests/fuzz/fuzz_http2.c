/* The HTTP/2 server session: no crash with any frames, and no bytes counted after the session is
 * freed. The connection is replaced by a stub, so that no TLS is needed. */

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
	n_requests++;
}

/* A valid preface and SETTINGS precede every input, so the fuzzer need not find them. */
static const struct str hello = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
					 "\0\0\0\x04\0\0\0\0\0");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t step = size ? 1 + data[0] : 1;
	struct worker w = { 0 };
	struct conn c = { .worker = &w, .state = CONN_NEW, .is_trusted = true };

	arena_init(&w.arena, LIMIT_MEMORY_BYTES);
	http2_new(&c);
	http2_receive(c.http2, hello);
	for (size_t at = 1; at < size && !c.is_last; at += step) {
		size_t n = size - at < step ? size - at : step;

		http2_receive(c.http2, (struct str){ (const char *)data + at, n });
	}
	http2_announce_end(c.http2);
	http2_close(c.http2);
	http2_free(c.http2);
	arena_done(&w.arena);
	return 0;
}
