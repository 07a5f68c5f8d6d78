#pragma once

/* A directory on the loop, by inotify: tells when a file in it is complete (closed after writing,
 * or renamed into place) or gone, and not while it is being written. What the files mean is the
 * owner's business. */

#include <uv.h>

struct dir_watch;
struct err;
struct loop;

/* `name` is NULL when it is not known which file: look at all of them. */
typedef void (*dir_watch_fn)(struct dir_watch *w, const char *name);

struct dir_watch {
	uv_poll_t uv;
	int fd; /* -1: not watching */
	dir_watch_fn on_change;
};

/* Before anything else, so that the two below may always be called. */
void dir_watch_init(struct dir_watch *w, dir_watch_fn on_change);

/* Fails when the directory is not there; may be tried again. No-op when it watches already. */
int dir_watch_start(struct dir_watch *w, struct loop *loop, const char *path, struct err *err);

/* The directory may have been moved away and made anew: the owner then starts again. */
void dir_watch_stop(struct dir_watch *w);
