#pragma once

/* How many exclusive CPUs a container requests (docs/reference/cpu-manager.md#eligibility) and a
 * pod in total (docs/reference/cpu-manager.md#pod-total). Arithmetic only: the QoS class of a pod
 * is in src/kube/qos, free CPUs are in the ledger. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/pod.h"

struct demand {
	enum container_kind kind;
	bool is_guaranteed; /* the pod's QoS class */
	int64_t cpu_milli;  /* the request */
};

/* The exclusive CPUs of a container: its request, if that is a whole number of CPUs and the pod is
 * Guaranteed; else 0. */
unsigned demand_cpus(const struct demand *d);

/* The most CPUs a pod needs at the same time: sidecars keep running, other init containers finish
 * before the next container starts. `containers` are in the order of the pod: init containers and
 * sidecars, then app containers. */
unsigned demand_pod_cpus(const struct demand *containers, size_t n);
