#pragma once

/* What our PodResources socket answers: the CPUs are ours, all else is the kubelet's word passed
 * on (spec/cpumanager.md 6.3, 7.5). Pure: takes what the agent knows and the kubelet's own encoded
 * answer, if there is one, and gives an encoded answer. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

struct podres_container {
	const char *name;
	const struct cpuset *cpus; /* that it owns; NULL for one that shares */
};

struct podres_pod {
	const char *namespace, *name;
	struct podres_container *containers; /* ordinary init containers are not among them */
	size_t n_containers;
};

struct podres_snapshot {
	const struct podres_pod *pods;
	size_t n_pods;
	struct cpuset allocatable; /* CPUs that can be handed out, in use or not */
	bool kubelet_manages;	   /* its CPU ids are the ones that count */
};

/* `kubelet` is its answer to List or GetAllocatableResources; NULL: there is no kubelet. With one,
 * its pods are listed in its order, and after them those that it no longer counts while they still
 * own CPUs. -EBADMSG for an answer that cannot be read. */
int podres_list(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		struct str *ret, struct err *err);
int podres_allocatable(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		       struct str *ret, struct err *err);

/* One pod of the list: `request` and the kubelet's answer to List. -ENOENT, in the kubelet's words,
 * when neither knows it. */
int podres_get(const struct podres_snapshot *s, struct str request, const struct str *kubelet,
	       struct arena *a, struct str *ret, struct err *err);
