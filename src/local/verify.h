#pragma once

/* Kernel truth against the plan. The containers are judged by cgroup/truth.h, as those of a node
 * are; to that comes who should run and does not. Pure: looking is cage_look(). */

#include <stddef.h>

#include "cgroup/truth.h"
#include "local.h"

struct verify_input {
	enum local_mode mode;
	const struct local_container *containers;
	const struct sight *sights; /* one per container */
	const enum local_state *states;
	size_t n;
	const struct processes *machine; /* where strangers are looked for; NULL: nowhere */
};

/* Adds "not-running" and "failed" to what there is to find. */
struct truth local_verify(const struct verify_input *in, struct arena *a);
