#pragma once

/* Which CPU belongs to which pool, as configured: three disjoint lists, or in classic mode only the
 * reserved one, and the policy options. Checked against a machine (invariant I1), compared and
 * hashed. Who holds a CPU at the moment is ledger.h. */

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "cpu/pick_options.h"
#include "kube/pool.h"

struct arena;
struct doc;
struct err;
struct topology;

struct pool_config {
	/* No `shared` list: shared is what is online, not reserved and not held exclusively. */
	bool is_classic;
	struct cpuset reserved;
	struct cpuset shared; /* not in classic mode */
	struct cpuset
		guaranteed; /* classic mode: where exclusive CPUs come from; empty: anywhere */
	bool fold_rest;	    /* online CPUs in no list go to shared; otherwise they are refused */
	/* strict_cpu_reservation says, in classic mode only, that shared containers stay off the
	 * reserved CPUs. Ours always do (DESIGN 1); the kubelet's do only when told so. */
	struct pick_options options;
	/* Whoever asks for these pools while somebody is in the way waits until he is gone, instead
	 * of being refused. About the asking, not the pools: neither compared nor written. */
	bool defers_resize;
};

/* Sets the defaults: pools mode, strict reservation, everything else empty and off. */
void pool_config_init(struct pool_config *c);

/* I1: disjoint, on this machine, complete, shared not empty; and options that fit together. All
 * CPUs of the machine count, also those that are switched off. */
int pool_config_check(const struct pool_config *c, const struct topology *t, struct err *err);

bool pool_config_eq(const struct pool_config *a, const struct pool_config *b);

/* Equal for equal configurations; independent of the machine and of what is online. */
uint64_t pool_config_hash(const struct pool_config *c);

/* The sets that follow from a configuration on a machine. Switched-off CPUs are included. */
void pool_config_shared(const struct pool_config *c, const struct topology *t, struct cpuset *ret);
void pool_config_guaranteed(const struct pool_config *c, const struct topology *t,
			    struct cpuset *ret);

/* {"mode":"pools","reserved":"0-1","shared":"2-5","guaranteed":"6-15","options":{...}} */
yyjson_mut_val *pool_config_to_doc(const struct pool_config *c, yyjson_mut_doc *m, struct arena *a);
int pool_config_from_doc(const struct doc *doc, yyjson_val *v, struct pool_config *ret,
			 struct err *err);

/* The reserved CPUs a kubelet would choose: `list` when given, else `n` picked from the whole
 * machine; refused, in its words, when there are not exactly `n` (3.2). */
int pool_reserve(const struct topology *t, const struct pick_options *o, unsigned n,
		 const struct cpuset *list, struct cpuset *ret, struct err *err);
