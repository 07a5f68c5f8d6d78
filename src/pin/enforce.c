/* The processes of a pod outside its containers, and its own cgroup. */

#include "enforce.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cpu_settings.h"
#include "cgroup/proc.h"

int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err)
{
	const struct cpu_settings settings = { .shares = pod->shares,
					       .has_linear_weight = true,
					       .has_quota = pod->lift_quota,
					       .quota_us = CGROUP_UNLIMITED };

	if (!pod->shares && !pod->lift_quota)
		return 0;
	return cpu_settings_enforce(&settings, fs, pod->cgroup, err);
}

/* Both masks are arrays of 64-bit words with CPU 0 in the lowest bit. The kernel ignores bits
 * beyond its own number of CPUs. */
static int set_affinity(pid_t pid, const struct cpuset *cpus, struct err *err)
{
	const void *mask = cpus->w;

	if (sched_setaffinity(pid, sizeof(cpus->w), mask) < 0)
		return err_set(err, errno, "affinity of process %d: %s", (int)pid, strerror(errno));
	return 0;
}

int enforce_pause(const struct cgroup_fs *fs, const struct pod_entry *pod,
		  const struct cpuset *cpus, struct err *err)
{
	const struct cpu_settings settings = { .cpus = *cpus };
	int r = -ENOENT;

	if (*pod->pause_cgroup)
		r = cpu_settings_enforce(&settings, fs, pod->pause_cgroup, err);
	if (r != -ENOENT)
		return r;
	/* CRI-O drops the pause process where it can; the pid is 0 then. */
	return pod->pause_pid ? set_affinity((pid_t)pod->pause_pid, cpus, err) : 0;
}

int enforce_own_threads(const struct cpuset *cpus, struct err *err)
{
	AUTO_CLOSE int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	pid_t *threads = NULL;
	size_t n = 0;
	int r;

	arena_init(&a, 0);
	if (tasks < 0)
		return err_set(err, errno, "/proc/self/task: %s", strerror(errno));
	r = proc_list(tasks, &a, &threads, &n, err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = set_affinity(threads[i], cpus, err);
		if (r == -ESRCH)
			r = 0; /* it ended meanwhile */
	}
	return r;
}

int enforce_monitor(uint32_t pid, const struct cpuset *cpus, struct err *err)
{
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	struct proc_stat first, monitor;
	int r;

	arena_init(&a, 0);
	/* By name: without a monitor the parent is another process, such as the runtime's shim. */
	if (!pid || proc < 0 || !proc_stat(proc, (pid_t)pid, &a, &first) ||
	    !proc_stat(proc, first.parent, &a, &monitor) || !str_eq(monitor.name, STR("conmon")))
		return 0;
	r = set_affinity(first.parent, cpus, err);
	return r < 0 ? r : 1;
}
