#pragma once

/* The ledger's one file: restart recovery when it is opened, and one atomic, synced replacement per
 * transaction from then on (spec/cpumanager.md 7.8). Best on a tmpfs such as /run: assignments
 * never outlive a boot, and syncing costs nothing there. What stands in the file is state.h. */

#include <stdbool.h>

#include "base/arena.h"
#include "ledger.h"

#define STORE_BOOT_ID_MAX 64

struct store {
	int dir_fd; /* the caller's */
	int lock_fd;
	char *path;
	char boot_id[STORE_BOOT_ID_MAX];
	struct arena scratch; /* of one write */
};

/* What became of the file. */
enum store_outcome {
	STORE_FRESH,	/* there was none */
	STORE_RESTORED, /* same boot, same configuration */
	STORE_RESIZED,	/* same boot, and the new configuration fits what runs */
	STORE_KEPT,	/* same boot, the new configuration does not fit: the old one goes on */
	STORE_REBOOTED, /* another boot: nothing of it runs any more */
	STORE_CORRUPT,	/* unreadable: kept aside, to be rebuilt by ledger_synchronize */
	STORE__OUTCOMES
};

struct store_report {
	enum store_outcome outcome;
	struct err why;	      /* of STORE_KEPT and STORE_CORRUPT: an alarm, not a failure */
	char aside[256];      /* of STORE_CORRUPT: the name it was kept under */
	size_t n_restored;    /* assignments */
	bool machine_differs; /* CPUs came or went since the state was written */
};

const char *store_outcome_name(enum store_outcome outcome);

/* "b4e6...": assignments belong to a boot. `root_fd` is the root directory. */
int store_read_boot_id(int root_fd, char ret[STORE_BOOT_ID_MAX], struct err *err);

/* Initialises both. Fails when the configuration is bad and there is no older one to go on with,
 * when the directory cannot be written, or when another process has the file (-EBUSY); never
 * because of what the file holds. `path` is below `dir_fd`, which must stay open. */
struct store_settings {
	int dir_fd;
	const char *path;
	const char *boot_id;
	const struct topology *topology; /* must outlive the ledger */
	const struct pool_config *config;
};
int store_open(struct store *s, struct ledger *l, const struct store_settings *settings,
	       struct store_report *ret, struct err *err);

/* After ledger_done. */
void store_done(struct store *s);
