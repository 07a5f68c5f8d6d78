#pragma once

/* How many CPUs of its own a container wants (spec/cpumanager.md 3.4, 3.5). Pure arithmetic: which
 * QoS class a pod has is src/kube/qos's business, whether there are CPUs left is the ledger's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/pod.h"

struct demand {
	enum container_kind kind;
	bool is_guaranteed; /* the pod's QoS class */
	int64_t cpu_milli;  /* the request */
};

/* Whole CPUs for a container of a Guaranteed pod that asks for a whole number of them; else 0. */
unsigned demand_cpus(const struct demand *d);

/* What a pod needs at its fullest moment: sidecars stay, other init containers come and go before
 * the app containers. `containers` are in the order of the pod: init and sidecar, then app. */
unsigned demand_pod_cpus(const struct demand *containers, size_t n);
