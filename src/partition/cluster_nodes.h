#pragma once

/* All nodes of a cluster with their NodePartitions, and what is wrong with them: for `status
 * --cluster` and `verify --cluster`. Pure: objects go in, findings come out. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "node_partition.h"

struct arena;
struct err;

struct cluster_node {
	struct str name;
	bool exists;		 /* there is a Node; false: only a NodePartition */
	bool is_ready;		 /* its kubelet reports */
	bool has_cores;		 /* advertises the cores of the management type */
	struct str agent_status; /* of the Node's condition PartitioningReady; "": none */
	struct str agent_reason, agent_message;
	int64_t agent_seen_s; /* last heartbeat of the condition, Unix time; 0: none */
	bool has_partition;
	struct node_partition partition; /* valid if has_partition */
	struct str unreadable;		 /* why the NodePartition could not be read; "": it was */
};

struct cluster_nodes {
	struct arena *a;
	struct cluster_node *items; /* by name, once sorted */
	size_t n, cap;
	bool is_partitioned; /* the cluster flag is AllNodes */
	struct str version;  /* that most agents have; "": counted among the items */
};

void cluster_nodes_init(struct cluster_nodes *c, struct arena *a);

/* Objects are copied as far as they are needed, in any order. */
void cluster_nodes_add_node(struct cluster_nodes *c, yyjson_val *node);
void cluster_nodes_add_partition(struct cluster_nodes *c, yyjson_val *object);
void cluster_nodes_sort(struct cluster_nodes *c);

/* The agent renews its condition of the Node every 5 minutes. */
#define AGENT_SILENT_S 900

enum node_fault {
	FAULT_NO_PARTITION,
	FAULT_NO_NODE,
	FAULT_UNREADABLE,
	FAULT_NOT_READY,
	FAULT_SHARED_EMPTY,
	FAULT_CONFLICT,
	FAULT_HOST,
	FAULT_PENDING,
	FAULT_DRIFT,
	FAULT_AGENT,
	FAULT_SILENT,
	FAULT_NO_CORES,
	FAULT_VERSION,
	FAULT__COUNT
};

const char *node_fault_name(enum node_fault fault); /* "NotReady" */

struct node_finding {
	const struct cluster_node *node;
	enum node_fault fault;
	bool is_note;	 /* nothing is wrong: the profile asks for reports only */
	struct str text; /* a sentence */
};

struct node_findings {
	struct node_finding *items;
	size_t n, cap, n_notes; /* notes are among the n */
};

/* By node, in the order of enum node_fault. `now_s` is the Unix time. `is_strict`: there are no
 * notes, what is only reported counts like the rest. */
void cluster_nodes_check(const struct cluster_nodes *c, int64_t now_s, bool is_strict,
			 struct node_findings *ret);
