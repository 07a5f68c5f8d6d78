#pragma once

/* Reports writes to the CPU control files of cgroups, by inotify on their directories. Changes by
 * the kernel itself (a CPU that goes offline) raise no inotify event, and the number of watches is
 * limited, so callers must also poll. Writes by the caller are reported, too. */

#include <stdbool.h>
#include <stddef.h>

struct cgroup_fs;

struct cgroup_watch {
	int fd;		     /* -1: no inotify instance, nothing is reported */
	int unwatched_errno; /* why some cgroup could not be watched in the last round; 0: all are
			      */
	int round_errno;     /* the same of the present round; see cgroup_watch_end_round() */
};

/* The watches of one cgroup; 0: none. On v1 it has two directories. */
struct cgroup_watch_ids {
	int cpuset, cpu;
};

/* Never fails: without inotify `unwatched_errno` is set. */
void cgroup_watch_init(struct cgroup_watch *w);
void cgroup_watch_done(struct cgroup_watch *w);

/* Watches the files of these parts (CGROUP_CPUS, ...), unless they are watched already. A cgroup
 * that does not exist yet is not watched, which is no failure. */
void cgroup_watch_add(struct cgroup_watch *w, const struct cgroup_fs *fs, const char *path,
		      unsigned parts, struct cgroup_watch_ids *ids);

/* Ends a round in which every cgroup was added again: `unwatched_errno` becomes that of the round.
 * Retries to get an inotify instance if there is none. */
void cgroup_watch_end_round(struct cgroup_watch *w);

/* The kernel does not remove the watch of a cgroup that is gone. */
void cgroup_watch_remove(struct cgroup_watch *w, struct cgroup_watch_ids *ids);

/* Calls `on_write` for every write since the last call. `id` is -1 when the kernel's queue has
 * overflowed: any cgroup may have been written. Does not block. */
void cgroup_watch_read(struct cgroup_watch *w, void (*on_write)(void *data, int id), void *data);

static inline bool cgroup_watch_is(const struct cgroup_watch_ids *ids, int id)
{
	return id > 0 && (ids->cpuset == id || ids->cpu == id);
}
