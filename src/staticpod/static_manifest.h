#pragma once

/* One manifest in the kubelet's directory of static pods: what shall become of it, from its text
 * and from the original kept beside it. Whether the original still belongs to the manifest is
 * found by converting it again, so nothing else has to be remembered. Pure. */

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct arena;

#define STATIC_MANIFEST_MAX_SIZE ((size_t)1 << 20)

enum static_verdict {
	STATIC_UNMANAGED, /* asks for nothing: not ours */
	STATIC_CONVERTED, /* stands as it should */
	STATIC_CONVERT,	  /* to be replaced by `text` */
	STATIC_REFUSED,	  /* cannot be converted and runs as it is; `why` */
	STATIC_BROKEN,	  /* cannot be read, perhaps not yet; `why` */
	STATIC__COUNT
};

const char *static_verdict_name(enum static_verdict verdict);

enum static_original {
	STATIC_ORIGINAL_STAYS, /* is right, or is not there */
	STATIC_ORIGINAL_WRITE, /* becomes `original` */
	STATIC_ORIGINAL_DROP,  /* belongs to a manifest that is no more */
};

struct static_decision {
	enum static_verdict verdict;
	struct str pod; /* "namespace/name", for people */
	struct str text;
	enum static_original keep;
	struct str original;
	struct err why;
};

/* `original` is NULL when none is kept. `name` is for messages. -ENOMEM when the arena ran out. */
int static_manifest_decide(struct str text, const struct str *original, struct str name,
			   struct arena *a, struct static_decision *ret);

/* Whether the kubelet reads a file of this name: not those that begin with a dot. */
bool static_manifest_is_read(const char *name);
