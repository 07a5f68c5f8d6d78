#pragma once

/* Puts patches into YAML text by inserting and deleting whole lines, so that everything else in the
 * file stays as its author wrote it. Knows members added to a block mapping and members removed
 * that take one line; anything else it leaves to somebody who writes the file anew. The caller
 * reads the result back: this looks at positions, not at YAML's grammar. */

#include <stdbool.h>

#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

/* One patch per document. False when a patch cannot be done this way. */
bool yaml_edit_text(struct str text, const struct doc_list *docs, const struct patch *patches,
		    struct arena *a, struct str *ret);
