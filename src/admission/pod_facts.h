#pragma once

/* What the decisions need of a pod's containers, every quantity parsed once. */

#include <stdbool.h>
#include <stddef.h>

#include "kube/pod.h"
#include "kube/qos.h"
#include "kube/quantity.h"

struct arena;
struct field_errors;

struct container_facts {
	struct container c;
	struct quantity request[QOS_COUNTED__COUNT], limit[QOS_COUNTED__COUNT];
	bool has_request[QOS_COUNTED__COUNT], has_limit[QOS_COUNTED__COUNT];
};

struct pod_facts {
	struct container_facts *items; /* init containers, then app containers */
	size_t n;
};

/* Unreadable quantities become problems, and the result is -EINVAL; -ENOMEM without a problem. */
int pod_facts_read(const struct pod *pod, struct arena *a, struct pod_facts *ret,
		   struct field_errors *problems);

/* In millicores; out of range becomes a problem (D6). */
int container_milli(const struct container_facts *f, bool of_limit, int64_t *ret,
		    struct field_errors *problems);

/* CPU and memory of one container into the hook's QoS class; without its CPU when asked so. */
void container_fold(struct qos_hook_fold *fold, const struct container_facts *f, bool without_cpu);
