#pragma once

/* The first document's names (D2) rewritten to the current ones, in manifests: pod labels become
 * annotations, namespace labels become annotations, the per-type CPU resource becomes plain cpu
 * (admission converts it when the pod is created), and workloadSettings of an install-config
 * becomes cpuPartitioningMode. */

#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

#define LEGACY_MAX_NOTES 8

struct migration {
	struct patch patch;		    /* relative to the object */
	struct str notes[LEGACY_MAX_NOTES]; /* what the user still has to do */
	size_t n_notes;
};

/* False when memory ran out. The patch is empty where there is nothing old. */
bool legacy_migrate(yyjson_val *object, struct arena *a, struct migration *ret);

/* True when the object uses a name of the first document. */
bool legacy_is_used(yyjson_val *object, struct arena *a);
