#pragma once

/* The pools that a profile gives one machine. Profiles are read, resolved and checked by
 * profile/layout.h, as in `pinfold profile check`; this converts the result to a configuration of
 * pools. Pure. */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct partition;
struct problem_list;
struct topology;

/* The pools of a resolved profile, checked against the partition's topology, which must be there.
 * Online CPUs that the profile does not name join the shared pool. False when there are errors in
 * `p`. */
bool partition_pools(const struct partition *part, struct arena *a, struct pool_config *ret,
		     struct problem_list *p);

/* The pools of a PerformanceProfile object on this machine. Cores that are split between sets are
 * only a warning: the node runs, and an error would leave it without pools (D34). */
bool node_profile_pools(yyjson_val *profile, const struct topology *t, struct arena *a,
			struct pool_config *ret, struct problem_list *p);

/* The errors of the list as one text: "spec.cpu.reserved: required; ...". */
struct str node_profile_errors(const struct problem_list *p, struct arena *a);
