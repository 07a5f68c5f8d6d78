#pragma once

/* What all rendered Kubernetes objects have in common: sorted keys, labels, owners, YAML. */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;
struct profile;

/* How an object refers to its profile (docs/reference/openshift-render.md#owner-reference). */
enum owner_mode { OWNER_LABEL_NAME, OWNER_K8S, OWNER_NONE };

/* apiVersion, kind and an empty metadata with a name. */
yyjson_mut_val *object_new(yyjson_mut_doc *m, const char *api, const char *kind, struct str name);

/* Adds the owner to the object's metadata. */
void object_set_owner(yyjson_mut_doc *m, yyjson_mut_val *object, enum owner_mode mode,
		      const struct profile *profile);

/* metadata.labels, made when missing. */
yyjson_mut_val *object_labels(yyjson_mut_doc *m, yyjson_mut_val *object);

/* Copies the pairs of a read object into a built one. */
void object_copy_pairs(yyjson_mut_doc *m, yyjson_mut_val *to, yyjson_val *from);

/* Sets a key and replaces an old value. */
void object_set(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, yyjson_mut_val *value);

/* Adds to `object` what `defaults` has and it lacks, level by level. */
void object_fill(yyjson_mut_doc *m, yyjson_mut_val *object, yyjson_val *defaults);

/* As YAML with the keys of every object sorted, so that equal objects are equal bytes. */
int object_write(yyjson_mut_val *object, struct arena *a, struct str *ret, struct err *err);
