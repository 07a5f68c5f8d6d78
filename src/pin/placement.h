#pragma once

/* A container's pool and CPU settings: made from its class and the ledger's grant, and compared
 * with what a runtime has or requests. Pure. Which container gets what is decided by the caller. */

#include "cgroup/cpu_settings.h"
#include "classify.h"
#include "pool/ledger.h"

struct nri_cpu;

struct placement {
	enum pool pool;
	bool is_exclusive;
	bool names_cpus; /* a management container whose annotation names its CPUs */
	struct cpu_settings settings;
};

/* A management container: on the CPUs of its workload type, or on those of them that its annotation
 * names. -EPERM when it names others. */
int placement_of_management(const struct cpu_settings *requested, struct str type,
			    const struct cpuset *type_cpus, struct placement *ret, struct err *err);

/* Any other container: its CPUs, and no quota when they are exclusive. -ENOSPC without any CPU. */
int placement_of_grant(const struct ledger_grant *grant, struct placement *ret, struct err *err);

/* Kubelet mode: a container on `cpus` keeps them, except for management CPUs. In pools mode one
 * that has CPUs of the shared pool keeps only these: the kubelet's own list also has those that are
 * free to assign. `shared` is empty in classic mode. */
int placement_in_kubelet_mode(const char *cpus, const struct cpuset *management,
			      const struct cpuset *shared, struct placement *ret, struct err *err);

/* Kubelet mode: updates the CPUs of the shared pool that the kubelet has assigned exclusively, from
 * its list for one container. There are none when the kubelet's reservation has the shared CPUs. */
void placement_note_taken(const char *cpus, const struct cpuset *shared, struct cpuset *taken);

/* {"pool":"shared","exclusive":false,"cpus":"2-5"}, and the other settings where they are set. */
struct str placement_describe(const struct placement *p, struct arena *a);

/* A runtime's list of memory nodes as a mask; 0: none. */
uint64_t placement_memory_nodes(const char *mems);

/* What a runtime's value that is zero or empty means (docs/reference/nri.md#unset-values). */
enum runtime_values {
	RUNTIME_CURRENT, /* a container's present values: unset is a value like any other */
	RUNTIME_UPDATE,	 /* a requested change: unset is unchanged */
};

/* The values to send to the runtime, so that a container with `theirs` gets `settings`; false when
 * there are none. The text lives in `a`. */
bool settings_difference(const struct cpu_settings *settings, const struct nri_cpu *theirs,
			 enum runtime_values kind, struct arena *a, struct nri_cpu *ret);
