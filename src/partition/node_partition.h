#pragma once

/* NodePartition objects (pinfold.io/v1alpha1): which CPUs of a node belong to which pool, where
 * that comes from, how the pools are used and what waits. The node's agent writes the status, the
 * operator the spec. Structs from and to JSON, and whether two statuses differ. Pure: texts are
 * views of the document that was read, and CPU sets stay lists, so that a thousand objects are
 * small. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "machine_groups.h"

struct arena;
struct err;

/* Where the pools in force come from, in the order of precedence. */
enum pools_origin {
	POOLS_FROM_NOTHING,
	POOLS_FROM_FLAGS,
	POOLS_FROM_FILE,
	POOLS_FROM_PROFILE,
	POOLS_FROM_MARKER,
	POOLS_FROM__COUNT
};

const char *pools_origin_name(enum pools_origin origin); /* "Profile" */

/* What a change that waits needs. */
enum pending_need {
	NEED_RESIZE,
	NEED_KUBELET_RESTART,
	NEED_RUNTIME_RESTART,
	NEED_REBOOT,
	NEED_OTHER, /* of a newer agent: known by name only */
	NEED__COUNT
};

/* The reason of a reboot that the agent does not prepare: the kernel was booted with parameters
 * that contradict the pools. */
#define PENDING_BOOT_PARAMETER "BootParameterDiffers"

/* Reasons of the condition HostConfigured. */
#define HOST_REASON_FILES_FAIL "HostFilesFail" /* what waits is not known while it lasts */

struct pending_change {
	enum pending_need need;
	struct str reason;  /* CamelCase */
	struct str message; /* a sentence */
	struct str hash;    /* of the change: spec.granted names it. "": needs no grant */
	struct str other;   /* the name of NEED_OTHER */
};

struct str pending_change_what(const struct pending_change *c); /* "KubeletRestart" */

struct pool_use {
	struct str name; /* "management" */
	int64_t containers;
	int64_t requested_millicores; /* -1: not counted for this pool */
	struct str exclusive_cpus;    /* a list */
	int64_t free_cpus;	      /* not assigned exclusively; -1: nothing is assigned here */
};

struct numa_use {
	int64_t id;
	struct str cpus, exclusive_cpus; /* lists */
	int64_t free_cpus;
};

/* The exclusive CPUs of one container. */
struct assigned_cpus {
	struct str namespace, pod, container;
	struct str cpus; /* a list */
};

enum partition_condition {
	PARTITION_READY,	   /* the node is partitioned as its profile says */
	PARTITION_CONFLICT,	   /* more than one profile selects the node */
	PARTITION_HOST_CONFIGURED, /* host files and kernel are as the profile says */
	PARTITION_CONDITION__COUNT
};

enum condition_status { CONDITION_ABSENT, CONDITION_TRUE, CONDITION_FALSE, CONDITION_UNKNOWN };

struct condition {
	enum condition_status status;
	struct str reason, message;
	struct str since; /* lastTransitionTime, RFC 3339 */
};

/* The same limits as in the CRD. */
#define NODE_PARTITION_POOLS_MAX 16
#define NODE_PARTITION_NUMA_MAX 64
#define NODE_PARTITION_PENDING_MAX 16
#define NODE_PARTITION_ASSIGNMENTS_MAX 512

struct node_partition_status {
	struct str agent_version;
	int64_t observed_generation; /* of the spec; 0: none */
	enum pools_origin origin;
	struct str profile; /* name of the profile in force; "": none */
	int64_t profile_generation;
	struct str management, shared, guaranteed, online; /* CPU lists */
	const struct pool_use *pools;
	size_t n_pools;
	const struct numa_use *numa;
	size_t n_numa;
	const struct machine_group *topology; /* of the online CPUs; none: too large */
	size_t n_topology;
	const struct assigned_cpus *assignments;
	size_t n_assignments;
	const struct pending_change *pending;
	size_t n_pending;
	int64_t drift_corrected, drift_failed, refused;
	struct condition conditions[PARTITION_CONDITION__COUNT];
};

struct node_partition {
	struct str name, uid, version; /* metadata */
	int64_t generation;
	struct str owner_uid; /* of the Node that owns it; "": none */
	struct str granted;   /* spec.granted: the hash of a pending change; "": none */
	bool has_status;
	struct node_partition_status status;
};

/* A whole object. Unknown members are ignored, members with wrong types are -EINVAL. */
int node_partition_decode(yyjson_val *object, struct arena *a, struct node_partition *ret,
			  struct err *err);

/* The value of `status`. */
int node_partition_status_encode(const struct node_partition_status *s, struct arena *a,
				 struct str *ret, struct err *err);

/* An object to create: the name, and its Node as the owner ("": no owner). No status: the API
 * server ignores it on creation. */
int node_partition_create(struct str node, struct str node_uid, struct arena *a, struct str *ret,
			  struct err *err);

enum status_difference {
	STATUS_EQUAL,
	STATUS_FIGURES_DIFFER, /* only counters and the use of pools and NUMA nodes */
	STATUS_DIFFERS,
};

/* The times of conditions are not compared. */
enum status_difference node_partition_compare(const struct node_partition_status *x,
					      const struct node_partition_status *y);

/* Gives every condition its time: that of `old` while the status stays, `now` otherwise. `old` may
 * be NULL. */
void node_partition_set_times(struct node_partition_status *s,
			      const struct node_partition_status *old, struct str now);
