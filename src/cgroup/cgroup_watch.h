#pragma once

/* Tells that somebody has written to a CPU control file of a cgroup, by inotify on its directory.
 * The kernel's own changes (a CPU that goes offline) make no such noise, and watches may run out:
 * whoever uses this also looks by himself now and then. Our own writes are told, too. */

#include <stdbool.h>
#include <stddef.h>

struct cgroup_fs;

struct cgroup_watch {
	int fd;		     /* -1: none, nothing is told */
	int unwatched_errno; /* errno, when some cgroup could not be watched */
	int round_errno;     /* the same of the round that goes on; cgroup_watch_end_round() */
};

/* The watches of one cgroup; zero: none. On v1 it has two directories. */
struct cgroup_watch_ids {
	int cpuset, cpu;
};

/* Without inotify it is short from the start. */
void cgroup_watch_init(struct cgroup_watch *l);
void cgroup_watch_done(struct cgroup_watch *l);

/* Watches the files of these parts (CGROUP_CPUS, ...), unless it does already. A cgroup that is not
 * there yet is not watched, and that is no failure. */
void cgroup_watch_add(struct cgroup_watch *l, const struct cgroup_fs *fs, const char *path,
		      unsigned parts, struct cgroup_watch_ids *ids);

/* Every cgroup has been added again: it is short no longer if all of them could be watched this
 * time. Tries to get an inotify if there was none. */
void cgroup_watch_end_round(struct cgroup_watch *l);

/* The kernel keeps the watch of a cgroup that is gone: they are to be removed. */
void cgroup_watch_remove(struct cgroup_watch *l, struct cgroup_watch_ids *ids);

/* Calls `on_write` for every watch that has heard something since the last time. `id` is -1 when it
 * was too much to remember: it may be any. Does not wait. */
void cgroup_watch_read(struct cgroup_watch *l, void (*on_write)(void *data, int id), void *data);

static inline bool cgroup_watch_is(const struct cgroup_watch_ids *ids, int id)
{
	return id > 0 && (ids->cpuset == id || ids->cpu == id);
}
