#pragma once

/* Defaults that the API server sets before it calls a webhook
 * (docs/reference/admission.md#defaulting), for commands that start from a manifest instead of a
 * request: a limit becomes the request where there is none, and quantities are rounded up to
 * thousandths. Also the pod that a workload's template creates. */

#include "codec/doc.h"

struct arena;
struct err;
struct patch;

/* A copy of the pod with default resources. Unreadable quantities stay, and admission refuses
 * them. */
int pod_default_resources(yyjson_val *pod, struct arena *a, yyjson_val **ret, struct err *err);

/* The pod itself, or the pod that a Deployment or another workload would create: named after it,
 * in its namespace. -EINVAL when there is no template. */
int pod_from_workload(yyjson_val *object, struct arena *a, yyjson_val **ret, struct err *err);
