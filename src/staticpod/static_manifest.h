#pragma once

/* Decides what to do with one manifest in the kubelet's manifest directory, from its text and from
 * the saved original. Whether the original still belongs to the manifest is found by converting it
 * again, so no other state is stored. Pure: static_pods.h reads and writes the files. */

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct arena;

#define STATIC_MANIFEST_MAX_SIZE ((size_t)1 << 20)

enum static_verdict {
	STATIC_UNMANAGED, /* does not opt in */
	STATIC_CONVERTED, /* is converted already */
	STATIC_CONVERT,	  /* must be replaced by `text` */
	STATIC_REFUSED,	  /* cannot be converted and runs unchanged; see `why` */
	STATIC_BROKEN,	  /* cannot be read, perhaps because it is being written; see `why` */
	STATIC__COUNT
};

const char *static_verdict_name(enum static_verdict verdict);

enum static_original {
	STATIC_ORIGINAL_STAYS, /* is correct, or does not exist */
	STATIC_ORIGINAL_WRITE, /* is replaced by `original` */
	STATIC_ORIGINAL_DROP,  /* belongs to a manifest that no longer exists */
};

struct static_decision {
	enum static_verdict verdict;
	struct str pod; /* "namespace/name", for the status */
	struct str text;
	enum static_original keep;
	struct str original;
	struct err why;
};

/* `original` is NULL when none was saved. `name` is for messages. With `is_legacy` a manifest may
 * opt in by the names of 2021 (D2), which the conversion replaces. -ENOMEM when the arena ran out.
 */
int static_manifest_decide(struct str text, const struct str *original, struct str name,
			   bool is_legacy, struct arena *a, struct static_decision *ret);

/* The kubelet ignores files whose name begins with a dot. */
bool static_manifest_is_read(const char *name);
