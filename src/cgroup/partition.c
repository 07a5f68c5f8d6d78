/* The kernel accepts an isolated partition only when each ancestor lists its CPUs as exclusive, and
 * the cgroups of the kubelet and of the runtime are no partitions. So the CPUs are listed from the
 * top of the tree down to the container, then the container's cgroup becomes a partition; they
 * are removed in the reverse order. The lists of the ancestors outlive the container's cgroup,
 * which the runtime removes without knowing about them. */

#include "partition.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup.h"

#define EXCLUSIVE "cpuset.cpus.exclusive"
#define PARTITION "cpuset.cpus.partition"
#define VALUE_MAX 65536

void partition_parse(struct str text, struct partition_status *ret)
{
	const struct str invalid = STR("isolated invalid");
	struct partition_status s = { .state = PARTITION_OTHER };

	text = str_trim(text);
	if (str_eq(text, STR("member"))) {
		s.state = PARTITION_MEMBER;
	} else if (str_eq(text, STR("isolated"))) {
		s.state = PARTITION_ISOLATED;
	} else if (str_starts(text, invalid)) {
		struct str why = str_trim(str_skip(text, invalid.n));

		if (str_starts(why, STR("(")) && str_ends(why, STR(")")))
			why = (struct str){ why.p + 1, why.n - 2 };
		s.state = PARTITION_INVALID;
		(void)snprintf(s.reason, sizeof(s.reason), PRI_STR, FMT_STR(why));
	}
	*ret = s;
}

static int read_text(const struct cgroup_fs *fs, const char *path, const char *file,
		     struct arena *a, struct str *ret, struct err *err)
{
	char full[PATH_MAX];
	int r = cgroup_file_path(path, file, full, err);

	return r < 0 ? r : file_read_value_at(fs->cpuset_fd, full, VALUE_MAX, a, ret, err);
}

static int write_text(const struct cgroup_fs *fs, const char *path, const char *file,
		      struct str text, struct err *err)
{
	char full[PATH_MAX];
	int r = cgroup_file_path(path, file, full, err);

	return r < 0 ? r : file_write_value_at(fs->cpuset_fd, full, text, err);
}

int partition_read(const struct cgroup_fs *fs, const char *path, struct partition_status *ret,
		   struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	if (fs->version != CGROUP_V2)
		return err_set(err, ENOTSUP, "cgroup v1 has no isolated partitions");
	r = read_text(fs, path, PARTITION, &a, &text, err);
	if (r == 0)
		partition_parse(text, ret);
	return r;
}

static int read_exclusive(const struct cgroup_fs *fs, const char *path, struct cpuset *ret,
			  struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	r = read_text(fs, path, EXCLUSIVE, &a, &text, err);
	return r < 0 ? r : cpuset_parse_kernel(text, ret, err);
}

static int set_exclusive(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
			 struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset kept;
	struct str text;
	int r;

	arena_init(&a, 0);
	/* A write of 0 bytes does not reach the kernel. */
	text = cpuset_is_empty(cpus) ? STR("\n") : cpuset_format(cpus, &a);
	r = write_text(fs, path, EXCLUSIVE, text, err);
	if (r == 0)
		r = read_exclusive(fs, path, &kept, err);
	if (r == 0 && !cpuset_eq(&kept, cpus))
		r = err_set(err, EIO, "%s: wrote exclusive CPUs " PRI_STR ", kernel kept " PRI_STR,
			    path, FMT_STR(str_trim(text)), FMT_STR(cpuset_format(&kept, &a)));
	return r;
}

/* Iterates over the ancestors of a cgroup, from the top (`down`) or towards it. */
struct ancestors {
	char path[PATH_MAX];
	const char *leaf;
	bool down;
	size_t n; /* bytes of the last one */
};

static void ancestors_init(struct ancestors *it, const char *leaf, bool down)
{
	while (*leaf == '/')
		leaf++;
	it->leaf = leaf;
	it->down = down;
	it->n = down ? 0 : strlen(leaf);
}

static bool ancestors_next(struct ancestors *it)
{
	const char *slash = NULL;

	if (it->down) {
		slash = strchr(it->leaf + (it->n ? it->n + 1 : 0), '/');
	} else {
		for (size_t i = it->n; i > 0 && !slash; i--)
			if (it->leaf[i - 1] == '/')
				slash = it->leaf + i - 1;
	}
	if (!slash || (size_t)(slash - it->leaf) >= sizeof(it->path))
		return false;
	it->n = (size_t)(slash - it->leaf);
	memcpy(it->path, it->leaf, it->n);
	it->path[it->n] = 0;
	return true;
}

/* From the top: a cgroup can pass on only CPUs that its parent lists. */
static int add_exclusive(const struct cgroup_fs *fs, const char *leaf, const struct cpuset *cpus,
			 struct err *err)
{
	struct ancestors it;

	ancestors_init(&it, leaf, true);
	while (ancestors_next(&it)) {
		struct cpuset now;
		int r = read_exclusive(fs, it.path, &now, err);

		if (r == 0 && !cpuset_is_subset(cpus, &now)) {
			cpuset_union(&now, cpus);
			r = set_exclusive(fs, it.path, &now, err);
		}
		if (r < 0)
			return r;
	}
	return set_exclusive(fs, leaf, cpus, err);
}

/* From below, so that no parent loses a CPU that a child still lists. Goes on after a failure: a
 * CPU that stays listed below one pod cannot be listed below another one. */
static int remove_exclusive(const struct cgroup_fs *fs, const char *leaf, const struct cpuset *cpus,
			    struct err *err)
{
	const struct cpuset none = { 0 };
	struct ancestors it;
	struct cpuset now;
	int worst = 0;

	if (read_exclusive(fs, leaf, &now, NULL) == 0 && !cpuset_is_empty(&now))
		worst = set_exclusive(fs, leaf, &none, err);
	ancestors_init(&it, leaf, false);
	while (ancestors_next(&it)) {
		int r;

		if (read_exclusive(fs, it.path, &now, NULL) < 0 || !cpuset_intersects(&now, cpus))
			continue; /* the cgroup is gone, or the kernel has no such file */
		cpuset_minus(&now, cpus);
		r = set_exclusive(fs, it.path, &now, err);
		if (r < 0)
			worst = r;
	}
	return worst;
}

/* Those of `cpus` that the parent does not list yet: only these are removed after a failure. */
static void cpus_not_listed(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
			    struct cpuset *ret)
{
	struct ancestors it;
	struct cpuset known;

	*ret = *cpus;
	ancestors_init(&it, path, false);
	if (ancestors_next(&it) && read_exclusive(fs, it.path, &known, NULL) == 0)
		cpuset_minus(ret, &known);
}

/* The write succeeds even when the kernel refuses; only the value read back has the result. */
static int request_isolated(const struct cgroup_fs *fs, const char *path, struct err *err)
{
	struct partition_status s = { 0 };
	int r;

	r = write_text(fs, path, PARTITION, STR("isolated"), err);
	if (r == 0)
		r = partition_read(fs, path, &s, err);
	if (r < 0 || s.state == PARTITION_ISOLATED)
		return r;
	return err_set(err, EPERM, "the kernel refuses an isolated partition: %s",
		       *s.reason ? s.reason : "no reason given");
}

int partition_enter(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err)
{
	struct partition_status before = { 0 };
	struct cpuset exclusive, fresh;
	struct err why = { 0 };
	int r;

	r = partition_read(fs, path, &before, err);
	if (r < 0)
		return r;
	if (before.state == PARTITION_OTHER) /* another manager's: do not destroy it */
		return err_set(err, EPERM, "it is a partition of another kind");
	if (before.state == PARTITION_ISOLATED && read_exclusive(fs, path, &exclusive, NULL) == 0 &&
	    cpuset_eq(&exclusive, cpus))
		return 0;
	if (before.state != PARTITION_MEMBER) { /* invalid, or of other CPUs: start anew */
		r = partition_leave(fs, path, cpus, err);
		if (r < 0)
			return r;
	}
	cpus_not_listed(fs, path, cpus, &fresh);
	r = add_exclusive(fs, path, cpus, &why);
	/* The file is missing before Linux 6.7: the request then fails with the kernel's reason. */
	if (r == 0 || r == -ENOENT)
		r = request_isolated(fs, path, &why);
	if (r == 0)
		return 1;
	/* Not `cpus`: some may have been listed for another container of the pod. */
	(void)partition_leave(fs, path, &fresh, NULL);
	if (err)
		*err = why;
	return r;
}

int partition_leave(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err)
{
	struct partition_status s = { 0 };
	int r = 0;

	if (fs->version != CGROUP_V2)
		return 0;
	if (partition_read(fs, path, &s, NULL) == 0 &&
	    (s.state == PARTITION_ISOLATED || s.state == PARTITION_INVALID))
		r = write_text(fs, path, PARTITION, STR("member"), err);
	return r < 0 ? r : remove_exclusive(fs, path, cpus, err);
}
