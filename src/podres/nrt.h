#pragma once

/* NodeResourceTopology objects (topology.node.k8s.io/v1alpha2): what is free on each NUMA node of
 * this machine, for the topology-aware scheduler plugin
 * (docs/reference/podresources.md#noderesourcetopology). Builds the document and reads the memory
 * of the nodes; nodesync/nrt_sync.h sends it. Devices are not included: on nodes with devices an
 * exporter reads the PodResources socket instead. */

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

/* From /sys/devices/system/node below `root_fd`. Without that directory there are no memories: the
 * zones are published without memory, and the scheduler does not filter by it. */
int nrt_memory_read(int root_fd, struct arena *a, struct nrt_memories *ret, struct err *err);

struct nrt_settings {
	struct str node;       /* name of the Node and of this object */
	struct str node_uid;   /* the Node owns the object; "": no owner, the object stays when the
				  Node is deleted */
	const char *policy;    /* "none", "best-effort", "restricted", "single-numa-node" */
	const char *scope;     /* "container", "pod" */
	bool cpu_is_every_cpu; /* `cpu` counts all but the management CPUs, and guaranteed CPUs
				  appear only as openshift.io/guaranteed-cpus */
};

struct nrt_input {
	const struct nrt_settings *settings;
	const struct ledger *ledger;
	const struct podres_snapshot *pods; /* for the fingerprint and the allocatable CPUs */
	const struct nrt_memories *memories;
};

/* The object as JSON, in `a`. The same input gives the same bytes. */
int nrt_write(const struct nrt_input *in, struct arena *a, struct str *ret, struct err *err);
