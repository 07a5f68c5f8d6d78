#pragma once

/* What should be true, as a file: the machine's pools and every container with its CPUs, weight
 * and quota, written before anything is started. `status`, `map` and `verify` read it; the next
 * supervisor finds by it what the one before had running. Texts in, texts out. */

#include <stdbool.h>
#include <stddef.h>

#include "local.h"

struct arena;
struct err;

#define STATE_FILE_MAX_SIZE ((size_t)16 << 20)

struct local_state_file {
	enum local_mode mode;
	struct str boot_id;  /* nothing of another boot runs any more */
	struct str topology; /* where the machine's topology was read from: "host" */
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
