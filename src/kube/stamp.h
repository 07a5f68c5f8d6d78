#pragma once

/* The CPU facts of a pod's containers as one annotation, stamped when the pod is created, so that
 * the node needs no API call when a container starts (spec/cpumanager.md 7.2). The runtime does not
 * carry kinds and requests; the stamp does. A node that cannot trust its API server's webhook
 *checks what the runtime does carry against it.
 *
 *	pinfold.io/cpus: {"fetch":{"kind":"init","milli":500,"pool":"shared"},
 *			  "du":{"kind":"app","milli":4000,"pool":"guaranteed"}} */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pod.h"
#include "pool.h"

struct arena;
struct err;

struct cpu_stamp {
	struct str name; /* of the container */
	enum container_kind kind;
	int64_t milli;	/* 0: no CPU requested */
	enum pool pool; /* shared or guaranteed */
};

struct str stamps_format(const struct cpu_stamp *stamps, size_t n, struct arena *a);

/* Strict: unknown keys, kinds and pools, repeated containers, and guaranteed amounts that are not
 * whole CPUs are refused. */
int stamps_parse(struct str text, struct arena *a, struct cpu_stamp **ret, size_t *ret_n,
		 struct err *err);

const struct cpu_stamp *stamps_find(const struct cpu_stamp *stamps, size_t n, struct str container);

/* What a runtime says about a container. */
struct cpu_seen {
	uint64_t shares;
	int64_t quota_us; /* <= 0: none */
	uint64_t period_us;
	bool is_guaranteed; /* the pod's cgroup is in neither the burstable nor the besteffort slice
			     */
};

/* False when the runtime's own numbers contradict the stamp: a forged one, or a resized container.
 */
bool stamp_matches(const struct cpu_stamp *stamp, const struct cpu_seen *seen);
