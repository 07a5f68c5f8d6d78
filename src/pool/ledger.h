#pragma once

/* Who owns which CPU. The ledger has the three pools of a node and the exclusive assignments,
 * decides who gets what, and keeps invariants I1 to I5 (spec/cpumanager.md 7.1). It moves no
 * process: the agent writes cgroups after the ledger has answered. One owner, one thread.
 *
 * A change is a transaction: decided, checked, written (store.h), and only then visible. When it
 * cannot be written nothing has changed. Without a store the ledger lives in memory only, for
 * simulations and what-if questions. */

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

/* Makes the ledger durable, before anybody is told what changed. */
typedef int (*ledger_persist_fn)(const struct ledger *l, void *data, struct err *err);

/* What follows from the configuration, the machine and the assignments. */
struct ledger_sets {
	struct cpuset shared;	  /* by configuration; in classic mode before exclusive use */
	struct cpuset guaranteed; /* the pool that exclusive CPUs come from */
	struct cpuset held;	  /* by some assignment */
	struct cpuset split;	  /* of the pool, but not a whole core of it (7.3) */
	unsigned group;		  /* CPUs per core that full-pcpus-only counts in */
};

struct ledger_frame {
	const struct topology *topology;
	struct pool_config config;
	uint64_t topology_hash, config_hash; /* of the two above; every write repeats them */
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
	unsigned n_words;	/* of a cpuset: no assignment has a CPU beyond */
	struct cpuset withheld; /* see ledger_withhold() */

	ledger_persist_fn persist; /* NULL: in memory only */
	void *persist_data;

	bool in_transaction, frame_changed;
	struct ledger_frame before; /* as it was when the transaction began */
	struct ledger_change *journal;
	size_t n_journal, cap_journal;
};

/* The topology must outlive the ledger (or the next ledger_hotplug). Fails like pool_config_check.
 */
int ledger_init(struct ledger *l, const struct topology *t, const struct pool_config *c,
		struct err *err);
void ledger_done(struct ledger *l);

/* Several changes, one write. Every function below that changes something does this by itself when
 * no transaction is open. A failed commit rolls back. */
void ledger_begin(struct ledger *l);
int ledger_commit(struct ledger *l, struct err *err);
void ledger_rollback(struct ledger *l);

/* What is known about a container when it is created. */
struct ledger_request {
	struct str pod_uid;
	struct str pod_namespace, pod_name; /* for people */
	struct str container;
	struct demand demand;
	bool is_management;	   /* opted in to the reserved pool */
	struct numa_hint affinity; /* from hints_decide; without a mask: anywhere */
};

struct ledger_grant {
	enum pool pool;
	struct cpuset cpus; /* empty only when every CPU of the machine is exclusive */
	bool is_new;	    /* the shared set of classic mode has changed with it */
	bool size_differs;  /* an existing assignment was kept, though the request has changed */
};

/* The CPUs a container runs on. A container that has an assignment keeps it, whatever it asks for
 * now: so a restart finds its CPUs. Refusals are the kubelet's sentences (3.15): -ENOSPC, or -EDOM
 * for full-pcpus-only. */
int ledger_allocate(struct ledger *l, const struct ledger_request *request,
		    struct ledger_grant *ret, struct err *err);

/* Why a pod is rejected, as the kubelet would name it, for a code that ledger_allocate returned. */
const char *ledger_reject_reason(int code);

/* Takes over CPUs that a running container already has. -EBUSY when they are not its own to have:
 * outside the pool, of the wrong number, or held by another. */
int ledger_adopt(struct ledger *l, const struct ledger_request *request, const struct cpuset *cpus,
		 struct err *err);

/* With the pod, not with a container's end (3.8). Return how many assignments were dropped. */
int ledger_release_pod(struct ledger *l, struct str pod_uid, struct err *err);
int ledger_release_container(struct ledger *l, struct str pod_uid, struct str container,
			     struct err *err);

/* May a running container's CPU request change to this? Refused (-EPERM) when that would change
 * its exclusive CPUs or its pool: applications pin threads, sets never move silently (7.7). */
int ledger_check_update(const struct ledger *l, const struct ledger_request *request,
			struct err *err);

/* I1 to I5, computed afresh. Runs before every write; a failure means a defect in here. */
int ledger_check(const struct ledger *l, struct err *err);

/* A new configuration for running pools: refused (-EBUSY) when it would take CPUs from under a
 * container. The agent writes `shared` and `reserved` to its containers first, then calls
 * ledger_resize, so that no CPU is handed out while a shared container may still run there. */
struct resize_conflict {
	const struct assignment *assignment;
	struct cpuset cpus; /* those of it that the new pool lacks */
};

struct ledger_resize_plan {
	struct cpuset reserved, shared;		 /* where those containers will run */
	struct cpuset joining, leaving;		 /* CPUs that the guaranteed pool wins and loses */
	const struct resize_conflict *conflicts; /* in `a`; none: it can be done */
	size_t n_conflicts;
};

int ledger_plan_resize(const struct ledger *l, const struct pool_config *c, struct arena *a,
		       struct ledger_resize_plan *ret, struct err *err);
int ledger_resize(struct ledger *l, const struct pool_config *c, struct err *err);

/* CPUs that nobody is given any more, because a resize waits for those who have them; NULL: none.
 * Not written down: whoever waits asks for it again after a restart. */
void ledger_withhold(struct ledger *l, const struct cpuset *cpus);

/* CPUs came or went: the machine as it is now. Assignments stay as they are, some of them short of
 * a CPU (ledger_is_degraded); nothing is substituted (7.9). */
int ledger_hotplug(struct ledger *l, const struct topology *t, struct err *err);

/* Everything that runs, as the runtime reports it after we were away (7.8, 4). */
struct ledger_live {
	struct ledger_request request;
	struct cpuset current; /* what its cgroup says */
	bool current_known;

	/* The answer: where it belongs, and whether somebody has to put it there. */
	bool push;
	struct err refused; /* code != 0: no exclusive CPUs for it; `grant` is the shared pool */
	struct ledger_grant grant;
};

/* Releases pods that are gone, keeps and adopts what is there, allocates what is missing: one
 * transaction. `live` may hold several containers of one pod, in any order. */
int ledger_synchronize(struct ledger *l, struct ledger_live *live, size_t n, struct err *err);

/* Answers. */

const struct assignment *ledger_find(const struct ledger *l, struct str pod_uid,
				     struct str container);

/* The assignments of one pod: *ret_n of them from the returned index on. */
size_t ledger_find_pod(const struct ledger *l, struct str pod_uid, size_t *ret_n);

#define LEDGER_EACH(l, index, a)                                                                   \
	for (size_t index = 0; index < (l)->n && ((a) = (l)->items[index], true); index++)

/* Who holds a CPU; of several containers of one pod, the one that is not an init container. */
const struct assignment *ledger_owner(const struct ledger *l, unsigned cpu);

/* Where the containers of a pool run now: online, and never on somebody's exclusive CPUs. When a
 * pool has no CPU left its containers go to another; returns false then. Empty only when every CPU
 * of the machine is exclusive: write nothing in that case. For POOL_GUARANTEED this is the whole
 * pool, as PodResources reports it (7.5). */
bool ledger_cpus(const struct ledger *l, enum pool pool, struct cpuset *ret);

void ledger_free(const struct ledger *l, struct cpuset *ret);	 /* to be given away, online */
void ledger_offline(const struct ledger *l, struct cpuset *ret); /* of all pools, switched off */

/* CPUs of the pod's finished init containers, which its other containers may use (3.7). */
void ledger_reusable(const struct ledger *l, struct str pod_uid, struct cpuset *ret);

/* A CPU of the assignment is offline. */
bool ledger_is_degraded(const struct ledger *l, const struct assignment *a);

/* What the node publishes; from the sizes of the pools, not from what is free (I5). */
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
size_t ledger_numa_count(const struct ledger *l);
void ledger_numa(const struct ledger *l, size_t node, struct ledger_numa *ret);

/* The CPU part of a topology hint for this request (7.4); see hints_decide. */
int ledger_hints(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		 struct hint_list *ret, struct err *err);

/* The same for all containers of a pod at once, in their order: pod scope (5.4). */
int ledger_pod_hints(const struct ledger *l, const struct ledger_request *containers, size_t n,
		     struct arena *a, struct hint_list *ret, struct err *err);

/* For the store: the ledger as a state, without the boot id; good until the next change. And back,
 * when ledger_init has just run. */
void ledger_to_state(const struct ledger *l, struct ledger_state *ret);
int ledger_load(struct ledger *l, struct assignment *const *entries, size_t n, struct err *err);
