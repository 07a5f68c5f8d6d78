#pragma once

/* CPU control files of cgroups, v2 and v1 alike, below a directory handle. Every write is read
 * back, because the kernel may keep something else. Only reads and writes: which CPUs a cgroup gets
 * is decided elsewhere. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

enum cgroup_version { CGROUP_V1 = 1, CGROUP_V2 = 2 };

/* The mounted hierarchies. On v2 both handles are the same tree. */
struct cgroup_fs {
	enum cgroup_version version;
	int cpu_fd;
	int cpuset_fd;
};

#define CGROUP_UNLIMITED (-1) /* no quota */
#define CGROUP_PERIOD_US 100000
#define CGROUP_QUOTA_MIN_US 1000

/* What a cgroup's control files say. */
struct cgroup_cpu {
	struct cpuset cpus;	 /* cpuset.cpus; empty on v2 means inherited */
	struct cpuset effective; /* what its tasks may use */
	uint64_t mems;		 /* cpuset.mems, NUMA nodes as a mask; 0 on v2 means inherited */
	uint64_t effective_mems;
	uint64_t weight;  /* v2 cpu.weight, or v1 cpu.shares */
	int64_t quota_us; /* CGROUP_UNLIMITED when there is none */
	uint64_t period_us;
};

/* Opens the hierarchies below `mount` ("/sys/fs/cgroup"): v2 when it has the cpu and cpuset
 * controllers, else v1. -ENODEV when neither does. */
int cgroup_open(struct cgroup_fs *fs, const char *mount, struct err *err);
void cgroup_done(struct cgroup_fs *fs);

/* "kubepods/pod1/cpu.max", a file of the cgroup `path`; "" is the top of the tree. */
int cgroup_file_path(const char *path, const char *file, char ret[static PATH_MAX],
		     struct err *err);

/* Makes a cgroup and its missing parents ("pinfold/pod/container"), usable at once: controllers
 * enabled on the way down (v2), empty cpusets filled from the parent (v1). */
int cgroup_make(const struct cgroup_fs *fs, const char *path, struct err *err);

/* Removes an empty cgroup; one that is not there is no error. */
int cgroup_remove(const struct cgroup_fs *fs, const char *path, struct err *err);
bool cgroup_exists(const struct cgroup_fs *fs, const char *path);

/* What to read; each part is one or two files. The other members are 0. */
enum {
	CGROUP_CPUS = 1,
	CGROUP_WEIGHT = 2,
	CGROUP_QUOTA = 4,
	CGROUP_MEMS = 8, /* few settings have it */
	CGROUP_ALL = CGROUP_CPUS | CGROUP_WEIGHT | CGROUP_QUOTA,
};

int cgroup_read(const struct cgroup_fs *fs, const char *path, unsigned parts,
		struct cgroup_cpu *ret, struct err *err);

/* Each fails when the kernel kept something else than was written. An empty set is refused: it
 * would mean "all of the parent's" on v2 and nothing at all on v1. */
int cgroup_set_cpus(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err);
/* The NUMA nodes of its memory, as a mask. On v2 pages on other nodes are migrated. */
int cgroup_set_mems(const struct cgroup_fs *fs, const char *path, uint64_t nodes, struct err *err);
int cgroup_set_shares(const struct cgroup_fs *fs, const char *path, uint64_t shares,
		      struct err *err);
/* The same with cpu.weight (v2) or cpu.shares (v1) itself: for pods, which kubelets weigh linearly.
 */
int cgroup_set_weight(const struct cgroup_fs *fs, const char *path, uint64_t weight,
		      struct err *err);
int cgroup_set_quota(const struct cgroup_fs *fs, const char *path, int64_t quota_us,
		     uint64_t period_us, struct err *err);

int cgroup_attach(const struct cgroup_fs *fs, const char *path, pid_t pid, struct err *err);

/* Processes of one cgroup, without those of its children. */
int cgroup_procs(const struct cgroup_fs *fs, const char *path, struct arena *a, pid_t **ret,
		 size_t *ret_n, struct err *err);

/* Names of the cgroups directly below, sorted. */
int cgroup_children(const struct cgroup_fs *fs, const char *path, struct arena *a, struct str **ret,
		    size_t *ret_n, struct err *err);

/* CPU shares (v1, Kubernetes, the annotations) to cpu.weight (v2), as runtimes convert today:
 * 1024 shares weigh 100. */
uint64_t cgroup_weight_from_shares(uint64_t shares);

/* The older, linear conversion, which kubelets still use for pods. */
uint64_t cgroup_weight_from_shares_linear(uint64_t shares);

/* The weight or shares that cgroup_read() reports for a container that was given `shares`. */
uint64_t cgroup_weight_expected(const struct cgroup_fs *fs, uint64_t shares);
