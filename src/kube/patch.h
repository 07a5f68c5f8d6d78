#pragma once

/* Builds a JSON Patch (RFC 6902) one operation at a time, and applies one. Paths are JSON
 * Pointers; keys are escaped here and nowhere else. Which operations a pod needs is
 * admission/pod_context.h. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

struct patch {
	struct arena *arena;
	yyjson_mut_doc *doc; /* values of operations are created in it */
	yyjson_mut_val *ops;
};

/* False when memory ran out. */
bool patch_init(struct patch *p, struct arena *a);
bool patch_is_empty(const struct patch *p);

/* `base` is an escaped pointer; `key` is escaped and appended to it. */
struct str patch_path(struct arena *a, struct str base, struct str key);
struct str patch_path_index(struct arena *a, struct str base, size_t index);

void patch_add(struct patch *p, struct str path, yyjson_mut_val *value);
void patch_add_str(struct patch *p, struct str path, struct str value);
void patch_replace(struct patch *p, struct str path, yyjson_mut_val *value);
void patch_remove(struct patch *p, struct str path);
void patch_test(struct patch *p, struct str path, struct str value); /* fails if it differs */

/* Replaces a member that `exists`, adds one that does not. */
void patch_put(struct patch *p, struct str path, bool exists, yyjson_mut_val *value);

/* The patch as JSON text. */
int patch_write(const struct patch *p, struct arena *a, struct str *ret, struct err *err);

/* A copy of `v` with the patch applied. Fails when a path does not exist in it. */
int patch_apply(const struct patch *p, yyjson_val *v, struct arena *a, yyjson_val **ret,
		struct err *err);
