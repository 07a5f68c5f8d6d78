#pragma once

/* The ledger's file: restart recovery when it is opened, and one atomic, synced replacement per
 * transaction (docs/reference/pools.md#restart-recovery). It belongs on a tmpfs such as /run:
 * assignments are valid only until the next boot, and fsync is free there. The format is in
 * ledger_state.h. */

#include <stdbool.h>

#include "base/arena.h"
#include "ledger.h"

#define STORE_BOOT_ID_MAX 64

struct store {
	int dir_fd; /* owned by the caller */
	int lock_fd;
	char *path;
	char boot_id[STORE_BOOT_ID_MAX];
	struct arena scratch; /* of one write */
};

/* What was done with the file. */
enum store_outcome {
	STORE_FRESH,	/* no file */
	STORE_RESTORED, /* same boot, same configuration */
	STORE_RESIZED,	/* same boot, and the new configuration fits the assignments */
	STORE_KEPT,	/* same boot, the new configuration does not fit: the old one is used */
	STORE_REBOOTED, /* another boot: the assignments are dropped */
	STORE_CORRUPT,	/* unreadable: renamed; ledger_synchronize() rebuilds the state */
	STORE__OUTCOMES
};

struct store_report {
	enum store_outcome outcome;
	struct err why;	      /* of STORE_KEPT and STORE_CORRUPT: to be logged, not a failure */
	char aside[256];      /* of STORE_CORRUPT: the new name of the file */
	size_t n_restored;    /* assignments */
	bool machine_differs; /* the topology changed since the state was written */
};

const char *store_outcome_name(enum store_outcome outcome);

/* "b4e6...": assignments belong to a boot. `root_fd` is the root directory. */
int store_read_boot_id(int root_fd, char ret[STORE_BOOT_ID_MAX], struct err *err);

/* Initializes both. Fails when the configuration is invalid and the file has no older one, when the
 * directory cannot be written, or when another process has locked the file (-EBUSY); never because
 * of the file's content. `path` is below `dir_fd`, which must stay open. */
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
