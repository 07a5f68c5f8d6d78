#pragma once

/* The CPUs that a whole pod requests, for NUMA scope pod. The runtime reports containers one by
 * one; the CPU stamp names all of them, and the sandbox's resources are the kubelet's sum. Pure. */

#include "pool/ledger.h"

struct arena;
struct nri_container;
struct nri_pod;

/* The members are those of the stamp, in the order of the pod. They reserve CPUs only if the
 * kubelet's sum holds them: a stamp comes from an annotation, and could name containers that do not
 * exist. Without a stamp there is the sum alone; without both nothing is known. */
void pod_demand_read(const struct nri_pod *pod, const struct nri_container *c, struct arena *a,
		     struct ledger_pod *ret);
