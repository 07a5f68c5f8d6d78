#pragma once

/* The profile that this node is partitioned by: the kept one (pin/kept_profile.h), as long as the
 * pools in force are its pools. The file is read again only after a change. */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "codec/doc.h"

struct arena;
struct manager;

struct profile_in_force {
	bool is_read;
	ino_t inode; /* of the file, which is replaced as a whole; 0: none */
	struct timespec time;
	bool has_pools; /* the pools in force were those of the profile */
};

/* The object, in `a`; NULL when no profile is in force. */
yyjson_val *profile_in_force_get(const char *state_dir, const struct manager *m, struct arena *a);

/* Whether it has changed since the last call; always at the first one. *ret is the object, NULL
 * when no profile is in force; it lives in `a`. */
bool profile_in_force_read(struct profile_in_force *f, const char *state_dir,
			   const struct manager *m, struct arena *a, yyjson_val **ret);
