#pragma once

/* The agent's side of the live configuration of the host (host/host_live.h): from flags to
 * settings, and from the ledger to the pools. */

#include "host/host_live.h"

struct agent_config;
struct manager;

/* Before the process is confined. With --host-configuration=off, restores what an earlier agent
 * configured. */
void agent_host_open(struct host *h, const struct agent_config *config, const char *boot_id,
		     struct manager *m);

/* Once a second. */
void agent_host_tick(struct host *h, struct manager *m);

/* For --uninstall. */
int agent_host_restore(const struct agent_config *config, struct err *err);
