#pragma once

/* The agent's side of the configuration of the host (host/host_live.h, hostfiles/files_follow.h):
 * from flags to settings, and from the ledger to the pools. */

#include "host/host_live.h"
#include "hostfiles/files_follow.h"

struct agent_config;
struct arena;
struct manager;
struct node_partition_status;
struct profile_in_force;

/* Before the process is confined. With --host-configuration=off, restores what an earlier agent
 * configured. */
void agent_host_open(struct host *h, const struct agent_config *config, const char *boot_id,
		     struct manager *m);

/* Once a second. */
void agent_host_tick(struct host *h, struct manager *m);

/* What the profile in force says about the host, when it is read or has changed: where interrupts
 * go. `object` NULL: none is in force. --interrupts keep comes before it. */
void agent_host_follow(struct host *h, const struct agent_config *config, yyjson_val *object,
		       struct arena *a);

/* Host files: opened like the above, and once a second. `granted` is spec.granted of the
 * NodePartition. */
void agent_files_open(struct files_follow *f, const struct agent_config *config,
		      const char *boot_id);
void agent_files_tick(struct files_follow *f, const struct agent_config *config,
		      const struct profile_in_force *in_force, const struct manager *m,
		      const char *granted);

/* The condition HostConfigured of the NodePartition. */
void agent_host_condition(const struct host *h, struct node_partition_status *s, struct arena *a);

/* For --uninstall. */
int agent_host_restore(const struct agent_config *config, struct err *err);
