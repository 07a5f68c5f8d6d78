#pragma once

/* The CPU stamp: an annotation with kind, millicores and pool of every container, written at
 * admission, because the runtime reports neither kinds nor requests
 * (docs/reference/pools.md#cpu-stamp). A node that does not trust the stamp compares it with what
 * the runtime does report.
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

/* What a runtime reports about a container. */
struct runtime_cpu {
	uint64_t shares;
	int64_t quota_us; /* <= 0: none */
	uint64_t period_us;
	bool is_guaranteed; /* from the pod's cgroup: neither burstable nor besteffort */
};

/* False when the runtime's numbers contradict the stamp: it is forged, or the container was
 * resized. */
bool stamp_matches(const struct cpu_stamp *stamp, const struct runtime_cpu *seen);
