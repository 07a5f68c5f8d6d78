#pragma once

/* One event loop per thread, with libuv. Sources (timers, streams, listeners, signals, wakers, file
 * watches) are values embedded in their owner, which a callback finds with container_of(). A source
 * belongs to the thread of its loop; only waker_wake() may be called from another. Closing is
 * asynchronous: the owner's memory must stay until `on_closed` was called. Bytes are not
 * interpreted here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/str.h"
#include "buffer.h"

struct err;
struct loop;

#define LOOP_READ_BYTES 65536 /* read at once; one buffer for all streams of a loop */

struct loop {
	uv_loop_t uv;
	char *read_buffer;
};

int loop_init(struct loop *loop, struct err *err);
void loop_run(struct loop *loop); /* until loop_stop() or until no source is left */
void loop_stop(struct loop *loop);
uint64_t loop_now_ms(const struct loop *loop); /* monotonic; as of this turn of the loop */

/* Closes the remaining sources without calling their owners, then frees the loop. Owners close
 * their streams and listeners before: those hold memory and descriptors. */
void loop_done(struct loop *loop);

/* Timer. */
struct timer;
typedef void (*timer_fn)(struct timer *t);

struct timer {
	uv_timer_t uv;
	timer_fn on_fire;
	timer_fn on_closed;
};

void timer_init(struct timer *t, struct loop *loop, timer_fn on_fire);
void timer_start(struct timer *t, uint64_t after_ms, uint64_t every_ms); /* 0: once */
void timer_stop(struct timer *t);
bool timer_is_active(const struct timer *t);
void timer_close(struct timer *t, timer_fn on_closed); /* on_closed may be NULL, as below */

/* Waker: the only source that another thread may use. Several wakes may be delivered as one. */
struct waker;
typedef void (*waker_fn)(struct waker *w);

struct waker {
	uv_async_t uv;
	waker_fn on_wake;
};

int waker_init(struct waker *w, struct loop *loop, waker_fn on_wake, struct err *err);
void waker_wake(struct waker *w);

/* Signal: SIGTERM, SIGINT, SIGHUP... delivered on the loop. */
struct signal_source;
typedef void (*signal_fn)(struct signal_source *s, int number);

struct signal_source {
	uv_signal_t uv;
	signal_fn on_signal;
};

int signal_source_init(struct signal_source *s, struct loop *loop, int number, signal_fn on_signal,
		       struct err *err);

/* File watch: `path`, a file or a directory, changed. A file that is replaced by renaming, as in
 * Kubernetes mounts, is followed only by watching its directory. */
struct file_watch;
typedef void (*file_watch_fn)(struct file_watch *w);

struct file_watch {
	uv_fs_event_t uv;
	file_watch_fn on_change;
};

int file_watch_init(struct file_watch *w, struct loop *loop, const char *path,
		    file_watch_fn on_change, struct err *err);
void file_watch_close(struct file_watch *w);

/* Stream: a connected TCP or Unix socket. Writing never blocks: what the kernel does not accept is
 * queued. `on_data`'s bytes are valid during the call. `on_end` is called once: error 0 when the
 * peer finished sending, else a negative errno; the owner then closes. Callbacks may close the
 * stream.
 */
struct stream;
typedef void (*stream_data_fn)(struct stream *s, struct str bytes);
typedef void (*stream_end_fn)(struct stream *s, int error);
typedef void (*stream_fn)(struct stream *s);

struct stream_events {
	stream_data_fn on_data;
	stream_end_fn on_end;
	stream_fn on_drained;	    /* everything queued was handed to the kernel; may be NULL */
	stream_end_fn on_connected; /* client side: error 0, or a negative errno */
};

struct stream {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	struct loop *loop;
	const struct stream_events *events;
	stream_fn on_closed;
	union {
		uv_write_t write;
		uv_connect_t connect;
	} request;
	struct buffer sending; /* what the request in flight points at */
	struct buffer queued;
	bool writing;
	bool ended;
};

/* An accepted socket. Owns the descriptor, also on failure; reading starts. Whatever this and the
 * next two return, the stream must be closed with stream_close(). */
int stream_open(struct stream *s, struct loop *loop, int fd, const struct stream_events *events,
		struct err *err);

/* Connect to an address ("127.0.0.1", "::1"; names are resolved by the caller) or a Unix socket.
 * on_connected comes later, and reading starts with success. */
int stream_connect(struct stream *s, struct loop *loop, const struct sockaddr *addr,
		   const struct stream_events *events, struct err *err);
int stream_connect_unix(struct stream *s, struct loop *loop, const char *path,
			const struct stream_events *events, struct err *err);

void stream_write(struct stream *s, struct str bytes); /* copies what it must keep */
size_t stream_queued(const struct stream *s); /* bytes that the kernel has not accepted yet */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);
void stream_close(struct stream *s, stream_fn on_closed); /* drops what is queued */
bool stream_is_closing(const struct stream *s);

/* Listener: accepts TCP connections. With `reuse_port` several loops listen on one port and the
 * kernel distributes the connections. listener_init() owns the descriptor. */
struct listener;
typedef void (*listener_accept_fn)(struct listener *l, int fd);
typedef void (*listener_error_fn)(struct listener *l,
				  int error); /* accept failed: negative errno */

struct listener {
	uv_poll_t uv;
	struct timer retry; /* accepting pauses after EMFILE and similar errors */
	int fd;
	bool paused;
	listener_accept_fn on_accept;
	listener_error_fn on_error;
};

/* "HOST:PORT", "[::1]:8443" or ":8443" (any address). Numeric hosts only. */
int net_address_parse(struct str text, struct sockaddr_storage *ret, struct err *err);

/* A listening socket; port 0 picks a free one, which net_local_port() returns. */
int net_listen(const struct sockaddr_storage *addr, bool reuse_port, struct err *err);
unsigned net_local_port(int fd);

/* The same for a Unix socket of mode 0600. An existing one is replaced: the caller has checked that
 * no other process serves it. */
int net_listen_unix(const char *path, int backlog, struct err *err);

int listener_init(struct listener *l, struct loop *loop, int fd, listener_accept_fn on_accept,
		  listener_error_fn on_error, struct err *err);
void listener_pause(struct listener *l); /* new connections wait in the backlog */
void listener_resume(struct listener *l);
void listener_close(struct listener *l); /* closes the descriptor */
