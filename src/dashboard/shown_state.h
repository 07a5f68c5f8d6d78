#pragma once

/* What the dashboard shows: the nodes with their Node and NodePartition objects, the pods on them
 * with the CPU settings of their containers, and what has changed. One owner, one thread. Sources
 * (source_cluster.h, source_machine.h) put objects in, views (views.h) read it. No I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/str.h"
#include "codec/doc.h"
#include "history.h"
#include "kube/pod.h"
#include "kube/pool.h"

struct arena;
struct cluster_node;
struct err;

/* Numbers are -1 when they are not known. */
struct shown_container {
	struct str name;
	struct str cpus; /* a list; "": those of its pool */
	enum pool pool;
	enum container_kind kind;
	bool is_exclusive;
	int32_t millicores; /* requested */
	int32_t shares;
	int32_t quota_us; /* 0: unlimited */
	int32_t period_us;
};

struct shown_pod {
	struct str namespace, name, node;
	struct str uid;	  /* may be "" */
	struct str state; /* "Running", "Pending"... as the source says */
	const struct shown_container *containers;
	size_t n;
};

/* The stored form: one allocation with all texts. */
struct stored_pod {
	struct shown_pod pod;
	struct stored_pod *next; /* with the same hash */
	LIST_ENTRY(stored_pod) of_node;
	struct shown_node *node;
	uint32_t hash;
	uint32_t generation; /* of the list that had it last */
};

LIST_HEAD(stored_pods, stored_pod);

struct shown_node {
	struct str name;
	struct shown_node *next; /* with the same hash */
	uint32_t hash;
	uint64_t revision; /* grows with every change */
	bool is_changed;   /* since the last shown_state_take_changes() */

	/* The trimmed objects as JSON; "": there is none. A machine without a cluster has only a
	 * partition, written by its source. */
	struct str node, partition;
	uint32_t node_generation, partition_generation; /* of the list that had it last */
	struct str topology;  /* the groups of its CPUs as JSON, of a machine that was read; "" */
	int64_t agent_seen_s; /* the heartbeat of the agent's condition; 0: none */
	bool is_silent;	      /* it is older than AGENT_SILENT_S */
	struct str use;	      /* JSON: percent of each CPU; "" when not measured */

	struct stored_pods pods;
	size_t n_pods;
	/* The pools at the last change, to tell what moved. */
	struct str pools[POOL__COUNT];
};

/* What is listed. */
enum shown_kind { SHOWN_NODES, SHOWN_PARTITIONS, SHOWN_PROFILES, SHOWN_PODS, SHOWN__KINDS };

struct shown_profile {
	struct str name, json;
	uint32_t generation;
};

struct shown_version {
	struct str text;
	size_t n;
};

struct shown_state {
	struct shown_node **nodes; /* buckets */
	size_t n_nodes, n_node_buckets;
	struct stored_pod **pods; /* buckets */
	size_t n_pods, n_pod_buckets;
	struct shown_profile *profiles;
	size_t n_profiles;
	struct str removed[64]; /* nodes that are gone since the last shown_state_take_changes() */
	size_t n_removed;
	bool has_lost_removals; /* there were more */
	struct shown_version versions[8];
	size_t n_versions;

	struct history history;
	uint64_t revision;
	uint32_t generation[SHOWN__KINDS]; /* of lists */
	bool is_cluster;		   /* objects of an API server; false: one machine */
	bool is_partitioned;		   /* the cluster flag is AllNodes */
	bool is_complete; /* every list was read once: what is missing does not exist */
	int64_t now_ms;	  /* Unix time, set by the owner before objects are put in */
};

void shown_state_init(struct shown_state *s);
void shown_state_done(struct shown_state *s);

struct shown_node *shown_state_find_node(const struct shown_state *s, struct str name);
struct stored_pod *shown_state_find_pod(const struct shown_state *s, struct str namespace,
					struct str name);

/* Objects of the API server. Only what is shown is kept. */
void shown_state_put_node(struct shown_state *s, yyjson_val *object);
void shown_state_remove_node(struct shown_state *s, struct str name);
int shown_state_put_partition(struct shown_state *s, yyjson_val *object, struct err *err);
void shown_state_remove_partition(struct shown_state *s, struct str name);
void shown_state_put_profile(struct shown_state *s, yyjson_val *object);
void shown_state_remove_profile(struct shown_state *s, struct str name);
const struct shown_profile *shown_state_find_profile(const struct shown_state *s, struct str name);

/* A pod without a node is stored, too. */
void shown_state_put_pod(struct shown_state *s, const struct shown_pod *given);
void shown_state_remove_pod(struct shown_state *s, struct str namespace, struct str name);

/* A list begins, and is complete: what was not put in between is removed. */
void shown_state_begin_list(struct shown_state *s, enum shown_kind kind);
void shown_state_end_list(struct shown_state *s, enum shown_kind kind);

/* Of a machine that the dashboard can read. */
void shown_state_set_topology(struct shown_state *s, struct str node, struct str groups);
void shown_state_set_use(struct shown_state *s, struct str node, struct str use);

/* Marks the nodes whose findings have changed by time alone. */
void shown_state_check_time(struct shown_state *s);

/* The node with its objects, for cluster_nodes_check(). False when an object cannot be read. */
bool shown_node_decode(const struct shown_node *n, struct arena *a, struct cluster_node *ret);

/* The version that most agents have. */
struct str shown_state_version(const struct shown_state *s);

/* All nodes by name. */
struct shown_node **shown_state_sorted(const struct shown_state *s, struct arena *a);
