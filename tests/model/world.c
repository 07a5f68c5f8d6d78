/* The replaced functions. Names of the form __wrap_x are the linker's: it calls them instead of x
 * (--wrap=x). */

#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_watch.h"
#include "seeded.h"
#include "wrap.h"

struct world_run world_run;

void world_begin(enum fault fault, unsigned fault_at)
{
	world_run.fault = fault;
	world_run.fault_at = fault_at;
	world_run.n_writes = 0;
	world_run.is_dead = false;
}

int world_index(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (name[0] != 'c' || name[1] < '0' || name[1] >= '0' + WORLD_CONTAINERS || name[2])
		return -1;
	return name[1] - '0';
}

static struct world_container *container_at(const char *path)
{
	const int i = world_index(path);
	struct world_container *c = i >= 0 ? &world_run.world.containers[i] : NULL;

	return c && world_has_cgroup(c) ? c : NULL;
}

/* False when the write does not happen; *ret is what the caller returns then. */
static bool begin_write(int *ret, struct err *err)
{
	const unsigned n = world_run.n_writes++;

	*ret = 0;
	if (world_run.fault == FAULT_CRASH && n == world_run.fault_at)
		world_run.is_dead = true;
	if (world_run.fault == FAULT_FAIL && n == world_run.fault_at)
		*ret = err_set(err, EIO, "write failed");
	return !world_run.is_dead && *ret == 0;
}

/* --- cgroup/cgroup.h --- */

WRAP(cgroup_exists);
WRAP(cgroup_read);
WRAP(cgroup_set_cpus);
WRAP(cgroup_set_weight);
WRAP(cgroup_set_quota);

/* A pod's cgroup exists as long as its pod. Its values are not modelled. */
static const struct world_container *pod_at(const char *path)
{
	const char *pod = strstr(path, "pod-c");
	const int i = pod ? world_index(pod + strlen("pod-")) : -1;

	return i >= 0 && world_run.world.containers[i].life != LIFE_ABSENT ?
		       &world_run.world.containers[i] :
		       NULL;
}

bool __wrap_cgroup_exists(const struct cgroup_fs *fs, const char *path)
{
	(void)fs;
	return container_at(path) || pod_at(path);
}

int __wrap_cgroup_read(const struct cgroup_fs *fs, const char *path, unsigned parts,
		       struct cgroup_cpu *ret, struct err *err)
{
	const struct world_container *c = container_at(path);

	(void)fs;
	(void)parts;
	*ret = (struct cgroup_cpu){ .period_us = CGROUP_PERIOD_US, .quota_us = CGROUP_UNLIMITED };
	if (!c && !pod_at(path))
		return err_set(err, ENOENT, "no such cgroup");
	ret->effective.w[0] = c ? world_cpus(c) : WORLD_ALL;
	if (!c)
		return 0;
	ret->cpus.w[0] = c->cpus;
	ret->weight = c->weight;
	ret->quota_us = c->quota_us;
	return 0;
}

int __wrap_cgroup_set_cpus(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
			   struct err *err)
{
	struct world_container *c = container_at(path);
	int r;

	(void)fs;
	world_require(!cpuset_is_empty(cpus));
	if (!c)
		return err_set(err, ENOENT, "no such cgroup");
	if (!begin_write(&r, err))
		return r;
	c->cpus = (uint8_t)cpus->w[0];
	world_run.on_write(&world_run);
	return 0;
}

int __wrap_cgroup_set_weight(const struct cgroup_fs *fs, const char *path, uint64_t weight,
			     struct err *err)
{
	struct world_container *c = container_at(path);
	int r;

	(void)fs;
	if (!begin_write(&r, err))
		return r;
	if (c)
		c->weight = weight;
	return 0;
}

int __wrap_cgroup_set_quota(const struct cgroup_fs *fs, const char *path, int64_t quota_us,
			    uint64_t period_us, struct err *err)
{
	struct world_container *c = container_at(path);
	int r;

	(void)fs;
	(void)period_us;
	if (!begin_write(&r, err))
		return r;
	if (c)
		c->quota_us = quota_us;
	return 0;
}

/* --- cgroup/cgroup_watch.h --- */

WRAP(cgroup_watch_init);
WRAP(cgroup_watch_done);
WRAP(cgroup_watch_add);
WRAP(cgroup_watch_end_round);
WRAP(cgroup_watch_remove);
WRAP(cgroup_watch_read);

void __wrap_cgroup_watch_init(struct cgroup_watch *w)
{
	*w = (struct cgroup_watch){ .fd = -1 };
}

void __wrap_cgroup_watch_done(struct cgroup_watch *w)
{
	(void)w;
}

void __wrap_cgroup_watch_add(struct cgroup_watch *w, const struct cgroup_fs *fs, const char *path,
			     unsigned parts, struct cgroup_watch_ids *ids)
{
	(void)w;
	(void)fs;
	(void)parts;
	if (container_at(path))
		ids->cpuset = world_index(path) + 1;
}

void __wrap_cgroup_watch_end_round(struct cgroup_watch *w)
{
	(void)w;
}

void __wrap_cgroup_watch_remove(struct cgroup_watch *w, struct cgroup_watch_ids *ids)
{
	(void)w;
	ids->cpuset = 0;
}

void __wrap_cgroup_watch_read(struct cgroup_watch *w, void (*on_write)(void *data, int id),
			      void *data)
{
	/* Events of the agent's own writes are left out: they have no effect. */
	(void)w;
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_run.world.containers[i].was_written) {
			world_run.world.containers[i].was_written = false;
			on_write(data, i + 1);
		}
}

/* --- base/file.h, as the store calls it --- */

WRAP(file_read_at);
WRAP(file_replace_at);

int __wrap_file_read_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
			struct err *err)
{
	(void)dirfd;
	(void)max;
	if (!world_run.world.n_state)
		return err_set(err, ENOENT, "%s: no such file", path);
	*ret = str_dup(a, (struct str){ world_run.world.state, world_run.world.n_state });
	return 0;
}

int __wrap_file_replace_at(int dirfd, const char *path, struct str text, mode_t mode,
			   struct err *err)
{
	int r;

	(void)dirfd;
	(void)path;
	(void)mode;
	world_require(text.n <= WORLD_STATE_MAX);
	if (!begin_write(&r, err) || seeded_bug == BUG_STATE_NOT_WRITTEN)
		return r;
	memset(world_run.world.state, 0, sizeof(world_run.world.state)); /* it is hashed whole */
	memcpy(world_run.world.state, text.p, text.n);
	world_run.world.n_state = text.n;
	return 0;
}

/* The store's lock. Nothing else is opened. */
WRAP(openat64);
WRAP(flock);
WRAP(malloc_trim);

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	(void)dirfd;
	(void)path;
	(void)flags;
	return INT_MAX; /* close() of it fails, and is ignored */
}

int __wrap_flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	return 0;
}

int __wrap_malloc_trim(size_t pad)
{
	(void)pad;
	return 0;
}

/* --- base/log.h: millions of operations, many of them with a fault --- */

WRAP(log_write);

void __wrap_log_write(enum log_level level, const char *msg, const struct log_field *fields,
		      size_t n)
{
	(void)level;
	(void)msg;
	(void)fields;
	(void)n;
}
