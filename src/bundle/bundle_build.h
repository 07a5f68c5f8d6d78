#pragma once

/* A support bundle that is being collected: files up to a size, and a list of what is left out and
 * why. The index lists both. Deciding what goes in is the caller's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "saved_bundle.h"

struct arena;
struct err;

struct bundle_omission {
	struct str what, why;
};

struct bundle_build {
	struct arena *a;
	size_t max_bytes, used_bytes;
	struct bundle_file *files;
	size_t n, cap;
	struct bundle_omission *omissions;
	size_t n_omissions, cap_omissions;
	struct str *sources; /* "node worker-0" */
	size_t n_sources;
};

void bundle_build_init(struct bundle_build *b, size_t max_bytes, struct arena *a);

/* Texts are not copied. False when the bundle is full; the file is then left out, and says so. */
bool bundle_build_add(struct bundle_build *b, struct str path, struct str bytes);
void bundle_build_leave_out(struct bundle_build *b, struct str what, struct str why);
void bundle_build_source(struct bundle_build *b, struct str source);

/* A document, indented. */
bool bundle_build_add_doc(struct bundle_build *b, struct str path, yyjson_mut_val *v);

/* A name as a part of a path: other characters than letters, digits, "-", "_" and "." as %XX. */
struct str bundle_path_part(struct str name, struct arena *a);

/* Adds the index; nothing is added afterwards. */
int bundle_build_finish(struct bundle_build *b, struct str version, int64_t now_s, struct err *err);

/* An archive with all files below `directory`. */
struct str bundle_build_tar(const struct bundle_build *b, struct str directory, int64_t now_s,
			    struct arena *a);

/* Writes the files below a directory that must not exist yet. Mode 0600: a bundle shows what runs
 * where. */
int bundle_build_write(const struct bundle_build *b, const char *directory, struct err *err);
