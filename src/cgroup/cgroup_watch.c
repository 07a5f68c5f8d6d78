#include "cgroup_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cgroup.h"

static void be_short(struct cgroup_watch *l, int why)
{
	l->unwatched_errno = l->round_errno = why;
}

static void get_inotify(struct cgroup_watch *l)
{
	l->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->fd < 0)
		be_short(l, errno);
}

void cgroup_watch_init(struct cgroup_watch *l)
{
	*l = (struct cgroup_watch){ 0 };
	get_inotify(l);
}

void cgroup_watch_done(struct cgroup_watch *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}

void cgroup_watch_end_round(struct cgroup_watch *l)
{
	l->unwatched_errno = l->round_errno;
	l->round_errno = 0;
	if (l->fd < 0)
		get_inotify(l);
}

/* inotify takes no directory handles; /proc has names for them. */
static void add_one(struct cgroup_watch *l, int tree, const char *path, int *id)
{
	char full[PATH_MAX];
	const int n = snprintf(full, sizeof(full), "/proc/self/fd/%d/%s", tree, path);
	int wd;

	if (*id || n < 0 || (size_t)n >= sizeof(full))
		return;
	wd = inotify_add_watch(l->fd, full, IN_MODIFY | IN_ONLYDIR);
	if (wd > 0) {
		*id = wd;
	} else if (errno != ENOENT && errno != ENOTDIR) {
		be_short(l, errno);
	}
}

void cgroup_watch_add(struct cgroup_watch *l, const struct cgroup_fs *fs, const char *path,
		      unsigned parts, struct cgroup_watch_ids *ids)
{
	const bool is_one = fs->version == CGROUP_V2;

	if (l->fd < 0 || !*path)
		return;
	if (parts & CGROUP_CPUS || (parts && is_one))
		add_one(l, fs->cpuset_fd, path, &ids->cpuset);
	if (parts & (CGROUP_WEIGHT | CGROUP_QUOTA) && !is_one)
		add_one(l, fs->cpu_fd, path, &ids->cpu);
}

void cgroup_watch_remove(struct cgroup_watch *l, struct cgroup_watch_ids *ids)
{
	if (l->fd >= 0 && ids->cpuset)
		(void)inotify_rm_watch(l->fd, ids->cpuset);
	if (l->fd >= 0 && ids->cpu)
		(void)inotify_rm_watch(l->fd, ids->cpu);
	*ids = (struct cgroup_watch_ids){ 0 };
}

static void tell(const char *bytes, size_t n, void (*on_write)(void *data, int id), void *data)
{
	const struct inotify_event *event;

	for (size_t at = 0; at + sizeof(*event) <= n; at += sizeof(*event) + event->len) {
		event = (const struct inotify_event *)(const void *)(bytes + at);
		if (event->mask & IN_Q_OVERFLOW)
			on_write(data, -1);
		else if (event->len > 0 && strncmp(event->name, "cpu", 3) == 0)
			on_write(data, event->wd);
	}
}

void cgroup_watch_read(struct cgroup_watch *l, void (*on_write)(void *data, int id), void *data)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t n;

	while (l->fd >= 0 && (n = read(l->fd, buffer, sizeof(buffer))) > 0)
		tell(buffer, (size_t)n, on_write, data);
}
