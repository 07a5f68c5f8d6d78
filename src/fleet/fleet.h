#pragma once

/* Many clusters at a glance: which versions, profiles and pools they have, what is wrong with their
 * nodes, which of them differ from the rest, and what a planned profile would cost. Clusters are
 * added one by one and forgotten again: a summary of about a hundred bytes stays. Pure: objects go
 * in, figures come out. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "fleet_plan.h"
#include "kube/manifest.h"
#include "partition/cluster_nodes.h"

struct arena;
struct err;

/* What nodes are compared by. */
enum fleet_attribute {
	FLEET_AGENT,
	FLEET_KUBELET,
	FLEET_RUNTIME,
	FLEET_KERNEL,
	FLEET_OS,
	FLEET_PROFILE, /* its name and a hash of its content */
	FLEET_POOLS,   /* CPUs, and the lists of the pools */
	FLEET_ATTRIBUTE__COUNT
};

const char *fleet_attribute_name(enum fleet_attribute attribute); /* "kubelet" */

/* A value that nodes have. */
struct fleet_value {
	enum fleet_attribute attribute;
	struct str text;
	size_t n_clusters, n_nodes;
	uint32_t last; /* the last cluster that was counted */
};

/* A cluster has a value, on some of its nodes. */
struct fleet_use {
	uint32_t cluster, value;
};

struct fleet_cluster {
	struct str name;
	struct str problem; /* why it could not be read; "": it was */
	uint32_t n_nodes, n_findings, n_notes;
	uint32_t n_waiting; /* nodes that wait for a reboot already */
	uint16_t faults[FAULT__COUNT];
	uint32_t effects[FLEET_EFFECT__COUNT]; /* nodes, of the planned profiles */
};

/* The first finding of a kind, as an example. */
struct fleet_example {
	struct str cluster, node, text;
};

struct fleet {
	struct arena *a;
	struct fleet_plan *plan; /* NULL: nothing is planned */
	struct fleet_cluster *clusters;
	size_t n_clusters, cap_clusters;
	struct fleet_value *values;
	size_t n_values, cap_values;
	struct fleet_use *uses;
	size_t n_uses, cap_uses;
	struct fleet_example examples[FAULT__COUNT];
	struct str invalid; /* why a planned profile is invalid, of the first node */
};

void fleet_init(struct fleet *f, struct fleet_plan *plan, struct arena *a);

/* The objects of a cluster: Nodes, NodePartitions, PerformanceProfiles, Infrastructure; others are
 * ignored. They are copied as far as they are needed. `now_s` 0: the time of the newest heartbeat
 * among them, for objects that were saved some time ago. */
void fleet_add(struct fleet *f, struct str name, const struct manifest_list *objects,
	       int64_t now_s);
void fleet_add_unreadable(struct fleet *f, struct str name, struct str why);

/* A cluster with a value that few have, while most have another one. */
struct fleet_outlier {
	const struct fleet_cluster *cluster;
	const struct fleet_value *value, *usual;
};

/* By cluster, then attribute. */
size_t fleet_outliers(const struct fleet *f, struct arena *a, struct fleet_outlier **ret);
