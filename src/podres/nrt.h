#pragma once

/* NodeResourceTopology objects (topology.node.k8s.io/v1alpha2): what each NUMA node of this machine
 * can still hand out, for the topology-aware scheduler plugin (spec/cpumanager.md 6.4, 7.5). Only
 * builds the document and reads how much memory the nodes have; sending it is the agent's. Devices
 * are not in it: whoever has some lets an exporter read our PodResources socket instead. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"

struct arena;
struct err;
struct ledger;
struct podres_snapshot;

#define NRT_API "topology.node.k8s.io/v1alpha2"
#define NRT_KIND "NodeResourceTopology"
#define NRT_RESOURCE "noderesourcetopologies"

/* Memory of one kind on one NUMA node. */
struct nrt_memory {
	uint32_t node;
	struct str name; /* "memory", "hugepages-2Mi" */
	uint64_t bytes;
};

struct nrt_memories {
	struct nrt_memory *items; /* by node */
	size_t n;
};

/* From /sys/devices/system/node below `root_fd`. A machine without NUMA there has none: then nodes
 * without memory are published, and nothing is filtered by it. */
int nrt_memory_read(int root_fd, struct arena *a, struct nrt_memories *ret, struct err *err);

struct nrt_settings {
	struct str node;       /* name of the Node object, and of ours */
	struct str node_uid;   /* its owner; "": none, the object outlives the node */
	const char *policy;    /* "none", "best-effort", "restricted", "single-numa-node" */
	const char *scope;     /* "container", "pod" */
	bool cpu_is_every_cpu; /* zone `cpu` counts all but the reserved CPUs; guaranteed ones are
				  counted as openshift.io/guaranteed-cpus alone */
};

struct nrt_input {
	const struct nrt_settings *settings;
	const struct ledger *ledger;
	const struct podres_snapshot *pods; /* of the fingerprint, and what is allocatable */
	const struct nrt_memories *memories;
};

/* The object as JSON, in `a`. Equal for equal input. */
int nrt_write(const struct nrt_input *in, struct arena *a, struct str *ret, struct err *err);
