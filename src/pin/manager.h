#pragma once

/* The state of the node agent and its handlers of NRI calls: decides through classify.h,
 * placement.h and the ledger, records in the registry, and enforces in cgroups. One thread. It
 * knows neither sockets nor timers: agent/agent.c calls it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cgroup/cgroup_watch.h"
#include "classify.h"
#include "crio.h"
#include "nri/nri.h"
#include "pool/ledger.h"
#include "pools_status.h"
#include "reboot.h"
#include "refusals.h"
#include "registry.h"
#include "resize.h"

struct cgroup_fs;
struct node_sync;
struct event_queue;
struct placement;
struct static_pods;
struct host;

struct manager_counters {
	uint64_t placed[POOL__COUNT]; /* containers created */
	uint64_t refused;	      /* containers not created because no CPUs fit them */
	uint64_t resizes_refused;     /* in-place resizes of running containers */
	uint64_t updates_overridden;  /* updates whose CPU settings were replaced */
	uint64_t adopted_late;	      /* containers found running without their CPU settings */
	uint64_t drift_corrected;     /* cgroups that were changed externally */
	uint64_t annotations_rejected;
	uint64_t write_failures; /* cgroups */
	uint64_t syncs, disconnects;
};

/* NRI calls by duration, in the agent. */
#define MANAGER_BUCKETS 10
extern const uint64_t manager_bounds_ns[MANAGER_BUCKETS];

struct manager_latency {
	uint64_t counts[MANAGER_BUCKETS + 1];
	uint64_t sum_ns;
};

/* Returns the runtime's list with further containers added. Lives in `a`. */
typedef struct nri_inventory (*manager_inventory_fn)(const void *data,
						     const struct nri_inventory *all,
						     struct arena *a);

/* The runtime of the present connection, or of the last one. */
struct manager_runtime {
	char name[64], version[64]; /* "" before the first connection */
	bool is_connected;
	char problem[256];    /* why it is not */
	enum crio_state crio; /* CRI-O's own pinning, as of the last connection */
	char *crio_cpus;      /* owned; may be NULL, like the next */
	char *crio_type;      /* the workload type that it is about */
};

/* NUMA nodes of devices, from a module that asks the kubelet. */
struct manager_devices {
	/* A pod's sandbox runs: its containers are created next. */
	void (*expect)(void *data, const struct nri_pod *pod);
	/* The nodes of the devices of one container, or of the pod (NULL), as a mask; 0: none, or
	 * not known yet. */
	uint64_t (*nodes)(const void *data, const struct nri_pod *pod, const char *container);
	void *data;
};

/* Results of other modules that the status document and the Node's condition report. They are here
 * because the status is made from the manager, which itself neither sets nor reads them. A pointer
 * belongs to the module that sets it, and that module clears it before it ends. */
struct manager_status_sources {
	struct str node;	     /* name of the Node; "" without a cluster */
	struct resize_report resize; /* the last one */
	struct pools_in_force pools;
	struct profile_report profile;
	struct reboot_notes reboot;
	const struct static_pods *static_pods; /* NULL: not managed */
	const struct node_sync *link;	       /* NULL: no cluster */
	const struct host *host;	       /* NULL: the host is not configured */
};

struct manager {
	struct ledger *ledger;
	const struct cgroup_fs *cgroups;    /* NULL: cgroups are neither read nor written */
	manager_inventory_fn add_inventory; /* containers that NRI does not report; NULL: none */
	const void *add_inventory_data;
	struct manager_devices devices; /* functions may be NULL */
	struct classify_rules rules;
	bool kubelet_manages;	     /* kubelet mode */
	struct cpuset kubelet_taken; /* CPUs of the shared pool that the kubelet assigned */
	bool isolates;		     /* exclusive CPUs become isolated partitions */

	struct registry registry;
	char **types; /* names of workload types, which pods in the registry refer to */
	size_t n_types;
	struct refusals refusals;
	struct cgroup_watch cgroup_watch; /* on the registry's cgroups */
	bool reported_unwatched;	  /* that not every cgroup can be watched */
	bool reported_shared_empty;	  /* that the shared pool has no CPU */
	size_t next_check;		  /* container and pod to reconcile next */
	struct arena scratch;		  /* of one call, which resets it */
	bool is_changed;		  /* the status file is out of date */
	bool wants_sync;		  /* the runtime has to write the agent's own cgroup */
	bool has_unreleased;		  /* the ledger has pods whose release failed */
	bool is_sync_unwritten;		  /* manager_enforce_synchronized() has work */
	bool has_seen_pods;		  /* the cgroup of a pod was where its path says */
	bool wants_trim;		  /* a synchronization has freed much memory */
	struct event_queue *events;	  /* NULL: no cluster */

	struct manager_runtime runtime;
	const char *crio_dir; /* "/etc/crio"; NULL: not read */

	struct manager_counters counters;
	struct manager_latency latency;
	struct manager_status_sources status;
};

/* `ledger` and `cgroups` are the caller's. The rules' workload types are the ledger's. */
void manager_init(struct manager *m, struct ledger *ledger, const struct cgroup_fs *cgroups);
void manager_done(struct manager *m);

extern const struct nri_handlers manager_handlers; /* user: struct manager * */
#define MANAGER_EVENTS                                                                             \
	(NRI_MASK(NRI_RUN_POD) | NRI_MASK(NRI_REMOVE_POD) | NRI_MASK(NRI_CREATE_CONTAINER) |       \
	 NRI_MASK(NRI_POST_CREATE_CONTAINER) | NRI_MASK(NRI_START_CONTAINER) |                     \
	 NRI_MASK(NRI_POST_START_CONTAINER) | NRI_MASK(NRI_UPDATE_CONTAINER) |                     \
	 NRI_MASK(NRI_REMOVE_CONTAINER))

/* Whether the shared pool has no CPU of its own: all are exclusive, or offline. Its containers use
 * `ret` then, the management CPUs (D23). */
bool manager_shared_is_empty(const struct manager *m, struct cpuset *ret);
#define MANAGER_SHARED_EMPTY_TEXT                                                                  \
	"no CPU of the shared pool is left, its containers use management CPUs "

/* Writes the cgroups that wait for it: of pods, of pause containers, and of all containers after a
 * synchronization. Called after the reply was sent: the runtime waits
 * for replies, and in a create call the pod's cgroup may not exist yet. */
void manager_flush(struct manager *m);

/* Checks the cgroups that were written since the last call, and the next n containers and pods, and
 * corrects drift. */
void manager_reconcile(struct manager *m, size_t n);

/* CPUs went online or offline: moves containers to the present CPUs of their pool. The caller has
 * updated the ledger. */
void manager_repin(struct manager *m);
