#pragma once

/* The state file of a local machine: its pools and every container with its CPU settings and state,
 * written before anything is started. `status`, `map` and `verify` read it; after a crash the next
 * supervisor adopts the processes that it lists. Encodes and decodes text; does no I/O. */

#include <stdbool.h>
#include <stddef.h>

#include "local.h"

struct arena;
struct err;

#define STATE_FILE_MAX_SIZE ((size_t)16 << 20)

struct local_state_file {
	enum local_mode mode;
	struct str boot_id;  /* processes of another boot do not exist any more */
	struct str topology; /* source of the topology: "host" */
	struct pool_config config;
	struct local_container *containers;
	enum local_state *states; /* one per container */
	unsigned *restarts;
	size_t n;
};

int state_file_encode(const struct local_state_file *in, struct arena *a, struct str *ret,
		      struct err *err);
int state_file_decode(struct str text, struct str file, struct arena *a,
		      struct local_state_file *ret, struct err *err);
