#pragma once

/* Compares what the kernel reports with CPU settings: CPUs, weight, quota and threads of every
 * container, and other processes that may run on exclusive CPUs. Comparing is pure; reading is
 * cgroup_snapshot.h. Checks that only a node or only a local machine has are added by the caller
 * with audit_add(). */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup_snapshot.h"
#include "cpu_settings.h"

struct audit_subject {
	struct str namespace, pod, container; /* "" container: the pod itself; all "": the node */
};

/* A container and what it should have. */
struct audit_container {
	struct audit_subject name;
	struct cpu_settings settings;
	bool is_exclusive;
	bool hands_on; /* an init container: other containers of its pod reuse its CPUs */
};

struct finding {
	struct audit_subject name;
	/* Here: "containers", "cpus", "weight", "quota", "thread", "shared-exclusive". */
	const char *check;
	struct str expected, actual;
};

/* A process of no container, mostly of a host service, that may run on exclusive CPUs. No finding
 * by itself. */
struct foreign_process {
	int pid;
	struct str name, cgroup;
	struct cpuset cpus;	    /* the exclusive CPUs it may run on */
	struct audit_subject owner; /* the first container that owns them */
};

struct audit {
	struct arena *a;
	size_t n_containers; /* that exist and were checked */
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

/* Adds the finding "containers" when none of the `n_listed` containers was checked: an audit that
 * looked at nothing must not pass. */
void audit_require_containers(struct audit *t, size_t n_listed);

struct audit_input {
	enum cgroup_version version; /* of containers with a cgroup */
	const struct audit_container *containers;
	const struct cgroup_snapshot *snapshots; /* one per container */
	size_t n;
	const struct processes *machine; /* candidates for foreign processes; NULL: none */
};

void audit_run(struct audit *t, const struct audit_input *in);
