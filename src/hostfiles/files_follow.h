#pragma once

/* Keeps host files as the profile says, or says how they differ: reads the host, has host_changes.h
 * decide, and acts. Restarts and reboots are requested from systemd. All that has to survive is in
 * the record (files_record.h); texts of the last decision stay until the next. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/systemd_client.h"
#include "host_changes.h"

struct distro;
struct node_partition_status;
struct topology;

struct files_settings {
	const char *root;      /* "/", or where a container has the host's files: "/host" */
	const char *state_dir; /* of the record */
	struct str boot_id;
	const struct distro *distro;
	bool may_write;
	bool kubelet_is_static; /* --cpu-manager kubelet */
};

/* What the host is compared with. */
struct files_input {
	yyjson_val *profile; /* NULL: no profile selects the node */
	const struct topology *topology;
	bool has_crio;
};

#define FILES_CALLS_MAX 32

struct files_follow {
	struct files_settings settings;
	struct arena arena; /* of the last decision */
	struct host_files files;
	struct host_changes changes;
	bool is_decided;
	bool is_awaited;    /* by the agent: a check will follow */
	bool is_settled;    /* nothing was to be done at the last check, */
	uint64_t seen;	    /* which has seen this (files_seen.h) */
	uint64_t next_full; /* a check is due whatever was seen */
	bool has_crio;
	char granted[65];
	uint64_t n_ticks, next_check;
	/* When they may be tried again. */
	uint64_t next_restart, next_boot_loader, next_reboot, next_units;
	size_t n_asked;	   /* so many of the calls that the record owes are in the batch; */
	size_t n_answered; /* all of a batch with so many was answered without an error */
	struct systemd_client systemd;
	struct systemd_call calls[FILES_CALLS_MAX];
	size_t n_calls;
	struct err problem; /* code 0: none */
};

void files_follow_init(struct files_follow *f, const struct files_settings *settings);
void files_follow_start(struct files_follow *f, struct loop *loop);
void files_follow_done(struct files_follow *f);

/* Once a second: whether a check is due. Without a change of anything that it reads, one is made
 * only every few minutes. */
bool files_follow_tick(struct files_follow *f, const char *granted);

/* The profile has changed: the next tick is time for a check. */
void files_follow_soon(struct files_follow *f);

/* Compares, decides, and acts. */
void files_follow_check(struct files_follow *f, const struct files_input *input);

/* Adds pending changes and the condition HostConfigured to the status of a NodePartition. What the
 * live configuration reported as false stays. */
void files_follow_describe(const struct files_follow *f, struct node_partition_status *s,
			   struct arena *a);

/* Restores everything that the record has, then removes it; nothing without one. Uses a loop of its
 * own. Nothing is restarted. Returns how many files were restored. */
int files_restore(const struct files_settings *settings, struct err *err);
