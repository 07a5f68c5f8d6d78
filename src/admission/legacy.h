#pragma once

/* Rewrites the names of 2021 (D2) in manifests to the current ones: pod labels and namespace
 * labels become annotations, the CPU resource of a workload type becomes cpu (admission converts
 * it when the pod is created), and workloadSettings of an install-config becomes
 * cpuPartitioningMode. Admission itself reads old names only with the legacy setting. */

#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

#define LEGACY_MAX_NOTES 32

struct migration {
	struct patch patch;		    /* relative to the object */
	struct str notes[LEGACY_MAX_NOTES]; /* what the user still has to do */
	size_t n_notes;
};

/* False when memory ran out. The patch is empty when no name of 2021 is used. */
bool legacy_migrate(yyjson_val *object, struct arena *a, struct migration *ret);

/* Notes names of 2021 that the migrated object still has, because their place is unknown here. */
void legacy_note_remaining(struct migration *m, yyjson_val *object);

/* True when the object uses a name of 2021. */
bool legacy_is_used(yyjson_val *object, struct arena *a);
