#pragma once

/* What the API server does to a pod's resources before any hook sees them (spec/admission.md 1.3):
 * a limit becomes the request where there is none, and nothing stays finer than a milli unit. For
 * those who start from a manifest instead of a request. Also the pod that a workload's template
 * would make. */

#include "codec/doc.h"

struct arena;
struct err;
struct patch;

/* A pod with its resources defaulted. Quantities that cannot be read stay, for admission to refuse.
 */
int pod_default_resources(yyjson_val *pod, struct arena *a, yyjson_val **ret, struct err *err);

/* The pod itself, or the pod that a Deployment and its like would create: named after it, in its
 * namespace. -EINVAL when there is no template. */
int pod_from_workload(yyjson_val *object, struct arena *a, yyjson_val **ret, struct err *err);
