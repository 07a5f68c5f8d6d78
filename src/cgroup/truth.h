#pragma once

/* Kernel truth against intent, for people: every container's CPUs, weight, quota and threads, and
 * whoever else may run on CPUs that somebody owns. Judging is pure; looking is sight.h. What only a
 * node or only one machine has, its own verify adds with truth_add(). */

#include <stdbool.h>
#include <stddef.h>

#include "drift.h"
#include "sight.h"

struct truth_name {
	struct str namespace, pod, container; /* "" container: the pod itself; all "": the node */
};

/* A container as somebody wants it. */
struct truth_container {
	struct truth_name name;
	struct cgroup_want want;
	bool is_exclusive; /* alone on its CPUs */
	bool hands_on;	   /* an init container: its CPUs are its pod's other containers', too */
};

struct finding {
	struct truth_name name;
	/* Here: "cpus", "weight", "quota", "thread", "shared-exclusive". */
	const char *what;
	struct str want, got;
};

/* Somebody of no container. Often the host's own services: no finding by itself. */
struct stranger {
	int pid;
	struct str name;
	struct str cpus;  /* exclusive ones it may run on */
	struct str owner; /* whose they are: "namespace/pod/container" of the first */
};

struct truth {
	struct arena *a;
	size_t n_containers; /* looked at: those that are there */
	struct finding *findings;
	size_t n_findings, cap_findings;
	struct stranger *strangers;
	size_t n_strangers, cap_strangers;
};

void truth_init(struct truth *t, struct arena *a);

/* `what` must outlive `t`, the texts live in its arena. */
void truth_add(struct truth *t, const struct truth_name *name, const char *what, struct str want,
	       struct str got);

/* One cgroup: CPUs, weight, quota. */
void truth_compare(struct truth *t, const struct truth_name *name, enum cgroup_version version,
		   const struct cgroup_cpu *now, const struct cgroup_want *want);

struct truth_input {
	enum cgroup_version version; /* no matter where nobody has a cgroup */
	const struct truth_container *containers;
	const struct sight *sights; /* one per container */
	size_t n;
	const struct processes *machine; /* where strangers are looked for; NULL: nowhere */
};

void truth_judge(struct truth *t, const struct truth_input *in);
