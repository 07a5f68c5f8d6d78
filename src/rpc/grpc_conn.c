/* A gRPC connection: HTTP/2 streams by nghttp2, each one call. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/macro.h"
#include "grpc.h"
#include "net/buffer.h"
#include "net/http2_session.h"

/* Longer texts and paths are cut or ignored: both come from the peer, and one buffer of each exists
 * per stream. */
#define TEXT_MAX 512
#define PATH_MAX_BYTES 256
/* Resets per connection: starting and cancelling calls costs an attacker nothing, the server a
 * stream each time (CVE-2023-44487). */
#define MAX_RESETS 1000
/* HTTP/2's initial window of 64 KiB would make a large response wait for a WINDOW_UPDATE after each
 * piece. */
#define WINDOW_BYTES (1 << 20)

struct grpc_stream {
	TAILQ_ENTRY(grpc_stream) link;
	int32_t id;
	char path[PATH_MAX_BYTES];
	bool is_grpc;	/* by its content-type */
	bool is_broken; /* too large, or a field too long */
	bool has_code;
	unsigned http_status;
	enum grpc_code code; /* client: from the trailers */
	char text[TEXT_MAX];
	struct buffer in, out;
};

struct grpc {
	nghttp2_session *session;
	bool is_server;
	unsigned resets;
	grpc_call_fn on_call;
	grpc_response_fn on_response;
	void *user;
	TAILQ_HEAD(grpc_streams, grpc_stream) streams;
};

static struct grpc_stream *stream_new(struct grpc *g, int32_t id)
{
	struct grpc_stream *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->id = id;
	TAILQ_INSERT_TAIL(&g->streams, s, link);
	return s;
}

/* A stream belongs to the list and is nghttp2's user data of the same id. It is freed when nghttp2
 * closes the stream, or with the connection. */
static void stream_free(struct grpc *g, struct grpc_stream *s)
{
	TAILQ_REMOVE(&g->streams, s, link);
	buffer_done(&s->in);
	buffer_done(&s->out);
	free(s);
}

/* Messages out. */

static void queue_message(struct grpc_stream *s, struct str message)
{
	unsigned char prefix[GRPC_PREFIX_SIZE];

	grpc_put_prefix(prefix, (uint32_t)message.n);
	buffer_add(&s->out, (struct str){ (const char *)prefix, sizeof(prefix) });
	if (message.n > 0)
		buffer_add(&s->out, message);
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
			uint32_t *flags, nghttp2_data_source *source, void *user)
{
	const struct grpc *g = user;
	struct grpc_stream *s = source->ptr;
	const nghttp2_nv trailer = http2_field("grpc-status", "0");
	const ssize_t n = http2_take_body(&s->out, buf, cap, flags);

	if (g->is_server && (*flags & NGHTTP2_DATA_FLAG_EOF)) { /* trailers carry the status */
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		(void)nghttp2_submit_trailer(session, id, &trailer, 1);
	}
	return n;
}

static struct grpc_stream *find(const struct grpc *g, int32_t id)
{
	struct grpc_stream *s;

	for (s = TAILQ_FIRST(&g->streams); s; s = TAILQ_NEXT(s, link))
		if (s->id == id)
			return s;
	return NULL;
}

void grpc_respond(struct grpc *g, int32_t call, const struct grpc_response *response)
{
	/* The call may be gone: the client can cancel it while the owner works on the response. */
	struct grpc_stream *s = find(g, call);
	nghttp2_data_provider provider = { .source.ptr = s, .read_callback = read_out };
	char code[16], text[TEXT_MAX];
	nghttp2_nv fields[4] = {
		http2_field(":status", "200"),
		http2_field("content-type", "application/grpc"),
	};

	if (!s)
		return;
	/* The body is sent when nghttp2 calls read_out(); nghttp2 copies header fields, so arrays
	 * on the stack are enough. */
	if (response->code == GRPC_OK) {
		queue_message(s, response->message);
		(void)nghttp2_submit_response(g->session, call, fields, 2, &provider);
		return;
	}
	/* A failure has no message and thus no trailers: the status is in the only header block
	 * ("Trailers-Only" in the gRPC specification). */
	(void)snprintf(code, sizeof(code), "%d", (int)response->code);
	grpc_escape(response->text, text, sizeof(text));
	fields[2] = http2_field("grpc-status", code);
	fields[3] = http2_field("grpc-message", text);
	(void)nghttp2_submit_response(g->session, call, fields, 4, NULL);
}

int32_t grpc_call(struct grpc *g, const char *path, struct str message)
{
	const nghttp2_nv fields[] = {
		http2_field(":method", "POST"),
		http2_field(":scheme", "http"),
		http2_field(":authority", "localhost"),
		http2_field(":path", path),
		http2_field("content-type", "application/grpc"),
		http2_field("user-agent", "pinfold"),
		/* gRPC servers use this field to detect proxies that drop trailers. */
		http2_field("te", "trailers"),
	};
	/* Before the request is submitted, because nghttp2 takes it as user data; the id is known
	 * after that. */
	struct grpc_stream *s = stream_new(g, 0);
	nghttp2_data_provider provider = { .source.ptr = s, .read_callback = read_out };
	int32_t id;

	queue_message(s, message);
	id = nghttp2_submit_request(g->session, NULL, fields, ARRAY_LEN(fields), &provider, s);
	if (id < 0) {
		stream_free(g, s);
		return -ECONNRESET;
	}
	s->id = id;
	return id;
}

/* Frames in. */

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc *g = user;

	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
							   stream_new(g, frame->hd.stream_id));
	return 0;
}

static void take_status(struct grpc_stream *s, struct str value)
{
	uint64_t code;

	s->has_code = true;
	s->code = str_to_u64(value, GRPC__CODES - 1, &code) ? (enum grpc_code)code : GRPC_UNKNOWN;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const struct str key = { (const char *)name, name_n };
	const struct str text = { (const char *)value, value_n };
	uint64_t status;

	(void)flags;
	(void)user;
	if (!s)
		return 0;
	/* A path that is too long stays empty, and no method has that name. */
	if (str_eq(key, STR(":path")) && text.n < sizeof(s->path))
		memcpy(s->path, text.p, text.n); /* the rest is zero; nghttp2 allows one path */
	else if (str_eq(key, STR("content-type")))
		s->is_grpc = str_eq(text, STR("application/grpc")) ||
			     str_starts(text, STR("application/grpc+proto")) ||
			     str_starts(text, STR("application/grpc;"));
	else if (str_eq(key, STR(":status")) && str_to_u64(text, 999, &status))
		s->http_status = (unsigned)status;
	else if (str_eq(key, STR("grpc-status")))
		take_status(s, text);
	else if (str_eq(key, STR("grpc-message")))
		grpc_unescape(text, s->text, sizeof(s->text));
	return 0;
}

static int on_body(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, id);
	const struct grpc *g = user;
	const size_t max = GRPC_PREFIX_SIZE + (g->is_server ? GRPC_MAX_REQUEST : GRPC_MAX_RESPONSE);

	(void)flags;
	if (!s || s->is_broken)
		return 0;
	/* The rest of the stream is read and dropped, not reset: the server then responds with a
	 * status. */
	s->is_broken = buffer_len(&s->in) + n > max;
	if (!s->is_broken)
		buffer_add(&s->in, (struct str){ (const char *)data, n });
	return 0;
}

static void respond_error(struct grpc *g, int32_t id, enum grpc_code code, struct str text)
{
	grpc_respond(g, id, &(struct grpc_response){ .code = code, .text = text });
}

/* The request is complete. */
static void serve(struct grpc *g, struct grpc_stream *s)
{
	const nghttp2_nv no_grpc = http2_field(":status", "415");
	struct err err = { 0 };
	struct str message;
	int r;

	/* The gRPC specification recommends this HTTP status, not a gRPC status, for other
	 * protocols. */
	if (!s->is_grpc) {
		(void)nghttp2_submit_response(g->session, s->id, &no_grpc, 1, NULL);
		return;
	}
	if (s->is_broken) {
		respond_error(g, s->id, GRPC_RESOURCE_EXHAUSTED, STR("the request is too large"));
		return;
	}
	r = grpc_message_of(buffer_str(&s->in), &message, &err);
	if (r < 0) {
		respond_error(g, s->id, r == -ENOTSUP ? GRPC_UNIMPLEMENTED : GRPC_INTERNAL,
			      str_from(err.msg));
		return;
	}
	g->on_call(g->user, s->id, str_from(s->path), message);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc *g = user;
	struct grpc_stream *s;

	/* Failing the callback makes nghttp2_session_mem_recv() fail, and the owner closes the
	 * connection. */
	if (frame->hd.type == NGHTTP2_RST_STREAM && ++g->resets > MAX_RESETS)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (!g->is_server || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (s)
		serve(g, s);
	return 0;
}

/* Client: the stream is closed, with or without a response. */
static struct grpc_response response_of(struct grpc_stream *s, uint32_t error, struct err *err)
{
	struct grpc_response response = { .code = GRPC_OK };
	int r = 0;

	/* A status is valid even when the stream was reset after it: a server may end a call before
	 * it has read the whole request. */
	if (s->has_code && s->code != GRPC_OK)
		return (struct grpc_response){ .code = s->code, .text = str_from(s->text) };
	if (error != NGHTTP2_NO_ERROR)
		r = err_set(err, ECONNRESET, "the server ended the call: %s",
			    nghttp2_http2_strerror(error));
	else if (!s->has_code || !s->is_grpc)
		r = err_set(err, EPROTO, "the server does not speak gRPC (HTTP status %u)",
			    s->http_status);
	else if (s->is_broken)
		r = err_set(err, EMSGSIZE, "the response is larger than %zu bytes",
			    GRPC_MAX_RESPONSE);
	else
		r = grpc_message_of(buffer_str(&s->in), &response.message, err);
	if (r == -EMSGSIZE)
		response.code = GRPC_RESOURCE_EXHAUSTED;
	else if (r < 0)
		response.code = r == -ECONNRESET ? GRPC_UNAVAILABLE : GRPC_INTERNAL;
	if (r < 0)
		response.text = str_from(err->msg);
	return response;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct grpc *g = user;
	struct grpc_response response;
	struct err err = { 0 };

	if (!s)
		return 0;
	/* nghttp2 may keep a closed stream in its table; callbacks for it must not find freed
	 * memory. */
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	if (!g->is_server) {
		response = response_of(s, error, &err);
		g->on_response(g->user, id, &response);
	}
	stream_free(g, s);
	return 0;
}

/* The connection. */

static struct grpc *grpc_new(bool is_server, void *user)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_MAX_STREAMS },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	const struct http2_session_config config = {
		.is_server = is_server,
		.on_begin = on_begin,
		.on_field = on_field,
		.on_body = on_body,
		.on_frame = on_frame,
		.on_stream_close = on_stream_close,
		.settings = settings,
		.n_settings = ARRAY_LEN(settings),
		.window_bytes = WINDOW_BYTES,
	};
	struct grpc *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->is_server = is_server;
	g->user = user;
	TAILQ_INIT(&g->streams);
	g->session = http2_session_new(&config, g);
	return g;
}

struct grpc *grpc_server_new(grpc_call_fn on_call, void *user)
{
	struct grpc *g = grpc_new(true, user);

	g->on_call = on_call;
	return g;
}

struct grpc *grpc_client_new(grpc_response_fn on_response, void *user)
{
	struct grpc *g = grpc_new(false, user);

	g->on_response = on_response;
	return g;
}

void grpc_free(struct grpc *g)
{
	struct grpc_stream *s, *next;

	if (!g)
		return;
	/* Before the streams: the session may still refer to them. */
	nghttp2_session_del(g->session);
	for (s = TAILQ_FIRST(&g->streams); s; s = next) {
		next = TAILQ_NEXT(s, link);
		stream_free(g, s);
	}
	free(g);
}

int grpc_receive(struct grpc *g, struct str bytes, struct err *err)
{
	const ssize_t n = nghttp2_session_mem_recv(g->session, (const uint8_t *)bytes.p, bytes.n);

	if (n < 0)
		return err_set(err, EPROTO, "broken HTTP/2: %s", nghttp2_strerror((int)n));
	return 0;
}

bool grpc_send(struct grpc *g, struct str *ret)
{
	return http2_session_output(g->session, ret);
}

bool grpc_is_finished(const struct grpc *g)
{
	return http2_session_is_finished(g->session);
}
