#include "enforce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/drift.h"
#include "cgroup/proc.h"

/* Our own lists always parse; one that does not is not set. */
static struct cgroup_want want_of(const struct cpu_settings *settings)
{
	struct cgroup_want want = { .shares = settings->shares,
				    .has_quota = settings->has_quota,
				    .quota_us = settings->quota_us,
				    .period_us = settings->period_us };

	(void)cpuset_parse(str_from(settings->cpus), &want.cpus, NULL);
	return want;
}

static int repair(const struct cgroup_fs *fs, const char *path, const struct cgroup_want *want,
		  unsigned drift, struct err *err)
{
	int r = 0;

	if (drift & DRIFT_CPUS)
		r = cgroup_set_cpus(fs, path, &want->cpus, err);
	if (r >= 0 && drift & DRIFT_WEIGHT)
		r = cgroup_set_weight(fs, path, drift_weight(fs->version, want), err);
	if (r >= 0 && drift & DRIFT_QUOTA)
		r = cgroup_set_quota(fs, path, want->quota_us, want->period_us, err);
	return r < 0 ? r : 0;
}

static int enforce(const struct cgroup_fs *fs, const char *path, const struct cgroup_want *want,
		   struct err *err)
{
	struct cgroup_want exact = *want;
	struct cgroup_cpu now;
	unsigned drift;
	int r;

	r = *path ? cgroup_read(fs, path, drift_parts(want), &now, err) : -ENOENT;
	if (r < 0 && !cgroup_exists(fs, path))
		return err_set(err, ENOENT, "cgroup %s is not there", path);
	if (r < 0)
		return r;
	drift = drift_of(fs->version, &now, want) & ~(unsigned)DRIFT_FEWER;
	if (!exact.period_us) /* who lifts a quota leaves the period alone */
		exact.period_us = want->quota_us < 0 ? now.period_us : CGROUP_PERIOD_US;
	r = repair(fs, path, &exact, drift, err);
	return r < 0 ? r : (int)drift;
}

int enforce_container(const struct cgroup_fs *fs, const char *path,
		      const struct cpu_settings *settings, struct err *err)
{
	const struct cgroup_want want = want_of(settings);

	return enforce(fs, path, &want, err);
}

int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err)
{
	const struct cgroup_want want = { .shares = pod->shares,
					  .is_pod = true,
					  .has_quota = pod->lift_quota,
					  .quota_us = CGROUP_UNLIMITED };

	return pod->shares || pod->lift_quota ? enforce(fs, pod->cgroup, &want, err) : 0;
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
	const struct cpu_settings settings = { .cpus = (char *)cpus };
	const int r = enforce_container(fs, pod->pause_cgroup, &settings, err);

	if (r != -ENOENT)
		return r;
	return pod->pause_pid ? set_affinity((pid_t)pod->pause_pid, cpus, err) : 0;
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
