#pragma once

/* Amounts of resources as the scheduler counts them: the requests of a pod, with init containers,
 * sidecars, overhead and pod-level resources, and what a Node can allocate. CPU is in millicores,
 * everything else in whole units. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct err;
struct pod;

/* Resources that every report shows; others follow, in the order in which pods name them. */
enum sim_resource {
	SIM_CPU,
	SIM_MEMORY,
	SIM_PODS,
	SIM_CORES, /* of the management type */
	SIM_SHARED,
	SIM_GUARANTEED,
	SIM_NAMED, /* the first of the others */
};

#define SIM_RESOURCES_MAX 32

struct sim_resources {
	struct str names[SIM_RESOURCES_MAX];
	size_t n;
};

void sim_resources_init(struct sim_resources *r);

/* Whether the resource is the cores of a workload type. */
bool sim_resource_is_cores(struct str name);

struct sim_amounts {
	int64_t of[SIM_RESOURCES_MAX];
};

/* What a pod requests, with 1 of SIM_PODS. */
struct sim_request {
	struct sim_amounts amounts;
	/* For scores: a container without a request counts as 100m and 200 MiB. */
	int64_t scored_cpu, scored_memory;
};

/* Names of resources are added to `r`. -EINVAL for an unreadable quantity, -E2BIG for more than
 * SIM_RESOURCES_MAX resources. The pod has default requests. */
int sim_request_of(const struct pod *pod, struct sim_resources *r, struct sim_request *ret,
		   struct err *err);

/* The allocatable resources of a Node, as far as they have a name in `r`. */
int sim_allocatable_of(yyjson_val *node, const struct sim_resources *r, struct sim_amounts *ret,
		       struct err *err);
