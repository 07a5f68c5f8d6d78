#pragma once

/* The node agent's one owner of state: answers the runtime about containers, keeps the ledger, and
 * sees to it that the kernel agrees. One thread; sockets and timers are agent.c's. Every decision
 * is made by claim.h, place.h and the ledger; this only carries them out and counts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cgroup/cgroup_watch.h"
#include "classify.h"
#include "crio.h"
#include "nri/nri.h"
#include "pool/ledger.h"
#include "reboot.h"
#include "registry.h"
#include "resize.h"

struct cgroup_fs;
struct node_sync;
struct event_queue;
struct placement;
struct static_pods;

struct manager_counters {
	uint64_t placed[POOL__COUNT]; /* containers created */
	uint64_t refused;	      /* containers that had no place */
	uint64_t resizes_refused;     /* of running containers */
	uint64_t reasserted;	      /* updates by others that we answered with our own values */
	uint64_t missed;	      /* containers that had started without us */
	uint64_t repaired;	      /* cgroups that somebody else had changed */
	uint64_t doubted;	      /* annotations that were not believed */
	uint64_t write_failures;
	uint64_t syncs, disconnects;
};

/* NRI calls by duration, in the agent. */
#define MANAGER_BUCKETS 10
extern const uint64_t manager_bounds_ns[MANAGER_BUCKETS];

struct manager_latency {
	uint64_t counts[MANAGER_BUCKETS + 1];
	uint64_t sum_ns;
};

/* Everything there is: what the runtime lists, and more. Lives in `a`. */
typedef struct nri_inventory (*manager_inventory_fn)(const void *data,
						     const struct nri_inventory *all,
						     struct arena *a);

struct manager {
	struct ledger *ledger;
	const struct cgroup_fs *cgroups;    /* NULL: nothing is read or written there */
	manager_inventory_fn add_inventory; /* containers that NRI does not report; NULL: none */
	const void *add_inventory_data;
	struct classify_rules rules;
	bool kubelet_manages; /* its static policy hands out CPUs; ours are only the reserved ones
			       */

	bool isolates; /* exclusive CPUs become partitions of the kernel's */

	struct registry registry;
	struct cgroup_watch cgroup_watch; /* of their cgroups */
	bool said_short;		  /* that it cannot watch them all */
	struct manager_counters counters;
	struct manager_latency latency;
	const char *crio_dir; /* "/etc/crio"; NULL: not looked at */
	enum crio_state crio; /* what CRI-O does by itself, as of the last connection */
	char crio_cpus[256];
	char runtime_name[64], runtime_version[64], nri_version[32];
	bool is_connected;
	char problem[256]; /* why not */
	bool is_changed;   /* since somebody last wrote the status down */
	bool wants_trim;   /* a synchronisation has needed much memory */
	size_t next;	   /* of containers and of pods, to be looked at again */
	struct arena scratch;
	struct event_queue *events;   /* for Events; NULL: nobody sends any */
	const struct node_sync *link; /* for the status; NULL: no cluster */

	/* For the status only. */
	struct str node;	     /* our Node; "" without a cluster */
	struct resize_report resize; /* the last one asked for */
	struct reboot_notes reboot;
	const struct static_pods *static_pods; /* NULL: not ours to look after */
};

/* `ledger` and `cgroups` are the caller's. The rules' workload is filled in from the ledger. */
void manager_init(struct manager *m, struct ledger *ledger, const struct cgroup_fs *cgroups);
void manager_done(struct manager *m);

extern const struct nri_handlers manager_handlers; /* user: struct manager * */
#define MANAGER_EVENTS                                                                             \
	(NRI_MASK(NRI_RUN_POD) | NRI_MASK(NRI_REMOVE_POD) | NRI_MASK(NRI_CREATE_CONTAINER) |       \
	 NRI_MASK(NRI_POST_CREATE_CONTAINER) | NRI_MASK(NRI_START_CONTAINER) |                     \
	 NRI_MASK(NRI_POST_START_CONTAINER) | NRI_MASK(NRI_UPDATE_CONTAINER) |                     \
	 NRI_MASK(NRI_REMOVE_CONTAINER))

/* Writes what waits: weights and quotas of pods, CPUs of pause containers. Call after the runtime
 * has its answer. */
void manager_flush(struct manager *m);

/* Looks at those that somebody has written to, and at the next n containers and pods, and repairs
 * what somebody else changed. */
void manager_reconcile(struct manager *m, size_t n);

/* CPUs came or went: every container to where it belongs now. The caller has told the ledger. */
void manager_repin(struct manager *m);
