#pragma once

/* A PerformanceProfile (performance.openshift.io/v2) as a struct: the CPU sets with the text they
 * were written as, and every other field that has an effect on a file. Reading checks types and
 * values of single fields; check.h compares the sets with each other and with the hardware. Fields
 * without effect stay in the object and are reported in a note. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "change_settings.h"
#include "cpu/cpuset.h"
#include "cpu/hints.h"
#include "cpu/pick_options.h"
#include "manifests.h"

struct arena;
struct pool_type;
struct problem_at;
struct problem_list;

/* In the order in which overlaps are reported (docs/reference/openshift-render.md#overlap-order).
 */
enum profile_set_id {
	PROFILE_RESERVED,
	PROFILE_ISOLATED,
	PROFILE_OFFLINED,
	PROFILE_SHARED,
	PROFILE_OVS_DPDK,
	PROFILE_SET__COUNT
};

const char *profile_set_name(enum profile_set_id id); /* "reserved" */
/* The pool that a set becomes on a node: "management"; for sets that become none, the set. */
const char *profile_set_pool(enum profile_set_id id);

struct profile_set {
	yyjson_val *value; /* NULL when the field is absent */
	struct str text;   /* as written */
	bool is_list;	   /* false: a topology expression, to be resolved against a machine */
	struct cpuset cpus;
};

struct hugepages {
	struct str size; /* "1G" */
	int64_t count;
	int64_t node; /* NUMA node, -1: spread by the kernel */
};

struct profile {
	struct manifest at;
	struct str name, uid;
	struct profile_set sets[PROFILE_SET__COUNT];
	bool has_sound_sets;	    /* the required ones are there, and all are valid */
	bool balance_isolated;	    /* false: isolcpus=domain, too */
	bool pins_infrastructure;   /* workloads: [Infrastructure], the 2022 design */
	yyjson_val *workloads;	    /* NULL when the field is absent */
	yyjson_val *node_selector;  /* the three are objects of labels, or NULL */
	yyjson_val *machine_label;  /* machineConfigLabel */
	yyjson_val *pool_selector;  /* machineConfigPoolSelector */
	struct str topology_policy; /* "" when absent */
	bool realtime_kernel, large_kernel_pages;
	bool hint_realtime, hint_high_power, hint_per_pod_power, hint_mixed_cpus;
	struct str default_hugepages;
	struct hugepages *hugepages;
	size_t n_hugepages;
	struct str *kernel_args;
	size_t n_kernel_args;
	int64_t isolated_khz, reserved_khz; /* 0: not limited */
	bool irq_balancing_off;
	bool keeps_interrupts; /* irq_balancing_off is false, and not only by default */
	bool user_networking;
	yyjson_val *net_devices;
	bool rps, rps_on_physical;
	bool ovs_isolated;	  /* the CPUs of OVS are an isolated partition */
	bool exec_affinity;	  /* CRI-O's exec_cpu_affinity = "first" */
	yyjson_val *kubelet_base; /* of the annotation kubeletconfig.experimental; NULL: none */
	struct change_settings changes;
	/* The annotation NAME_TYPES: workload types with reserved CPUs of their own, sorted by
	 * name.
	 */
	const struct pool_type *types;
	size_t n_types;
};

/* Faults are added to `p`. Returns false when there was one. */
bool profile_read(struct manifest m, struct arena *a, struct profile *ret, struct problem_list *p);

/* How exclusive CPUs are aligned: spec.numa.topologyPolicy, and topologyManagerScope and
 * cpuManagerPolicyOptions of the annotation kubeletconfig.experimental, as in OpenShift. There
 * single-numa-node implies full-pcpus-only. What the profile does not say stays as it is. */
void profile_alignment(const struct profile *profile, struct hint_config *topology,
		       struct pick_options *options);

/* A name as Kubernetes allows it: it ends up in file and object names, so it is never a path. */
bool profile_is_name(struct str s);

/* "worker-cnf" of the node selector "node-role.kubernetes.io/worker-cnf"; "" when it has no role.
 */
struct str profile_role(const struct profile *profile);

/* Where the set is written, for a problem. */
struct problem_at profile_set_at(const struct profile *profile, enum profile_set_id id);

static inline bool profile_has(const struct profile *profile, enum profile_set_id id)
{
	return profile->sets[id].value != NULL;
}

/* `workloads: []`: the profile tunes the machine and pins no management pods. Without the field the
 * cluster flag alone decides. */
static inline bool profile_pins_nothing(const struct profile *profile)
{
	return profile->workloads && !profile->pins_infrastructure;
}

/* Pools mode: a shared set, unless workloadHints.mixedCpus gives it OpenShift's meaning: CPUs that
 * containers with exclusive CPUs may use in addition. */
static inline bool profile_has_pools(const struct profile *profile)
{
	return profile->sets[PROFILE_SHARED].text.n && !profile->hint_mixed_cpus;
}

static inline bool profile_has_mixed_cpus(const struct profile *profile)
{
	return profile->sets[PROFILE_SHARED].text.n && profile->hint_mixed_cpus;
}
