#pragma once

/* A support bundle as the source: the objects of its cluster, and what was collected on its nodes.
 * It does not change. */

#include "shown_state.h"

struct arena;
struct err;
struct manifest_list;
struct saved_bundle;

/* `objects` are those of the bundle. Sets the time of the state to that of the bundle. */
int source_bundle_read(const struct saved_bundle *bundle, const struct manifest_list *objects,
		       struct shown_state *state, struct arena *a, struct err *err);
