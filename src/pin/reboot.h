#pragma once

/* What of a partition only a reboot brings about: what the kernel was told on its command line and
 * where the host's own services run, against the pools of now. Reading is apart from judging. */

#include <stdbool.h>
#include <stddef.h>

#include "codec/doc.h"
#include "cpu/cpuset.h"

struct arena;

/* What the machine was booted with. Empty sets: not configured. */
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

/* Only what somebody configured can be wrong: a kernel without isolcpus= isolates nothing and is
 * no drift. Pure. */
void reboot_judge(const struct boot_facts *facts, const struct cpuset *reserved,
		  const struct cpuset *guaranteed, struct reboot_notes *ret);

/* `root_fd` is the root directory. What cannot be read counts as not configured. */
void reboot_read(int root_fd, struct boot_facts *ret);

/* The member "reboot" of the status document: what waits for one, and why. */
void reboot_describe(const struct reboot_notes *notes, struct arena *a, yyjson_mut_doc *doc,
		     yyjson_mut_val *root);
