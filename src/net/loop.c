/* A thin layer over libuv. Each source embeds its libuv handle, so no callback allocates and no
 * handle needs a `data` pointer: container_of() finds the owner. */

#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/macro.h"

int loop_init(struct loop *loop, struct err *err)
{
	int r = uv_loop_init(&loop->uv);

	if (r < 0)
		return err_set(err, -r, "cannot create an event loop: %s", uv_strerror(r));
	/* One buffer is enough: libuv asks for it right before a read and passes it to the callback
	 * at once, so no two streams use it at the same time. */
	loop->read_buffer = malloc(LOOP_READ_BYTES);
	if (!loop->read_buffer)
		abort();
	loop->uv.data = loop;
	return 0;
}

void loop_run(struct loop *loop)
{
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

uint64_t loop_now_ms(const struct loop *loop)
{
	/* Cached by libuv at the start of a turn: cheap, and equal for all events of the turn. */
	return uv_now(&loop->uv);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_done(struct loop *loop)
{
	/* libuv frees a loop only when every handle has been closed and its callback has run. */
	uv_walk(&loop->uv, close_handle, NULL);
	while (uv_run(&loop->uv, UV_RUN_DEFAULT))
		;
	if (uv_loop_close(&loop->uv) < 0)
		abort(); /* a libuv request is still active after its handle was closed */
	free(loop->read_buffer);
}

static void on_timer(uv_timer_t *uv)
{
	struct timer *t = container_of(uv, struct timer, uv);

	t->on_fire(t);
}

void timer_init(struct timer *t, struct loop *loop, timer_fn on_fire)
{
	t->on_fire = on_fire;
	t->on_closed = NULL;
	(void)uv_timer_init(&loop->uv, &t->uv); /* cannot fail */
}

void timer_start(struct timer *t, uint64_t after_ms, uint64_t every_ms)
{
	(void)uv_timer_start(&t->uv, on_timer, after_ms, every_ms); /* fails only when closing */
}

void timer_stop(struct timer *t)
{
	(void)uv_timer_stop(&t->uv);
}

bool timer_is_active(const struct timer *t)
{
	return uv_is_active((const uv_handle_t *)&t->uv) != 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct timer *t = container_of((uv_timer_t *)handle, struct timer, uv);

	if (t->on_closed)
		t->on_closed(t);
}

void timer_close(struct timer *t, timer_fn on_closed)
{
	t->on_closed = on_closed;
	uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}

static void on_async(uv_async_t *uv)
{
	struct waker *w = container_of(uv, struct waker, uv);

	w->on_wake(w);
}

int waker_init(struct waker *w, struct loop *loop, waker_fn on_wake, struct err *err)
{
	int r = uv_async_init(&loop->uv, &w->uv, on_async);

	if (r < 0)
		return err_set(err, -r, "cannot create a waker: %s", uv_strerror(r));
	w->on_wake = on_wake;
	return 0;
}

void waker_wake(struct waker *w)
{
	/* The only function of libuv that is safe from another thread. */
	(void)uv_async_send(&w->uv);
}

static void on_uv_signal(uv_signal_t *uv, int number)
{
	struct signal_source *s = container_of(uv, struct signal_source, uv);

	s->on_signal(s, number);
}

int signal_source_init(struct signal_source *s, struct loop *loop, int number, signal_fn on_signal,
		       struct err *err)
{
	int r = uv_signal_init(&loop->uv, &s->uv);

	s->on_signal = on_signal;
	if (r >= 0)
		r = uv_signal_start(&s->uv, on_uv_signal, number);
	if (r < 0)
		return err_set(err, -r, "cannot watch signal %d: %s", number, uv_strerror(r));
	return 0;
}

static void on_fs_event(uv_fs_event_t *uv, const char *name, int events, int status)
{
	struct file_watch *w = container_of(uv, struct file_watch, uv);

	(void)name; /* a rename inside a Kubernetes mount names ..data, not the file */
	(void)events;
	if (status >= 0)
		w->on_change(w);
}

int file_watch_init(struct file_watch *w, struct loop *loop, const char *path,
		    file_watch_fn on_change, struct err *err)
{
	int r;

	w->on_change = on_change;
	(void)uv_fs_event_init(&loop->uv, &w->uv); /* cannot fail */
	r = uv_fs_event_start(&w->uv, on_fs_event, path, 0);
	if (r < 0) {
		file_watch_close(w);
		return err_set(err, -r, "cannot watch %s: %s", path, uv_strerror(r));
	}
	return 0;
}

void file_watch_close(struct file_watch *w)
{
	uv_close((uv_handle_t *)&w->uv, NULL);
}
