#pragma once

/* Manifest files that a command may rewrite: loaded, patched document by document, and written back
 * with as little change as possible: the text around the members that a patch names stays as it is,
 * comments included (yaml_edit.h). Where that is not possible, and for JSON, the whole file is
 * rewritten. */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "bundle/manifest_load.h"
#include "kube/patch.h"

struct arena;
struct err;

struct manifest_edit {
	struct manifest_file file;
	struct patch *patches; /* one per document; paths begin at its root */
	bool is_json;
	struct str result; /* the text with all patches applied */
	bool is_rewritten; /* comments and layout were lost */
};

struct manifest_edits {
	struct manifest_edit *items;
	size_t n;
};

/* Loads all paths before anything is patched, so that a bad file leaves every file unchanged. */
int manifest_edits_load(const struct option_list *paths, struct arena *a,
			struct manifest_edits *ret, struct err *err);

/* Read from standard input: the result is printed, because there is no file to write. */
bool manifest_edit_is_stdin(const struct manifest_edit *e);

/* For messages: the path, or "<stdin>". */
const char *manifest_edit_name(const struct manifest_edit *e);

bool manifest_edit_is_changed(const struct manifest_edit *e);

/* Sets the result of every file. Like loading, it comes before the first write. */
int manifest_edits_apply(struct manifest_edits *edits, struct arena *a, struct err *err);

/* The results as files of their own, with the same names: what a second run would read. */
int manifest_edits_reload(const struct manifest_edits *edits, struct arena *a,
			  struct manifest_edits *ret, struct err *err);

/* Replaces the file with its result, atomically. */
int manifest_edit_write(const struct manifest_edit *e, struct err *err);
