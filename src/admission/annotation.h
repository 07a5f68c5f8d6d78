#pragma once

/* The JSON inside our annotations: the effect of an opt-in and the resources of a container. Both
 * come from users; both parsers say what the API server's decoder would have said. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

/* Checks the value of a target annotation: an object with the one key "effect", set to the one
 * supported effect. -EINVAL with the hook's sentence; it may be long, so it lives in the arena. */
int effect_check(struct str value, struct arena *a, struct str *ret_problem);

/* {"cpushares":N,"cpulimit":M}; a limit of 0 is none. */
struct container_cpu {
	uint64_t shares;
	int64_t limit_milli;
};

/* Decodes the first JSON value; what follows it is not looked at, unknown keys are refused. */
int container_cpu_parse(struct str value, struct arena *a, struct container_cpu *ret,
			struct err *err);
struct str container_cpu_format(const struct container_cpu *cpu, struct arena *a);

/* What containers of best-effort pods get: the least weight, spelled with the blank upstream has.
 */
#define CONTAINER_CPU_BEST_EFFORT "{\"cpushares\": 2}"
