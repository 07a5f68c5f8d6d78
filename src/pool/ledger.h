#pragma once

/* The ledger records which container owns which CPU. It has the three pools of a node and the
 * exclusive assignments, allocates CPUs, and keeps invariants I1 to I5
 * (docs/reference/pools.md#invariants). It moves no process: the agent writes cgroups after a
 * change of the ledger succeeded. One owner, one thread.
 *
 * A change is a transaction: decided, checked, written (store.h), and only then visible. If the
 * write fails, nothing has changed: a CPU is on disk before it is assigned, so a crash cannot lead
 * to two owners. Without a store the ledger is in memory only, for simulations. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config.h"
#include "cpu/hints.h"
#include "demand.h"
#include "ledger_state.h"

struct arena;
struct ledger;
struct topology;

/* Makes the ledger durable; called before a change becomes visible. */
typedef int (*ledger_persist_fn)(const struct ledger *l, void *data, struct err *err);

/* What follows from the configuration, the machine and the assignments. */
struct ledger_sets {
	struct cpuset shared;	  /* configured; in classic mode including exclusive CPUs */
	struct cpuset guaranteed; /* the pool that exclusive CPUs come from */
	struct cpuset held;	  /* the union of all assignments */
	struct cpuset split;	  /* docs/reference/pools.md#split-cores */
	unsigned group;		  /* CPUs per core for full-pcpus-only */
};

struct ledger_frame {
	const struct topology *topology;
	struct pool_config config;
	uint64_t topology_hash,
		config_hash; /* of the two above, kept because every write has them */
	struct ledger_sets sets;
};

struct ledger_change {
	struct assignment *assignment;
	bool is_removal;
};

struct ledger {
	struct ledger_frame now;
	struct assignment **items; /* sorted by pod, then container */
	size_t n, cap;
	unsigned n_words;	/* words of a cpuset that an assignment can use */
	struct cpuset withheld; /* see ledger_withhold() */

	ledger_persist_fn persist; /* NULL: in memory only */
	void *persist_data;

	bool in_transaction;
	struct ledger_frame *before;   /* for a rollback: the frame, when it was changed */
	struct cpuset held_before;     /* likewise: now.sets.held */
	struct ledger_change *journal; /* for a rollback: what to undo, in reverse order */
	size_t n_journal, cap_journal;
};

/* The topology must outlive the ledger, or live until the next ledger_hotplug(). Fails like
 * pool_config_check(). */
int ledger_init(struct ledger *l, const struct topology *t, const struct pool_config *c,
		struct err *err);
void ledger_done(struct ledger *l);

/* Several changes with one write. Every function below that changes the ledger opens a transaction
 * of its own when none is open. A failed commit rolls back. */
void ledger_begin(struct ledger *l);
int ledger_commit(struct ledger *l, struct err *err);
void ledger_rollback(struct ledger *l);

/* A container of a pod, as far as pod scope needs it. */
struct ledger_member {
	struct str container;
	struct demand demand;
};

/* All containers of a pod, in the order of the pod: init containers and sidecars, then app
 * containers. */
struct ledger_pod {
	const struct ledger_member *members;
	size_t n; /* 0: unknown */
	/* The number of CPUs is known to be requested: in pod scope all members get their CPUs
	 * together with the first. */
	bool reserves;
	unsigned n_cpus; /* of the whole pod, if the members are unknown; 0: unknown */
};

/* A container for which CPUs are requested. */
struct ledger_request {
	struct str pod_uid;
	struct str pod_namespace, pod_name; /* for messages */
	struct str container;
	struct demand demand;
	bool is_management; /* opted in to the management pool */
	bool is_running; /* cannot be refused: a NUMA policy that refuses is best-effort for it */
	struct ledger_pod pod;
	/* NUMA nodes of what the container already has, as masks; 0: none, or unknown. */
	uint64_t device_nodes, memory_nodes;
	/* With a mask: these NUMA nodes, without a decision by the policy. */
	struct numa_hint affinity;
};

struct ledger_grant {
	enum pool pool;
	struct cpuset cpus; /* empty only when every CPU of the machine is exclusive */
	/* The NUMA nodes its memory must come from, as a mask; 0: any
	 * (docs/reference/pools.md#memory-nodes). */
	uint64_t memory_nodes;
	bool is_new;	   /* so in classic mode the shared set has changed */
	bool size_differs; /* an existing assignment was kept although the request differs */
};

/* The CPUs of a container, from the NUMA nodes that the policy allows (D17). A container that has
 * an assignment keeps it, whatever it requests now, so that a restarted container gets the same
 * CPUs. Refusals have the kubelet's messages (docs/reference/cpu-manager.md#error-texts): -ENOSPC,
 * -EDOM for full-pcpus-only, or -EXDEV for the NUMA policy. */
int ledger_allocate(struct ledger *l, const struct ledger_request *request,
		    struct ledger_grant *ret, struct err *err);

/* The kubelet's reason for rejecting a pod, for a code that ledger_allocate() returned. */
const char *ledger_reject_reason(int code);

/* Records the CPUs that a running container already has. -EBUSY when they cannot be assigned to it:
 * not in the guaranteed pool, the wrong number, or owned by another container. */
int ledger_adopt(struct ledger *l, const struct ledger_request *request, const struct cpuset *cpus,
		 struct err *err);

/* Assignments are released with the pod, not when a container ends
 * (docs/reference/cpu-manager.md#release). Return the number of released assignments. */
int ledger_release_pod(struct ledger *l, struct str pod_uid, struct err *err);
int ledger_release_container(struct ledger *l, struct str pod_uid, struct str container,
			     struct err *err);

/* Checks an in-place resize of a running container. Refused (-EPERM) when it would change the
 * number of exclusive CPUs or the pool: applications pin their threads, so an exclusive set never
 * changes under a running container (docs/reference/pools.md#in-place-resize). */
int ledger_check_update(const struct ledger *l, const struct ledger_request *request,
			struct err *err);

/* Recomputes I1 to I5. Runs before every write; a failure is a bug in the ledger. */
int ledger_check(const struct ledger *l, struct err *err);

/* A new configuration while containers run: refused (-EBUSY) when an assignment would lose a CPU.
 * The agent first writes `shared` and `reserved` to the containers' cgroups and then calls
 * ledger_resize(), so that no CPU is assigned while a shared container may still run there. */
struct resize_conflict {
	const struct assignment *assignment;
	struct cpuset cpus; /* its CPUs that are not in the new pool */
};

struct ledger_resize_plan {
	struct cpuset reserved, shared;		 /* the new CPUs of these pools' containers */
	struct cpuset joining, leaving;		 /* CPUs that the guaranteed pool gains and loses */
	const struct resize_conflict *conflicts; /* in `a`; none: the resize is possible */
	size_t n_conflicts;
};

int ledger_plan_resize(const struct ledger *l, const struct pool_config *c, struct arena *a,
		       struct ledger_resize_plan *ret, struct err *err);
int ledger_resize(struct ledger *l, const struct pool_config *c, struct err *err);

/* CPUs that are not assigned any more because a deferred resize waits for their release; NULL:
 * none. Not written to disk: after a restart the resize is requested again. */
void ledger_withhold(struct ledger *l, const struct cpuset *cpus);

/* CPUs went online or offline; `t` is the machine now. Assignments stay, possibly with an offline
 * CPU; none is substituted (docs/reference/pools.md#offline-cpus). */
int ledger_hotplug(struct ledger *l, const struct topology *t, struct err *err);

/* One container of the runtime's list (docs/reference/pools.md#synchronization). */
struct ledger_live {
	struct ledger_request request;
	struct cpuset current; /* the cpuset of its cgroup */
	bool current_known;

	/* The result: its CPUs, and whether they must be written to its cgroup. */
	bool push;
	struct err refused; /* code != 0: no exclusive CPUs for it; `grant` is the shared pool */
	struct ledger_grant grant;
};

/* Releases pods that are gone, keeps or adopts the CPUs of running containers, allocates what is
 * missing, in one transaction. `live` may have several containers of one pod, in any order. `pods`
 * are the UIDs of all pods, also of those whose containers have all ended. When the transaction
 * cannot be written, nothing is released, each container is asked for alone, and the results are
 * set as well. */
int ledger_synchronize(struct ledger *l, struct ledger_live *live, size_t n, const struct str *pods,
		       size_t n_pods, struct err *err);

/* Queries. */

const struct assignment *ledger_find(const struct ledger *l, struct str pod_uid,
				     struct str container);

/* The assignments of one pod: *ret_n of them from the returned index on. */
size_t ledger_find_pod(const struct ledger *l, struct str pod_uid, size_t *ret_n);

#define LEDGER_EACH(l, index, a)                                                                   \
	for (size_t index = 0; index < (l)->n && ((a) = (l)->items[index], true); index++)

/* The CPUs on which the containers of a pool run now: online and not exclusive. Returns false when
 * the pool has no CPU left and its containers use another pool's. Empty only when every CPU of the
 * machine is exclusive: the caller must not write it then. For POOL_GUARANTEED this is the whole
 * pool, as PodResources reports it (docs/reference/pools.md#reported-cpus). */
bool ledger_cpus(const struct ledger *l, enum pool pool, struct cpuset *ret);

void ledger_free(const struct ledger *l, struct cpuset *ret); /* online, can be assigned */

/* CPUs of the pod's ordinary init containers, which its other containers may use
 * (docs/reference/cpu-manager.md#init-container-reuse). */
void ledger_reusable(const struct ledger *l, struct str pod_uid, struct cpuset *ret);

/* The published capacity; from the sizes of the pools, not from free CPUs (I5). */
struct ledger_capacity {
	int64_t management_milli;
	int64_t shared_milli;
	int64_t guaranteed_milli;
	int64_t usable_milli; /* guaranteed, without CPUs that full-pcpus-only can never give */
};
void ledger_capacity(const struct ledger *l, struct ledger_capacity *ret);

/* One NUMA node, as NodeResourceTopology wants it. Nodes are elements 0.. of TOPOLOGY_NUMA. */
struct ledger_numa {
	uint32_t id;
	unsigned n_cpus;	/* online */
	unsigned n_allocatable; /* of the guaranteed pool, online */
	unsigned n_free;
};
void ledger_numa(const struct ledger *l, size_t node, struct ledger_numa *ret);

/* The CPU hints for this request (docs/reference/pools.md#hints); see hints_decide(). */
int ledger_hints(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		 struct hint_list *ret, struct err *err);

/* The same for all containers of the request's pod: pod scope. */
int ledger_pod_hints(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		     struct hint_list *ret, struct err *err);

/* For the store: the ledger as a state, without the boot id, valid until the next change; and back
 * into a ledger that was just initialized. */
void ledger_to_state(const struct ledger *l, struct ledger_state *ret);
int ledger_load(struct ledger *l, struct assignment *const *entries, size_t n, struct err *err);
