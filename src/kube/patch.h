#pragma once

/* Builds a JSON Patch (RFC 6902) one operation at a time, touching as little as it can, and applies
 * one. Paths are JSON Pointers; keys are escaped here and nowhere else. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

struct patch {
	struct arena *arena;
	yyjson_mut_doc *doc; /* values given to the operations are made in it */
	yyjson_mut_val *ops;
};

/* False when memory ran out. */
bool patch_init(struct patch *p, struct arena *a);
bool patch_is_empty(const struct patch *p);

/* `base` is a pointer already escaped; `key` is appended as one escaped step. */
struct str patch_path(struct arena *a, struct str base, struct str key);
struct str patch_path_index(struct arena *a, struct str base, size_t index);

void patch_add(struct patch *p, struct str path, yyjson_mut_val *value);
void patch_add_str(struct patch *p, struct str path, struct str value);
void patch_replace(struct patch *p, struct str path, yyjson_mut_val *value);
void patch_remove(struct patch *p, struct str path);

/* Replaces a member that `exists`, adds one that does not. */
void patch_put(struct patch *p, struct str path, bool exists, yyjson_mut_val *value);

/* The difference between two values as the fewest operations that touch no more than they must:
 * objects key by key, arrays of equal length item by item. */
void patch_diff(struct patch *p, struct str base, yyjson_val *from, yyjson_val *to);

/* The patch as JSON text. */
int patch_write(const struct patch *p, struct arena *a, struct str *ret, struct err *err);

/* A new value: `v` with the patch applied. Fails when a path does not fit. */
int patch_apply(const struct patch *p, yyjson_val *v, struct arena *a, yyjson_val **ret,
		struct err *err);
