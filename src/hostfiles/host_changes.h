#pragma once

/* What differs between a host and its profile, what waits for what, and what the agent does next.
 * Without a grant only files that disturb nothing are written; what restarts the kubelet or the
 * runtime, and a reboot, wait until spec.granted of the NodePartition is the hash of that change
 * (D44). Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "host_files.h"
#include "partition/node_partition.h"

struct host_facts {
	const struct host_files *files; /* with their states */
	bool may_write;			/* --host-configuration=managed */
	bool was_managed;		/* there are files that the agent has written */
	/* HOST_FILE_KUBELET and HOST_FILE_RUNTIME: the unit that runs it ("": none is known), and
	 * whether it still runs with what it read before files were written. */
	struct str units[HOST_FILE_CLASS__COUNT];
	bool owes_restart[HOST_FILE_CLASS__COUNT];
	bool owes_systemd;	 /* systemd has not read or enabled what was written */
	bool owes_reboot;	 /* units that run at boot were written since the last one */
	struct str missing_args; /* kernel arguments that /proc/cmdline lacks */
	bool has_applied_args;	 /* the boot loader has some arguments from an agent */
	bool has_boot_loader;	 /* the boot loader has the wanted arguments, */
	bool was_rebooted;	 /* and a reboot since then did not bring them */
	struct str granted;	 /* spec.granted; "": nothing */
	struct str problem;	 /* the last failure to write or restart; "": none */
};

#define HOST_CHANGES_MAX 3

struct host_changes {
	struct pending_change pending[HOST_CHANGES_MAX];
	size_t n_pending;
	struct condition condition;
	/* What to do now. */
	bool writes[HOST_FILE_CLASS__COUNT];
	bool restarts[HOST_FILE_CLASS__COUNT]; /* after writing */
	bool updates_boot_loader, undoes_boot_loader;
	bool reboots;
	bool leaves_sentinel; /* for a reboot by others */
};

void host_changes_decide(const struct host_facts *facts, struct arena *a, struct host_changes *ret);
