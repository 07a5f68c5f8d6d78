#pragma once

/* The digest of namespace permissions: a ConfigMap that the operator writes and every agent reads
 * instead of all namespaces of the cluster (D33). One key for each workload type, with the names of
 * the namespaces that allow it, sorted, one on a line; an annotation says when it was last
 * confirmed. Pure: nodesync/permission_source.h decides when it counts. */

#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;
struct namespace_allowlist;

/* Far below the limit of a ConfigMap (1 MiB): an agent has 6 MiB in all (D22). About 12,000 names.
 */
#define PERMISSIONS_DIGEST_MAX_BYTES ((size_t)256 << 10)
#define PERMISSIONS_DIGEST_MAX_TYPES 64

/* The ConfigMap as JSON. `renewed` is a time, RFC 3339. When the permissions do not fit, *ret is a
 * ConfigMap without data and without that annotation, which no agent uses, and -E2BIG is returned
 * with the reason. */
int permissions_digest_write(const struct namespace_allowlist *list, struct str renewed,
			     struct arena *a, struct str *ret, struct err *err);

/* Reads a ConfigMap into the empty list *ret. *ret_renewed points into the object. -EINVAL when it
 * is not a digest, with *ret empty. */
int permissions_digest_read(yyjson_val *object, struct namespace_allowlist *ret,
			    struct str *ret_renewed, struct err *err);
