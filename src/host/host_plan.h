#pragma once

/* What the live configuration of a host is to be: which CPUs host services and interrupts get, and
 * what follows for a unit, an interrupt or a process. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct host_cpus {
	struct cpuset services;	    /* units of systemd and other processes of the host */
	struct cpuset housekeeping; /* interrupts and unbound work of the kernel */
};

/* What the pools are now. */
struct host_pools {
	const struct cpuset *management, *guaranteed, *online;
};

/* Services get the management pool, the kernel's work all CPUs outside of the guaranteed pool.
 * False when there is nothing to do: no management CPU is online. */
bool host_cpus_decide(const struct host_pools *pools, struct host_cpus *ret);

bool host_cpus_eq(const struct host_cpus *a, const struct host_cpus *b);

/* `original`, as far as it is allowed; all that is allowed when nothing of it is. So interrupts
 * keep their spread over the CPUs that remain. */
void host_mask_within(const struct cpuset *original, const struct cpuset *allowed,
		      struct cpuset *ret);

/* Whether a cgroup directly below the root is a unit of host processes: init.scope or a slice.
 * `has_pods`: it contains the kubelet's cgroup. Slices of virtual machines and containers have
 * their own CPUs. */
bool host_unit_is_service(struct str name, bool has_pods);

/* Whether a cgroup has pods: "kubepods", "kubepods.slice", "pods-kubepods.slice". */
bool host_cgroup_is_pods(struct str name);

/* Whether a process belongs to the host, by the text of /proc/PID/cgroup: not to a pod, a container
 * or a virtual machine. */
bool host_process_is_service(struct str cgroups);

/* What to do with the CPUs of an interrupt, or of a thread. */
struct host_mask {
	const struct cpuset *now;
	const struct cpuset *original; /* NULL: not recorded */
	const struct cpuset *allowed;
	bool is_changed; /* `allowed` differs from what was applied before */
};

/* True when *ret is to be written. A mask that another process changed stays as long as it is
 * within `allowed`; when `allowed` changes, masks are computed from the originals again. */
bool host_mask_decide(const struct host_mask *m, struct cpuset *ret);
