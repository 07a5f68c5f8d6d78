#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "net/dir_watch.h"
#include "net/loop.h"
#include "test.h"

struct watcher {
	struct loop loop;
	struct dir_watch watch;
	char dir[64];
	char seen[256]; /* names, each followed by a space */
};

static void on_change(struct dir_watch *w, const char *name)
{
	struct watcher *t = container_of(w, struct watcher, watch);
	const size_t n = strlen(t->seen);

	(void)snprintf(t->seen + n, sizeof(t->seen) - n, "%s ", name ? name : "-");
}

static void watcher_init(struct watcher *t)
{
	struct err err = { 0 };

	*t = (struct watcher){ 0 };
	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/dir-watch-XXXXXX");
	CHECK(mkdtemp(t->dir) != NULL);
	CHECK_OK(loop_init(&t->loop, &err));
	dir_watch_init(&t->watch, on_change);
	CHECK_OK(dir_watch_start(&t->watch, &t->loop, t->dir, &err));
}

static void watcher_done(struct watcher *t)
{
	char command[192];

	dir_watch_stop(&t->watch);
	loop_done(&t->loop);
	(void)snprintf(command, sizeof(command), "rm -rf %s %s.new", t->dir, t->dir);
	CHECK(system(command) == 0);
}

/* What was seen since the last call. Events are in the kernel's queue when the system call that
 * causes them returns, so one turn of the loop is enough. */
static const char *seen(struct watcher *t)
{
	static char text[sizeof(t->seen)];

	(void)uv_run(&t->loop.uv, UV_RUN_NOWAIT);
	memcpy(text, t->seen, sizeof(text));
	t->seen[0] = 0;
	return text;
}

static int open_in(const struct watcher *t, const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	return fd;
}

TEST(a_file_is_reported_when_it_is_complete_and_when_it_is_removed)
{
	CLEANUP(watcher_done) struct watcher t;
	char from[128], to[128];
	int fd;

	watcher_init(&t);
	fd = open_in(&t, "a");
	CHECK(write(fd, "x", 1) == 1);
	CHECK_STR(seen(&t), ""); /* it is still open for writing */
	(void)close(fd);
	CHECK_STR(seen(&t), "a ");
	(void)snprintf(from, sizeof(from), "%s/a", t.dir);
	(void)snprintf(to, sizeof(to), "%s/b", t.dir);
	CHECK(rename(from, to) == 0);
	CHECK_STR(seen(&t), "a b ");
	CHECK(unlink(to) == 0);
	CHECK_STR(seen(&t), "b ");
}

TEST(a_directory_that_was_replaced_is_watched_again)
{
	CLEANUP(watcher_done) struct watcher t;
	struct err err = { 0 };
	char away[96];

	watcher_init(&t);
	(void)snprintf(away, sizeof(away), "%s.new", t.dir);
	CHECK(rename(t.dir, away) == 0);
	CHECK_STR(seen(&t), "- ");
	CHECK_INT(t.watch.fd, -1);
	(void)seen(&t); /* the handle closes */
	CHECK_ERR(dir_watch_start(&t.watch, &t.loop, "/nonexistent/dir", &err), ENOENT,
		  "watch /nonexistent/dir: No such file or directory");
	CHECK(mkdir(t.dir, 0700) == 0);
	CHECK_OK(dir_watch_start(&t.watch, &t.loop, t.dir, &err));
	CHECK(t.watch.fd >= 0);
	(void)close(open_in(&t, "c"));
	CHECK_STR(seen(&t), "c ");
	CHECK_OK(
		dir_watch_start(&t.watch, &t.loop, t.dir, &err)); /* starting again has no effect */
}
