#pragma once

/* Kernel truth against intent, for people: every container's CPUs, weight, quota and threads, and
 * whoever else may run on CPUs that somebody owns. Judging is pure; looking is sight.h. What only a
 * node or only one machine has, its own verify adds with audit_add(). */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup_snapshot.h"
#include "drift.h"

struct audit_subject {
	struct str namespace, pod, container; /* "" container: the pod itself; all "": the node */
};

/* A container as somebody wants it. */
struct audit_container {
	struct audit_subject name;
	struct cpu_settings settings;
	bool is_exclusive; /* alone on its CPUs */
	bool hands_on;	   /* an init container: its CPUs are its pod's other containers', too */
};

struct finding {
	struct audit_subject name;
	/* Here: "cpus", "weight", "quota", "thread", "shared-exclusive". */
	const char *check;
	struct str expected, actual;
};

/* A process of no container, often of a host service. Not a finding by itself. */
struct foreign_process {
	int pid;
	struct str name;
	struct str cpus;	    /* exclusive ones it may run on */
	struct audit_subject owner; /* the first container that owns them */
};

struct audit {
	struct arena *a;
	size_t n_containers; /* looked at: those that are there */
	struct finding *findings;
	size_t n_findings, cap_findings;
	struct foreign_process *foreign_processes;
	size_t n_foreign, cap_foreign;
};

void audit_init(struct audit *t, struct arena *a);

/* `check` must outlive `t`, the texts live in its arena. */
void audit_add(struct audit *t, const struct audit_subject *name, const char *check,
	       struct str expected, struct str actual);

/* One cgroup: CPUs, weight, quota. */
void audit_compare(struct audit *t, const struct audit_subject *name, enum cgroup_version version,
		   const struct cgroup_cpu *now, const struct cpu_settings *settings);

struct audit_input {
	enum cgroup_version version; /* no matter where nobody has a cgroup */
	const struct audit_container *containers;
	const struct cgroup_snapshot *snapshots; /* one per container */
	size_t n;
	const struct processes *machine; /* where foreign_processes are looked for; NULL: nowhere */
};

void audit_run(struct audit *t, const struct audit_input *in);
