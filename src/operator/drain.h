#pragma once

/* Which pods of a node have to leave before it is disturbed: the rules of `kubectl drain`. Pods of
 * a DaemonSet, static pods and finished pods stay. Pods without a controller are never evicted,
 * because nothing would create them again: the drain waits until they are deleted. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* The members of a PodList that matter, as the store keeps them. */
int drain_pods_trim(yyjson_val *list, struct arena *a, struct str *ret, struct err *err);

struct drain_pod {
	struct str namespace, name, uid;
};

struct drain_plan {
	bool is_known; /* the pods were read */
	bool has_more; /* the list is not complete */
	struct drain_pod *evict;
	size_t n_evict;
	size_t n_leaving;	    /* being deleted */
	size_t n_unmanaged;	    /* without a controller */
	struct drain_pod unmanaged; /* one of them */
};

/* `pods`: what drain_pods_trim() wrote, or NULL. */
void drain_plan(yyjson_val *pods, struct arena *a, struct drain_plan *ret);

/* No pod is left that has to leave. */
bool drain_is_complete(const struct drain_plan *p);

/* "3 pods have to leave, 1 has no controller: default/x"; "" when it is complete. */
struct str drain_describe(const struct drain_plan *p, struct arena *a);
