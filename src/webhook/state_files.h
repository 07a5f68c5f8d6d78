#pragma once

/* Cluster state from manifests (--state): read at start and on SIGHUP. Only what decisions need is
 * kept, about 100 bytes for each namespace. When a file cannot be read, the old state stays. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/options.h"
#include "state_source.h"

struct err;

struct core_type {
	struct str name;
	struct cores_count count;
};

/* The result of one load; immutable. */
struct file_facts {
	struct arena arena;
	struct admission_state state;
	struct namespace_table namespaces;
	struct core_type *core_types; /* workload types that some node has cores for */
	size_t n_core_types;
	size_t n_nodes;
};

struct state_files {
	struct state_source source;
	pthread_rwlock_t lock;
	struct option_list files;
	struct admission_settings settings; /* from the flags; a FeatureGate may add to them */
	struct file_facts facts;
	_Atomic uint64_t reloads, failed_reloads;
	_Atomic int64_t loaded_unix_s;
};

/* Reads the files for the first time. */
int state_files_init(struct state_files *s, const struct option_list *files,
		     const struct admission_settings *settings, struct err *err);
void state_files_done(struct state_files *s);
