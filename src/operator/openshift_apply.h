#pragma once

/* A step of the reconcile, with --openshift: applies the objects of the profiles and the cluster's
 * defaults, restores them when they are changed or deleted, deletes those of profiles that no
 * longer exist, and sets the cluster flag of a single node that is partitioned by hand (D3, D43).
 * Pure. */

#include <stdbool.h>

#include "codec/doc.h"

struct operator_snapshot;
struct operator_writes;

/* The `what` of a write that another controller's fields may refuse. */
#define OPENSHIFT_WRITE "openshift object"

/* Whether `have` has every member of `want`, with the same value. Lists have to be equal. */
bool object_contains(yyjson_val *have, yyjson_val *want);

void reconcile_openshift(const struct operator_snapshot *s, struct operator_writes *w);
