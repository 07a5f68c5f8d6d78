/* Untrusted gRPC frames to a server and to a client: no crash, no response without a call, and no
 * second response to a call. The first byte chooses the side and how the bytes are split. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rpc/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct side {
	struct grpc *grpc;
	size_t n_calls, n_answers;
	int32_t kept; /* a call whose response comes late */
};

static void on_call(void *user, int32_t call, struct str path, struct str message)
{
	struct side *s = user;

	s->n_calls++;
	if (message.n > GRPC_MAX_REQUEST)
		abort();
	if (message.n % 3 == 0)
		s->kept = call;
	else if (message.n % 3 == 1)
		grpc_respond(s->grpc, call, &(struct grpc_response){ .message = message });
	else
		grpc_respond(s->grpc, call,
			     &(struct grpc_response){ .code = GRPC_UNKNOWN, .text = path });
}

static void on_response(void *user, int32_t call, const struct grpc_response *response)
{
	struct side *s = user;

	if (call != 1 && call != 3)
		abort();
	if (++s->n_answers > 2 || response->message.n > GRPC_MAX_RESPONSE)
		abort();
}

static void drain(struct side *s)
{
	struct str bytes;

	while (grpc_send(s->grpc, &bytes))
		;
}

/* A valid preface and SETTINGS precede every input, so that the fuzzer need not find them. */
static const struct str client_hello = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
						"\0\0\0\x04\0\0\0\0\0");
static const struct str server_hello = STR_INIT("\0\0\0\x04\0\0\0\0\0");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const bool is_server = size && data[0] % 2 == 0;
	const size_t step = size ? 1 + data[0] : 1;
	struct side s = { 0 };
	int r;

	s.grpc = is_server ? grpc_server_new(on_call, &s) : grpc_client_new(on_response, &s);
	if (!is_server) {
		(void)grpc_call(s.grpc, "/v1.PodResourcesLister/List", STR(""));
		(void)grpc_call(s.grpc, "/v1.PodResourcesLister/Get", STR("abc"));
	}
	drain(&s);
	r = grpc_receive(s.grpc, is_server ? client_hello : server_hello, NULL);
	for (size_t at = 1; at < size && r >= 0 && !grpc_is_finished(s.grpc); at += step) {
		const size_t n = size - at < step ? size - at : step;

		r = grpc_receive(s.grpc, (struct str){ (const char *)data + at, n }, NULL);
		drain(&s);
	}
	if (s.kept)
		grpc_respond(s.grpc, s.kept, &(struct grpc_response){ .message = STR("late") });
	drain(&s);
	grpc_free(s.grpc);
	return 0;
}
