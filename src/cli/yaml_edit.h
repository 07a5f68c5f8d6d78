#pragma once

/* Applies patches to YAML text by changing only the characters of the members concerned, so that
 * the rest of the file, comments included, does not change. It adds, replaces and removes members
 * of block and flow mappings. It works on positions and not on YAML's grammar, so the caller must
 * parse the result and compare; where that fails, the caller rewrites the file. */

#include <stdbool.h>

#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

/* One patch per document. False when a patch needs more than that. */
bool yaml_edit_text(struct str text, const struct doc_list *docs, const struct patch *patches,
		    struct arena *a, struct str *ret);
