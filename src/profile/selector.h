#pragma once

/* Label selectors: matchLabels and matchExpressions against a set of labels, as Kubernetes
 * evaluates them (docs/reference/openshift-render.md#label-selectors). */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* 1 when `labels` (an object, or NULL for none) satisfies the selector, 0 when not; an empty
 * selector matches everything, a missing one nothing. -EINVAL for an unknown operator. */
int selector_matches(yyjson_val *selector, yyjson_val *labels, struct err *err);

/* Whether `labels` (an object, or NULL for none) has every pair of `wanted`, an object of labels.
 */
bool labels_contain(yyjson_val *labels, yyjson_val *wanted);

/* "key=value,key=value", sorted: how messages show a set of labels. */
struct str labels_format(yyjson_val *labels, struct arena *a);
