#pragma once

/* Which CPUs a container gets. place_container() is the one way in for containers that are created,
 * updated, listed by the runtime, found running, or reported by an OCI hook: it classifies the
 * container, asks the ledger and returns the placement. The functions before it are pure; they make
 * a container's settings and compare them with what a runtime has or requests. Recording and
 * enforcing a placement is manager_state.h. */

#include "cgroup/cpu_settings.h"
#include "classify.h"
#include "pool/ledger.h"

struct manager;
struct nri_container;
struct nri_cpu;
struct nri_pod;

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

enum place_mode {
	PLACE_NEW,     /* not started: refused when no CPUs fit it */
	PLACE_UNNAMED, /* likewise, and with an id that nothing else knows: no exclusive CPUs */
	PLACE_RUNNING, /* cannot be refused: falls back to the CPUs of its pool */
};

/* Finished pods are released first when they hold the CPUs, and in classic mode shared containers
 * are off exclusive CPUs when this returns. */
int place_container(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		    enum place_mode mode, struct placement *ret, struct err *err);

/* The parts of it, for a synchronization, which asks the ledger about all containers at once. */

/* Cannot fail: a running container with a broken annotation stays in the pool its pod opted in to.
 */
void place_classify_running(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, struct container_class *ret);

struct ledger_request place_request(struct manager *m, const struct nri_pod *pod,
				    const struct nri_container *c,
				    const struct container_class *class);

/* `grant` is the ledger's; NULL: it is asked. */
int place_class(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		const struct container_class *class, const struct ledger_grant *grant,
		struct placement *ret, struct err *err);
