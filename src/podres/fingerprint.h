#pragma once

/* The fingerprint of a set of pods, as NodeResourceTopology objects carry it so that a scheduler
 * can tell which pods the numbers already count (docs/reference/podresources.md#pod-fingerprint).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct fingerprint {
	uint64_t *pods; /* one hash per pod, unsorted */
	size_t n, cap;
};

#define FINGERPRINT_MAX 32 /* "pfp0v001", 16 hexadecimal digits, NUL */

void fingerprint_init(struct fingerprint *f);
void fingerprint_done(struct fingerprint *f);
void fingerprint_add(struct fingerprint *f, struct str pod_namespace, struct str pod_name);

/* Does not depend on the order in which pods were added. */
void fingerprint_sign(struct fingerprint *f, char ret[FINGERPRINT_MAX]);
