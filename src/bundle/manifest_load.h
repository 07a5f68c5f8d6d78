#pragma once

/* Reads manifests from files, directories and standard input: the one reader of every command and
 * daemon, so that all of them read the same files in the same order and report errors in the same
 * form. It does I/O; manifest.h has the pure part.
 *
 * A file that is named is read whatever its name is. Of a directory, the *.yaml, *.yml and *.json
 * files are read, in the order of their names, subdirectories included; names that begin with "."
 * are left out, and symbolic links to directories are not followed. "-" is standard input.
 *
 * Of a support bundle (saved_bundle.h), an archive or a directory, the objects of the
 * cluster are read. */

#include <stddef.h>

#include "base/options.h"
#include "kube/manifest.h"

struct arena;
struct err;
struct problem_list;

struct manifest_file {
	const char *path; /* "-" is standard input */
	struct str text;
	struct doc_list docs;
};

struct manifest_files {
	struct manifest_file *items;
	size_t n, cap;
};

/* Reads all paths, or nothing: *ret is set only when every file was read. With `p`, a file that
 * cannot be parsed adds a problem and is left out, so that one run reports all such files; without,
 * the first one fails. */
int manifest_load(const struct option_list *paths, struct arena *a, struct problem_list *p,
		  struct manifest_files *ret, struct err *err);

/* The objects of all files, in order. The files must outlive the list. */
struct manifest_list manifest_files_objects(const struct manifest_files *files, struct arena *a);
