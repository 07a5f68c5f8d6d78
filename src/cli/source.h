#pragma once

/* Manifest files that a command may rewrite: read from files and directories, patched document by
 * document, and written back with as little change as possible. Where a patch only adds members or
 * removes single lines, the text around them stays as it is, comments included; otherwise the file
 * is written anew. */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "codec/doc.h"
#include "kube/patch.h"

struct arena;
struct err;

struct source {
	const char *path; /* "-" is standard input */
	struct str text;
	struct doc_list docs;
	struct patch *patches; /* one per document; paths begin at its root */
	bool is_json;
};

struct source_list {
	struct source *items;
	size_t n, cap;
};

/* Files and directories as manifests_walk() takes them. */
int sources_read(const struct option_list *paths, struct arena *a, struct source_list *ret,
		 struct err *err);

bool source_is_changed(const struct source *s);

/* The text with all patches applied. *ret_is_anew tells that comments and layout were lost. */
int source_text(const struct source *s, struct arena *a, struct str *ret, bool *ret_is_anew,
		struct err *err);

/* Replaces the file, atomically. */
int source_write(const struct source *s, struct str text, struct err *err);
