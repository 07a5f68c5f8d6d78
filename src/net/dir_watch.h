#pragma once

/* Watches a directory with inotify: reports a file when it is complete (closed after writing, or
 * renamed into place) or removed, not while it is written. Files are not read here. The simpler
 * file_watch in loop.h reports every change. */

#include <uv.h>

struct dir_watch;
struct err;
struct loop;

/* `name` is NULL when the file is not known: any file may have changed. */
typedef void (*dir_watch_fn)(struct dir_watch *w, const char *name);

struct dir_watch {
	uv_poll_t uv;
	int fd; /* -1: not watching */
	dir_watch_fn on_change;
};

/* Call first; afterwards the other two may be called at any time. */
void dir_watch_init(struct dir_watch *w, dir_watch_fn on_change);

/* Fails when the directory does not exist; may be retried. No-op when it is already watching. */
int dir_watch_start(struct dir_watch *w, struct loop *loop, const char *path, struct err *err);

/* Also called when the directory itself is moved or removed; the owner may start it again. */
void dir_watch_stop(struct dir_watch *w);
