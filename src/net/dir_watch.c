/* Reads inotify directly: libuv's uv_fs_event reports a file while it is being written and does not
 * say when it is complete. */

#include "dir_watch.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "loop.h"

/* No IN_MODIFY and no IN_CREATE: the file is incomplete at both. The *_SELF events say that
 * the directory is gone, and with it the watch. */
#define EVENTS                                                                                     \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |               \
	 IN_MOVE_SELF | IN_ONLYDIR)

void dir_watch_init(struct dir_watch *w, dir_watch_fn on_change)
{
	*w = (struct dir_watch){ .fd = -1, .on_change = on_change };
}

/* True when the directory itself was moved or removed. */
static bool report_events(struct dir_watch *w, const char *bytes, size_t n)
{
	const struct inotify_event *event;
	bool is_gone = false;

	for (size_t at = 0; at + sizeof(*event) <= n; at += sizeof(*event) + event->len) {
		event = (const struct inotify_event *)(const void *)(bytes + at);
		if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED))
			is_gone = true;
		/* No name: an event of the directory itself, or IN_Q_OVERFLOW, after which any file
		 * may have changed. The owner may stop the watch in the callback. */
		w->on_change(w, event->len > 0 ? event->name : NULL);
	}
	return is_gone;
}

static void on_readable(uv_poll_t *uv, int status, int events)
{
	struct dir_watch *w = container_of(uv, struct dir_watch, uv);
	/* The kernel returns whole events only, and fails when the buffer is too small for one,
	 * which takes at most 272 bytes. */
	_Alignas(struct inotify_event) char buffer[4096];
	bool is_gone = false;
	ssize_t n;

	(void)status;
	(void)events;
	while (w->fd >= 0 && (n = read(w->fd, buffer, sizeof(buffer))) > 0)
		is_gone = report_events(w, buffer, (size_t)n) || is_gone;
	if (is_gone)
		dir_watch_stop(w);
}

int dir_watch_start(struct dir_watch *w, struct loop *loop, const char *path, struct err *err)
{
	int fd;

	if (w->fd >= 0 || uv_is_closing((uv_handle_t *)&w->uv))
		return 0; /* closing takes one turn of the loop; the owner retries */
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "watch %s: %s", path, strerror(errno));
	if (inotify_add_watch(fd, path, EVENTS) < 0 || uv_poll_init(&loop->uv, &w->uv, fd) < 0) {
		const int code = errno;

		(void)close(fd);
		return err_set(err, code, "watch %s: %s", path, strerror(code));
	}
	w->fd = fd;
	(void)uv_poll_start(&w->uv, UV_READABLE, on_readable); /* cannot fail */
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct dir_watch *w = container_of((uv_poll_t *)handle, struct dir_watch, uv);

	/* So that uv_is_closing() is false again and the watch can be started. */
	memset(&w->uv, 0, sizeof(w->uv));
}

void dir_watch_stop(struct dir_watch *w)
{
	if (w->fd < 0)
		return;
	(void)uv_poll_stop(&w->uv);
	(void)close(w->fd);
	w->fd = -1;
	uv_close((uv_handle_t *)&w->uv, on_closed);
}
