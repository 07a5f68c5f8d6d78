#include "lookout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cgroup.h"

static void be_short(struct lookout *l, int why)
{
	l->why_short = l->why_now = why;
}

static void get_inotify(struct lookout *l)
{
	l->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->fd < 0)
		be_short(l, errno);
}

void lookout_init(struct lookout *l)
{
	*l = (struct lookout){ 0 };
	get_inotify(l);
}

void lookout_done(struct lookout *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}

void lookout_round(struct lookout *l)
{
	l->why_short = l->why_now;
	l->why_now = 0;
	if (l->fd < 0)
		get_inotify(l);
}

/* inotify takes no directory handles; /proc has names for them. */
static void add_one(struct lookout *l, int tree, const char *path, int *id)
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

void lookout_add(struct lookout *l, const struct cgroup_fs *fs, const char *path, unsigned parts,
		 struct lookout_ids *ids)
{
	const bool is_one = fs->version == CGROUP_V2;

	if (l->fd < 0 || !*path)
		return;
	if (parts & CGROUP_CPUS || (parts && is_one))
		add_one(l, fs->cpuset_fd, path, &ids->cpuset);
	if (parts & (CGROUP_WEIGHT | CGROUP_QUOTA) && !is_one)
		add_one(l, fs->cpu_fd, path, &ids->cpu);
}

void lookout_remove(struct lookout *l, struct lookout_ids *ids)
{
	if (l->fd >= 0 && ids->cpuset)
		(void)inotify_rm_watch(l->fd, ids->cpuset);
	if (l->fd >= 0 && ids->cpu)
		(void)inotify_rm_watch(l->fd, ids->cpu);
	*ids = (struct lookout_ids){ 0 };
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

void lookout_read(struct lookout *l, void (*on_write)(void *data, int id), void *data)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t n;

	while (l->fd >= 0 && (n = read(l->fd, buffer, sizeof(buffer))) > 0)
		tell(buffer, (size_t)n, on_write, data);
}
