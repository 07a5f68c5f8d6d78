#pragma once

/* From a claim and a grant to the settings of one container, and from those to the words for the
 * runtime. Pure. */

#include "classify.h"
#include "pool/ledger.h"
#include "registry.h"

struct nri_cpu;

struct placement {
	enum pool pool;
	bool is_exclusive;
	struct cpu_settings settings; /* its text lives in the arena */
};

/* A management container: on the reserved CPUs, or on those of them that its annotation names.
 * -EPERM when it names others. */
int place_management(const struct container_class *class, const struct cpuset *reserved,
		     struct arena *a, struct placement *ret, struct err *err);

/* Any other: CPUs only, and for exclusive ones no quota. -ENOSPC when there is no CPU at all. */
int place_grant(const struct ledger_grant *grant, struct arena *a, struct placement *ret,
		struct err *err);

/* Where a kubelet with the static policy put a container: left alone, but off the reserved CPUs. */
int place_beside_kubelet(const char *cpus, const struct cpuset *reserved, struct arena *a,
			 struct placement *ret, struct err *err);

/* For whoever asked: {"pool":"shared","exclusive":false,"cpus":"2-5"}, and where they are to be set
 * "shares", "quotaUs" and "periodUs". */
struct str place_describe(const struct placement *p, struct arena *a);

/* What must be said so that a container that has `now` gets the intent; false when nothing. */
bool place_difference(const struct cpu_settings *settings, const struct nri_cpu *now,
		      struct nri_cpu *ret);

/* The same for an update: only what the other side is about to change. */
bool place_insist(const struct cpu_settings *settings, const struct nri_cpu *requested,
		  struct nri_cpu *ret);
