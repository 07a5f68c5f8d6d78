/* One request from connection to result: on_connected() sends the calls, on_response() collects the
 * responses, finish() ends the request, on_deadline() frees the session and closes the socket,
 * on_closed() delivers the result. Failures and the deadline end a request in the same order, so
 * on_result is called exactly once and never inside kubelet_client_request(). */

#include "kubelet_client.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "podres_messages.h"

/* Ends the request. The result is delivered from the timer, when the socket is closed: this is also
 * called inside nghttp2's callbacks, where the session must not be freed. */
static void finish(struct kubelet_client *k, enum kubelet_outcome outcome, enum grpc_code code)
{
	if (k->is_closing)
		return;
	k->is_closing = true;
	k->outcome = outcome;
	k->code = code;
	timer_start(&k->deadline, 0, 0);
}

static void fail(struct kubelet_client *k, int code, const char *what)
{
	if (k->is_closing)
		return;
	(void)err_set(&k->why, code, "the kubelet's PodResources socket: %s", what);
	/* ENOENT: no kubelet has created the socket. ECONNREFUSED: the socket file remains of a
	 * kubelet that has ended. */
	finish(k, code == ENOENT || code == ECONNREFUSED ? KUBELET_ABSENT : KUBELET_FAILED,
	       GRPC_UNAVAILABLE);
}

static void on_closed(struct stream *s)
{
	struct kubelet_client *k = container_of(s, struct kubelet_client, stream);
	struct kubelet_result result = { .outcome = k->outcome,
					 .code = k->code,
					 .why = str_from(k->why.msg) };
	struct buffer responses[KUBELET_QUERY__COUNT];

	/* on_result may start the next request, which fills k->responses again. */
	memcpy(responses, k->responses, sizeof(responses));
	memset(k->responses, 0, sizeof(k->responses));
	for (size_t i = 0; i < KUBELET_QUERY__COUNT; i++)
		result.messages[i] = buffer_str(&responses[i]);
	k->is_busy = false;
	k->on_result(k, &result);
	for (size_t i = 0; i < KUBELET_QUERY__COUNT; i++)
		buffer_done(&responses[i]);
}

/* The deadline has passed, or finish() was called. */
static void on_deadline(struct timer *t)
{
	struct kubelet_client *k = container_of(t, struct kubelet_client, deadline);

	if (!k->is_closing) {
		k->is_closing = true;
		k->outcome = KUBELET_FAILED;
		k->code = GRPC_DEADLINE_EXCEEDED;
		(void)err_set(&k->why, ETIMEDOUT, "no response from the kubelet within %d ms",
			      KUBELET_DEADLINE_MS);
	}
	grpc_free(k->grpc);
	k->grpc = NULL;
	stream_close(&k->stream, on_closed);
}

static void send_frames(struct kubelet_client *k)
{
	struct str bytes;

	while (grpc_send(k->grpc, &bytes))
		stream_write(&k->stream, bytes);
}

static void on_response(void *user, int32_t call, const struct grpc_response *response)
{
	struct kubelet_client *k = user;
	bool is_complete = true;

	if (response->code != GRPC_OK) {
		(void)err_set(&k->why, EIO, "the kubelet responded: " PRI_STR,
			      FMT_STR(response->text));
		finish(k, KUBELET_FAILED, response->code);
		return;
	}
	for (size_t i = 0; i < KUBELET_QUERY__COUNT; i++) {
		if (k->calls[i] == call) {
			buffer_add(&k->responses[i], response->message);
			k->calls[i] = 0;
		}
		is_complete &= k->calls[i] == 0;
	}
	if (is_complete)
		finish(k, KUBELET_RESPONDED, GRPC_OK);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct kubelet_client *k = container_of(s, struct kubelet_client, stream);
	struct err err = { 0 };

	if (k->is_closing)
		return;
	/* grpc_receive() calls on_response(); a finished request still has its session here. */
	if (grpc_receive(k->grpc, bytes, &err) < 0)
		fail(k, EPROTO, err.msg);
	else
		send_frames(k);
}

static void on_end(struct stream *s, int error)
{
	fail(container_of(s, struct kubelet_client, stream), ECONNRESET,
	     error ? strerror(-error) : "closed without a response");
}

static void on_connected(struct stream *s, int error)
{
	static const char *const paths[] = {
		[KUBELET_LIST] = PODRES_LIST, [KUBELET_ALLOCATABLE] = PODRES_ALLOCATABLE
	};
	struct kubelet_client *k = container_of(s, struct kubelet_client, stream);

	if (k->is_closing)
		return;
	if (error < 0) {
		fail(k, -error, strerror(-error));
		return;
	}
	for (size_t i = 0; i < KUBELET_QUERY__COUNT; i++) {
		if (!(k->queries & 1u << i))
			continue;
		/* Both calls share the connection as HTTP/2 streams; their responses arrive in any
		 * order. */
		k->calls[i] = grpc_call(k->grpc, paths[i], STR("")); /* both requests are empty */
		if (k->calls[i] < 0)
			fail(k, EPROTO, "the call cannot be sent");
	}
	send_frames(k);
}

static const struct stream_events events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_connected = on_connected,
};

void kubelet_client_init(struct kubelet_client *k, struct loop *loop, const char *path,
			 kubelet_fn on_result)
{
	*k = (struct kubelet_client){ .loop = loop, .path = path, .on_result = on_result };
	timer_init(&k->deadline, loop, on_deadline);
}

void kubelet_client_done(struct kubelet_client *k)
{
	timer_close(&k->deadline, NULL);
	if (!k->is_busy)
		return;
	grpc_free(k->grpc);
	/* A socket that is already closing still delivers its result while the loop ends. */
	if (!stream_is_closing(&k->stream))
		stream_close(&k->stream, NULL);
	for (size_t i = 0; i < KUBELET_QUERY__COUNT; i++)
		buffer_done(&k->responses[i]);
}

void kubelet_client_request(struct kubelet_client *k, unsigned queries)
{
	struct err err = { 0 };

	k->is_busy = true;
	k->is_closing = false;
	k->queries = queries;
	k->why = (struct err){ 0 };
	memset(k->calls, 0, sizeof(k->calls));
	k->grpc = grpc_client_new(on_response, k);
	timer_start(&k->deadline, KUBELET_DEADLINE_MS, 0);
	if (stream_connect_unix(&k->stream, k->loop, k->path, &events, &err) < 0)
		fail(k, err.code, err.msg);
}
