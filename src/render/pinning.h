#pragma once

/* The small files that pin: the kubelet's marker, CRI-O's workload and runtime drop-ins, the pools
 * file, the mixed-CPUs file. Byte for byte what OpenShift writes where it writes one, the leading
 * newline included (docs/reference/openshift-render.md#pinning-files). */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena;
struct partition;

/* A workload type and its CPUs; empty CPUs mean all of them. The texts hold no special character.
 */
struct workload_cpus {
	struct str type;
	struct str cpus;
};

/* {"management":{"cpuset":"0-1"}}, indented. */
struct str pinning_marker(const struct workload_cpus *workloads, size_t n, struct arena *a);

/* One [crio.runtime.workloads.<type>] each. `quota_keys` adds cpuquota and cpuperiod at 0:
 * CRI-O then takes the quota from the pod's cpulimit annotation
 * (docs/reference/crio-workloads.md#quota-keys). */
struct str pinning_crio(const struct workload_cpus *workloads, size_t n, bool quota_keys,
			struct arena *a);

/* infra_ctr_cpuset and the high-performance runtime handler. */
struct str pinning_runtimes(const struct partition *part, struct arena *a);

/* The workloads of a profile: management with the reserved CPUs, or its part of them, and the types
 * that the profile's annotation gives CPUs of their own. Returns how many. */
size_t pinning_workloads(const struct partition *part, struct arena *a, struct workload_cpus **ret);

/* {"reserved":"0-1","shared":"2-5","guaranteed":"6-15"} (docs/reference/pools.md#pools-file). */
struct str pinning_pools(const struct partition *part, struct arena *a);

struct str pinning_mixed_cpus(void);
