#pragma once

/* Whether the pods of a namespace may use a workload type, and with it the management CPUs (D15).
 * The answer comes from the cluster (namespace_allowlist.h) or from an administrator of the node,
 * never from the pod. Pure. */

#include <stddef.h>

#include "base/str.h"

struct err;

enum permission {
	PERMISSION_UNKNOWN, /* nothing is known about namespaces; counts as denied */
	PERMISSION_GRANTED,
	PERMISSION_DENIED,
};

typedef enum permission (*permission_fn)(const void *data, struct str namespace, struct str type);

/* The flags of an administrator, "NAMESPACE" or "NAMESPACE=TYPE,TYPE". Without types a flag grants
 * the type management. */
struct permission_flags {
	const char *const *items;
	size_t n;
};

/* -EINVAL for a flag without a namespace, or with an empty or invalid type. */
int permission_flags_check(const struct permission_flags *flags, struct err *err);

/* Granted or denied; unknown when there are no flags. */
enum permission permission_from_flags(const struct permission_flags *flags, struct str namespace,
				      struct str type);
