#pragma once

/* The last profile of the cluster that fitted this machine, on disk: its pools are a source
 * (pools_source.h) until the API server says otherwise, also after a restart or a reboot. The
 * profile itself is kept, too, because it says more than the pools (D34). */

#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct err;

#define KEPT_PROFILE_FILE "profile.json" /* in the state directory */
#define KEPT_PROFILE_MAX_BYTES ((size_t)512 << 10)

struct kept_profile {
	struct str name;
	int64_t generation;
	struct pool_config pools;
	yyjson_val *profile; /* the object, as node_profile_trim() leaves it */
};

int kept_profile_encode(const struct kept_profile *kept, struct arena *a, struct str *ret,
			struct err *err);
int kept_profile_decode(struct str text, struct str file, struct arena *a, struct kept_profile *ret,
			struct err *err);

/* -ENOENT when none is kept. */
int kept_profile_read(const char *state_dir, struct arena *a, struct kept_profile *ret,
		      struct err *err);
/* Creates the directory when it is missing. */
int kept_profile_write(const char *state_dir, struct str text, struct err *err);
int kept_profile_remove(const char *state_dir, struct err *err); /* 0 also when none is kept */
