#pragma once

/* What the webhook does for a pod and the policies cannot, and what happens then
 * (docs/policies.md#what-differs). Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct admission_result;
struct admission_settings;
struct arena;
struct pod;

struct policy_limit {
	const char *name;
	const char *what;    /* the reason in the pod or the settings */
	const char *happens; /* in mode policy */
};

#define POLICY_LIMITS_MAX 8

/* Those that concern the pod, about which the webhook decided `result`. */
size_t policy_limits_of(const struct pod *pod, const struct admission_result *result,
			const struct admission_settings *settings, struct arena *a,
			const struct policy_limit *ret[POLICY_LIMITS_MAX]);
