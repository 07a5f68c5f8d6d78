#pragma once

/* Applies patches to YAML text by inserting and deleting whole lines, so that the rest of the file,
 * comments included, does not change. It can add members to a block mapping and remove members of
 * one line; for all other changes the caller rewrites the file. It works on positions and not on
 * YAML's grammar, so the caller must parse the result and compare. */

#include <stdbool.h>

#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

/* One patch per document. False when a patch needs more than that. */
bool yaml_edit_text(struct str text, const struct doc_list *docs, const struct patch *patches,
		    struct arena *a, struct str *ret);
