/* The directory of a cgroup is watched, not its files: one watch covers all control files, and the
 * number of watches per user is limited. A process's write to a control file passes through the VFS
 * and raises IN_MODIFY; a change by the kernel itself does not. */

#include "cgroup_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cgroup.h"

/* A failure counts at once. That it has ended is known only after a round in which every cgroup was
 * added without one. */
static void set_unwatched(struct cgroup_watch *w, int error)
{
	w->unwatched_errno = w->round_errno = error;
}

static void open_inotify(struct cgroup_watch *w)
{
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		set_unwatched(w, errno);
}

void cgroup_watch_init(struct cgroup_watch *w)
{
	*w = (struct cgroup_watch){ 0 };
	open_inotify(w);
}

void cgroup_watch_done(struct cgroup_watch *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
}

void cgroup_watch_end_round(struct cgroup_watch *w)
{
	w->unwatched_errno = w->round_errno;
	w->round_errno = 0;
	if (w->fd < 0)
		open_inotify(w);
}

/* inotify takes paths only; /proc/self/fd has one for a directory handle. */
static void add_directory(struct cgroup_watch *w, int tree, const char *path, int *id)
{
	char full[PATH_MAX];
	int n, wd;

	/* Watched already: adding it again costs a path lookup at every check. */
	if (*id)
		return;
	n = snprintf(full, sizeof(full), "/proc/self/fd/%d/%s", tree, path);
	if (n < 0 || (size_t)n >= sizeof(full))
		return;
	wd = inotify_add_watch(w->fd, full, IN_MODIFY | IN_ONLYDIR);
	if (wd > 0) {
		*id = wd;
	} else if (errno != ENOENT && errno != ENOTDIR) {
		set_unwatched(w, errno);
	}
}

void cgroup_watch_add(struct cgroup_watch *w, const struct cgroup_fs *fs, const char *path,
		      unsigned parts, struct cgroup_watch_ids *ids)
{
	const bool is_v2 = fs->version == CGROUP_V2;

	if (w->fd < 0 || !*path)
		return;
	if (parts & CGROUP_CPUS || (parts && is_v2))
		add_directory(w, fs->cpuset_fd, path, &ids->cpuset);
	if (parts & (CGROUP_WEIGHT | CGROUP_QUOTA) && !is_v2)
		add_directory(w, fs->cpu_fd, path, &ids->cpu);
}

void cgroup_watch_remove(struct cgroup_watch *w, struct cgroup_watch_ids *ids)
{
	if (w->fd >= 0 && ids->cpuset)
		(void)inotify_rm_watch(w->fd, ids->cpuset);
	if (w->fd >= 0 && ids->cpu)
		(void)inotify_rm_watch(w->fd, ids->cpu);
	*ids = (struct cgroup_watch_ids){ 0 };
}

static void report_writes(const char *bytes, size_t n, void (*on_write)(void *data, int id),
			  void *data)
{
	const struct inotify_event *event;

	for (size_t at = 0; at + sizeof(*event) <= n; at += sizeof(*event) + event->len) {
		event = (const struct inotify_event *)(const void *)(bytes + at);
		if (event->mask & IN_Q_OVERFLOW)
			on_write(data, -1);
		/* cpu.* and cpuset.*; a runtime writes cgroup.procs at every exec. */
		else if (event->len > 0 && strncmp(event->name, "cpu", 3) == 0)
			on_write(data, event->wd);
	}
}

void cgroup_watch_read(struct cgroup_watch *w, void (*on_write)(void *data, int id), void *data)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t n;

	while (w->fd >= 0 && (n = read(w->fd, buffer, sizeof(buffer))) > 0)
		report_writes(buffer, (size_t)n, on_write, data);
}
