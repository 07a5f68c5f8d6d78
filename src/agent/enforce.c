#include "enforce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/proc.h"

static bool weight_fits(enum cgroup_version version, uint64_t now, uint64_t shares)
{
	if (version == CGROUP_V1)
		return now == shares;
	return now == cgroup_weight_from_shares(shares) ||
	       now == cgroup_weight_from_shares_linear(shares);
}

/* systemd keeps a quota per second in steps of 10 ms, rounded up. */
static int64_t systemd_quota(int64_t quota_us, uint64_t period_us)
{
	const __int128 per_s = (__int128)quota_us * 1000000 / (int64_t)period_us;
	const __int128 rounded = (per_s + 9999) / 10000 * 10000;

	return (int64_t)(rounded * (int64_t)period_us / 1000000);
}

static bool quota_fits(const struct cgroup_cpu *now, const struct intent *intent)
{
	if (intent->quota_us < 0)
		return now->quota_us < 0;
	if (intent->period_us && now->period_us != intent->period_us)
		return false;
	return now->quota_us == intent->quota_us ||
	       (now->period_us && now->quota_us == systemd_quota(intent->quota_us, now->period_us));
}

unsigned enforce_compare(enum cgroup_version version, const struct cgroup_cpu *now,
			 const struct intent *intent)
{
	struct cpuset want;
	unsigned drift = 0;

	if (*intent->cpus && cpuset_parse(str_from(intent->cpus), &want, NULL) == 0 &&
	    (!cpuset_eq(&now->cpus, &want) || !cpuset_is_subset(&now->effective, &want)))
		drift |= DRIFT_CPUS;
	if (intent->shares && !weight_fits(version, now->weight, intent->shares))
		drift |= DRIFT_WEIGHT;
	if (intent->has_quota && !quota_fits(now, intent))
		drift |= DRIFT_QUOTA;
	return drift;
}

static int repair(const struct cgroup_fs *fs, const char *path, const struct intent *intent,
		  unsigned drift, struct err *err)
{
	struct cpuset cpus;
	int r = 0;

	if (drift & DRIFT_CPUS) {
		r = cpuset_parse(str_from(intent->cpus), &cpus, err);
		if (r == 0)
			r = cgroup_set_cpus(fs, path, &cpus, err);
	}
	if (r >= 0 && drift & DRIFT_WEIGHT)
		r = cgroup_set_shares(fs, path, intent->shares, err);
	if (r >= 0 && drift & DRIFT_QUOTA)
		r = cgroup_set_quota(fs, path, intent->quota_us,
				     intent->period_us ? intent->period_us : CGROUP_PERIOD_US, err);
	return r < 0 ? r : 0;
}

int enforce_container(const struct cgroup_fs *fs, const char *path, const struct intent *intent,
		      struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cgroup_cpu now;
	unsigned drift;
	int r;

	arena_init(&a, 0);
	if (!*path || !cgroup_exists(fs, path))
		return err_set(err, ENOENT, "cgroup %s is not there", path);
	r = cgroup_read(fs, path, &a, &now, err);
	if (r < 0)
		return r;
	drift = enforce_compare(fs->version, &now, intent);
	r = repair(fs, path, intent, drift, err);
	return r < 0 ? r : (int)drift;
}

uint64_t enforce_pod_weight(const struct cgroup_fs *fs, uint64_t shares)
{
	return fs->version == CGROUP_V2 ? cgroup_weight_from_shares_linear(shares) : shares;
}

int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	const uint64_t weight = enforce_pod_weight(fs, pod->shares);
	struct cgroup_cpu now;
	int drift = 0, r;

	arena_init(&a, 0);
	if (!pod->shares && !pod->lift_quota)
		return 0;
	if (!*pod->cgroup || !cgroup_exists(fs, pod->cgroup))
		return err_set(err, ENOENT, "cgroup %s is not there", pod->cgroup);
	r = cgroup_read(fs, pod->cgroup, &a, &now, err);
	if (r >= 0 && pod->shares && now.weight != weight) {
		drift |= DRIFT_WEIGHT;
		r = cgroup_set_weight(fs, pod->cgroup, weight, err);
	}
	if (r >= 0 && pod->lift_quota && now.quota_us >= 0) {
		drift |= DRIFT_QUOTA;
		r = cgroup_set_quota(fs, pod->cgroup, CGROUP_UNLIMITED, now.period_us, err);
	}
	return r < 0 ? r : drift;
}

static int set_affinity(pid_t pid, const char *list, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset cpus;
	size_t size;
	int r;

	arena_init(&a, 0);
	r = cpuset_parse(str_from(list), &cpus, err);
	if (r < 0)
		return r;
	size = CPU_ALLOC_SIZE(CPUSET_MAX);
	cpu_set_t *mask = arena_zalloc(&a, size, 16);
	CPUSET_FOREACH (cpu, &cpus)
		CPU_SET_S(cpu, size, mask);
	if (sched_setaffinity(pid, size, mask) < 0)
		return err_set(err, errno, "affinity of process %d: %s", (int)pid, strerror(errno));
	return 0;
}

int enforce_pause(const struct cgroup_fs *fs, const struct pod_entry *pod, const char *cpus,
		  struct err *err)
{
	const struct intent intent = { .cpus = (char *)cpus };

	if (*pod->pause_cgroup && cgroup_exists(fs, pod->pause_cgroup))
		return enforce_container(fs, pod->pause_cgroup, &intent, err);
	if (pod->pause_pid)
		return set_affinity((pid_t)pod->pause_pid, cpus, err);
	return 0;
}

int enforce_monitor(uint32_t pid, const char *cpus, struct err *err)
{
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	struct proc_stat first, monitor;
	int r;

	arena_init(&a, 0);
	if (!pid || proc < 0 || !proc_stat(proc, (pid_t)pid, &a, &first) ||
	    !proc_stat(proc, first.parent, &a, &monitor) || !str_eq(monitor.name, STR("conmon")))
		return 0;
	r = set_affinity(first.parent, cpus, err);
	return r < 0 ? r : 1;
}
