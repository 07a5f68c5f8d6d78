#pragma once

/* The pools that a profile gives one machine. Profiles are read, resolved and checked by
 * profile/layout.h, as in `pinfold profile check`; this converts the result to a configuration of
 * pools. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct err;
struct layout;
struct partition;
struct problem_list;
struct topology;

/* The pools of a resolved profile, checked against the partition's topology, which must be there.
 * Online CPUs that the profile does not name join the shared pool. False when there are errors in
 * `p`. */
bool partition_pools(const struct partition *part, struct pool_config *ret, struct problem_list *p);

/* A PerformanceProfile object on this machine, as the only partition of a layout; false when there
 * are errors in `p`. */
bool node_profile_layout(yyjson_val *profile, const struct topology *t, struct arena *a,
			 struct layout *ret, struct problem_list *p);

/* The pools of a PerformanceProfile object on this machine. Cores that are split between sets are
 * only a warning: the node runs, and an error would leave it without pools (D34). */
bool node_profile_pools(yyjson_val *profile, const struct topology *t, struct arena *a,
			struct pool_config *ret, struct problem_list *p);

/* The errors of the list as one text: "spec.cpu.reserved: required; ...". */
struct str node_profile_errors(const struct problem_list *p, struct arena *a);

enum profile_state {
	PROFILE_UNKNOWN, /* the profiles of the cluster, or the labels of the node, are not known */
	PROFILE_NONE,	 /* no profile selects the node */
	PROFILE_SELECTED, /* one does, and it fits the machine */
	PROFILE_CONFLICT, /* more than one does */
	PROFILE_INVALID,  /* one does, and it has errors or does not fit the machine */
	PROFILE_STATE__COUNT
};

const char *profile_state_name(enum profile_state state); /* "conflict" */

/* What the profiles of a cluster say about one node. */
struct node_profile {
	enum profile_state state;
	yyjson_val *profile; /* the selected one; NULL: none, or more than one */
	struct str name;
	int64_t generation;
	struct pool_config pools; /* only of PROFILE_SELECTED */
	struct str message;	  /* why there are no pools, or the warnings; "": nothing to say */
};

void node_profile_decide(yyjson_val *const *profiles, size_t n, yyjson_val *labels,
			 const struct topology *t, struct arena *a, struct node_profile *ret);

#define NODE_PROFILE_MAX_BYTES ((size_t)128 << 10)

/* A profile without what has no effect on a node (status, managed fields, annotations of others),
 * as JSON. Of a larger one than NODE_PROFILE_MAX_BYTES only the selector is left, and it is
 * invalid.
 */
int node_profile_trim(yyjson_val *profile, struct arena *a, struct str *ret, struct err *err);
