#pragma once

/* Responses of the agent's PodResources socket (docs/reference/podresources.md#semantics): the CPU
 * ids are the agent's, all else is passed on from the kubelet. Pure: takes the agent's snapshot and
 * the kubelet's encoded response, if there is one, and returns an encoded response. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

struct podres_container {
	const char *name;
	const struct cpuset *cpus; /* exclusive; NULL: shared */
};

struct podres_pod {
	const char *namespace, *name;
	struct podres_container *containers; /* without init containers that are not restartable */
	size_t n_containers;
};

struct podres_snapshot {
	const struct podres_pod *pods;
	size_t n_pods;
	struct cpuset allocatable; /* CPUs that may be assigned, in use or not */
	bool kubelet_manages;	   /* its CPU ids are passed on, too */
};

/* `kubelet` is its response to List or GetAllocatableResources; NULL: there is no kubelet. Its pods
 * come first, in its order, then those that it no longer lists while they still own CPUs. -EBADMSG
 * for a response that cannot be decoded. */
int podres_list(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		struct str *ret, struct err *err);
int podres_allocatable(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		       struct str *ret, struct err *err);

/* One pod of the list: `kubelet` is the response to List. -ENOENT with the kubelet's message when
 * there is no such pod. */
int podres_get(const struct podres_snapshot *s, struct str request, const struct str *kubelet,
	       struct arena *a, struct str *ret, struct err *err);
