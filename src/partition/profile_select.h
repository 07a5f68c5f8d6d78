#pragma once

/* Which profile a node has, from its labels. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "codec/doc.h"

/* Whether the profile's nodeSelector matches: every pair of it is a label of the node. A missing or
 * empty selector selects no node. */
bool profile_selects_node(yyjson_val *profile, yyjson_val *labels);

/* The profiles of a node among n objects: their indexes go to `ret`, which has room for n. 0: no
 * profile selects the node; 1: this one; more: they conflict. As with machine config pools, a
 * profile of another role wins over one of role worker, and one of role master or control-plane
 * over all others (docs/reference/openshift-render.md#node-pools). */
size_t profile_select(yyjson_val *const *profiles, size_t n, yyjson_val *labels, size_t *ret);
