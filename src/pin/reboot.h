#pragma once

/* The parts of a partition that only a reboot changes: kernel arguments and the CPUs of host
 * services, compared with the present pools. */

#include <stdbool.h>
#include <stddef.h>

#include "codec/doc.h"
#include "cpu/cpuset.h"

struct arena;

/* What the machine was booted with. An empty set is not configured. */
struct boot_facts {
	struct cpuset online;
	struct cpuset isolated;	 /* isolcpus= */
	struct cpuset nohz_full; /* nohz_full= */
	struct cpuset services;	 /* where process 1 may run */
	bool knows_services;
};

struct reboot_note {
	const char *what; /* "isolcpus", "nohz_full", "systemd" */
	struct cpuset have, want;
	const char *why;
};

#define REBOOT_MAX_NOTES 3

struct reboot_notes {
	struct reboot_note items[REBOOT_MAX_NOTES];
	size_t n;
};

/* Only what is configured can differ: a kernel without isolcpus= is no difference. Pure. */
void reboot_compare(const struct boot_facts *facts, const struct cpuset *reserved,
		    const struct cpuset *guaranteed, struct reboot_notes *ret);

/* `root_fd` is the root directory. A file that cannot be read counts as not configured. With
 * `moves_services` the CPUs of process 1 are what the agent set, and say nothing about the boot. */
void reboot_read(int root_fd, bool moves_services, struct boot_facts *ret);

/* The member "reboot" of the status document: what needs a reboot, and why. */
void reboot_describe(const struct reboot_notes *notes, struct arena *a, yyjson_mut_doc *doc,
		     yyjson_mut_val *root);
