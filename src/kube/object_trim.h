#pragma once

/* Objects of a cluster without what Pinfold does not read: for support bundles, which leave the
 * cluster. A list of fields is kept of each kind; everything else, such as environment variables,
 * commands, volumes and the annotations of others, is dropped, also what a later Kubernetes adds.
 * Pure. */

#include <stdbool.h>
#include <yyjson.h>

#include "base/str.h"

/* One kind of the bundle, and where an API server has it. */
struct trimmed_kind {
	const char *kind, *api;	 /* "Pod", "v1" */
	const char *path;	 /* of the collection: "/api/v1/pods" */
	const char *file;	 /* in a bundle: "pods" */
	const char *const *kept; /* fields: "spec.containers[].name"; ends with NULL */
};

extern const struct trimmed_kind trimmed_kinds[]; /* ends with { 0 } */

/* Annotations and labels that Pinfold, OpenShift's partitioning or the kubelet's static pods use.
 */
bool object_trim_is_own_key(struct str key);

/* Objects in a list have neither kind nor apiVersion; the result has both. Strings are not copied.
 */
yyjson_mut_val *object_trim(const struct trimmed_kind *kind, yyjson_val *object, yyjson_mut_doc *m);
