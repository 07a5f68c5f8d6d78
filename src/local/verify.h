#pragma once

/* Kernel truth against intent: what each container's control files and threads say, compared with
 * what the plan said. Looking is one function, judging another, pure one. */

#include <stdbool.h>
#include <stddef.h>

#include "cage.h"
#include "local.h"

struct arena;
struct err;

/* What was seen of one container. */
struct observation {
	size_t n_processes, n_threads;
	struct cpuset allowed; /* CPUs that any of its threads may use */
	bool has_cgroup;
	struct cgroup_cpu cgroup;
};

enum drift {
	DRIFT_NOT_RUNNING,
	DRIFT_FAILED,  /* ended badly and is not started again */
	DRIFT_CPUS,    /* the cgroup's CPUs */
	DRIFT_THREADS, /* a thread may run elsewhere */
	DRIFT_WEIGHT,
	DRIFT_QUOTA,
	DRIFT_SHARED_EXCLUSIVE, /* an exclusive CPU belongs to another container, too */
	DRIFT__COUNT
};

const char *drift_name(enum drift drift);

struct finding {
	enum drift drift;
	const struct local_container *container;
	struct str text; /* "runs on 0-3, should be on 2" */
};

struct findings {
	struct finding *items;
	size_t n;
};

int observe(const struct cage *cage, const struct local_container *c, struct arena *a,
	    struct observation *ret, struct err *err);

struct verify_input {
	enum local_mode mode;
	const struct local_container *containers;
	const struct observation *seen; /* one per container */
	const enum local_state *states;
	size_t n;
};

struct findings local_verify(const struct verify_input *in, struct arena *a);
