/* Connected sockets on a loop: TCP as accepted or connected, and Unix sockets. Bytes go out at once
 * where the kernel accepts them, otherwise through a queue. */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "loop.h"

#define QUEUE_KEEP 4096 /* an empty queue up to this size is kept for the next write */

static struct stream *stream_of(void *handle)
{
	return container_of(handle, struct stream, uv);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct stream *s = stream_of(handle);

	(void)suggested;
	*ret = uv_buf_init(s->loop->read_buffer, LOOP_READ_BYTES);
}

static void report_end(struct stream *s, int error)
{
	/* Reading and writing may both fail in one turn; the owner is called once. */
	if (s->ended || stream_is_closing(s))
		return;
	s->ended = true;
	(void)uv_read_stop(&s->uv.stream);
	s->events->on_end(s, error);
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf)
{
	struct stream *s = stream_of(handle);

	if (n > 0)
		s->events->on_data(s, (struct str){ buf->base, (size_t)n });
	else if (n < 0)
		report_end(s, n == UV_EOF ? 0 : (int)n);
}

static void start_reading(struct stream *s)
{
	(void)uv_read_start(&s->uv.stream, on_alloc, on_read); /* fails only when closing */
}

static void stream_init(struct stream *s, struct loop *loop, const struct stream_events *events)
{
	*s = (struct stream){ .loop = loop, .events = events };
}

int stream_open(struct stream *s, struct loop *loop, int fd, const struct stream_events *events,
		struct err *err)
{
	int r;

	stream_init(s, loop, events);
	(void)uv_tcp_init(&loop->uv, &s->uv.tcp); /* creates no socket yet, cannot fail */
	r = uv_tcp_open(&s->uv.tcp, fd);
	if (r < 0) {
		(void)close(fd);
		return err_set(err, -r, "cannot open the connection: %s", uv_strerror(r));
	}
	/* Messages are written in one piece, so Nagle's algorithm would only delay the last
	 * segment. */
	(void)uv_tcp_nodelay(&s->uv.tcp, 1);
	start_reading(s);
	return 0;
}

static void on_connect(uv_connect_t *request, int status)
{
	struct stream *s = container_of(request, struct stream, request.connect);

	if (stream_is_closing(s))
		return;
	if (status >= 0)
		start_reading(s);
	else
		/* No on_end after a failed connect: on_connected has the error. */
		s->ended = true;
	s->events->on_connected(s, status);
}

int stream_connect(struct stream *s, struct loop *loop, const struct sockaddr *addr,
		   const struct stream_events *events, struct err *err)
{
	int r;

	stream_init(s, loop, events);
	(void)uv_tcp_init(&loop->uv, &s->uv.tcp);
	r = uv_tcp_connect(&s->request.connect, &s->uv.tcp, addr, on_connect);
	if (r < 0)
		return err_set(err, -r, "cannot connect: %s", uv_strerror(r));
	(void)uv_tcp_nodelay(&s->uv.tcp, 1);
	return 0;
}

int stream_connect_unix(struct stream *s, struct loop *loop, const char *path,
			const struct stream_events *events, struct err *err)
{
	struct sockaddr_un addr;

	stream_init(s, loop, events);
	(void)uv_pipe_init(&loop->uv, &s->uv.pipe, 0);
	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: socket path is too long", path);
	uv_pipe_connect(&s->request.connect, &s->uv.pipe, path, on_connect);
	return 0;
}

static void send_queued(struct stream *s);

static void on_written(uv_write_t *request, int status)
{
	struct stream *s = container_of(request, struct stream, request.write);

	/* Closing completes a write in flight with UV_ECANCELED; its buffers are freed in
	 * on_stream_closed(). */
	s->writing = false;
	if (stream_is_closing(s))
		return;
	buffer_consume(&s->sending, buffer_len(&s->sending));
	buffer_trim(&s->sending, QUEUE_KEEP);
	if (status < 0)
		report_end(s, status);
	else if (buffer_len(&s->queued))
		send_queued(s);
	else if (s->events->on_drained)
		s->events->on_drained(s);
}

/* One write at a time. The two buffers swap, so that bytes can be queued while libuv holds on to
 * the others. */
static void send_queued(struct stream *s)
{
	struct buffer empty = s->sending;
	struct str bytes;
	uv_buf_t buf;
	int r;

	s->sending = s->queued;
	s->queued = empty;
	bytes = buffer_str(&s->sending);
	buf = uv_buf_init((char *)bytes.p, (unsigned)bytes.n);
	s->writing = true;
	r = uv_write(&s->request.write, &s->uv.stream, &buf, 1, on_written);
	assert(r >= 0); /* fails only on a handle that is not a connected stream */
	(void)r;
}

void stream_write(struct stream *s, struct str bytes)
{
	uv_buf_t buf = uv_buf_init((char *)bytes.p, (unsigned)bytes.n);

	if (!bytes.n || s->ended || stream_is_closing(s))
		return;
	if (!s->writing) {
		/* Most responses fit into the socket buffer: no copy, no request, no further turn
		 * of the loop. */
		int n = uv_try_write(&s->uv.stream, &buf, 1);

		if (n > 0)
			bytes = str_skip(bytes, (size_t)n);
		/* an error other than EAGAIN recurs in uv_write(), whose callback reports it */
		if (!bytes.n)
			return;
	}
	buffer_add(&s->queued, bytes);
	if (!s->writing)
		send_queued(s);
}

size_t stream_queued(const struct stream *s)
{
	return buffer_len(&s->queued) + (s->writing ? buffer_len(&s->sending) : 0);
}

void stream_pause(struct stream *s)
{
	(void)uv_read_stop(&s->uv.stream);
}

void stream_resume(struct stream *s)
{
	if (!s->ended && !stream_is_closing(s))
		start_reading(s);
}

bool stream_is_closing(const struct stream *s)
{
	return uv_is_closing(&s->uv.handle) != 0;
}

static void on_stream_closed(uv_handle_t *handle)
{
	struct stream *s = stream_of(handle);

	buffer_done(&s->sending);
	buffer_done(&s->queued);
	if (s->on_closed)
		s->on_closed(s);
}

void stream_close(struct stream *s, stream_fn on_closed)
{
	s->on_closed = on_closed;
	uv_close(&s->uv.handle, on_stream_closed);
}
