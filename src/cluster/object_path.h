#pragma once

/* Paths of objects on an API server, and Event objects. Pure: api.h sends. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

struct object_ref {
	struct str api;		/* "v1", "apps/v1" */
	struct str resource;	/* plural, lower case: "nodes" */
	struct str namespace;	/* "": none */
	struct str name;	/* "": the collection, to create in */
	struct str subresource; /* "status"; mostly "" */
};

/* "/apis/apps/v1/namespaces/shop/deployments/web". Names are escaped. */
struct str object_path(const struct object_ref *ref, struct arena *a);

/* The same with "?fieldManager=...&force=true", for server-side apply: PATCH with API_PATCH_APPLY.
 */
struct str object_apply_path(const struct object_ref *ref, struct str manager, struct arena *a);

/* One page of a collection: `path` with "?limit=...". `selector` may be NULL or
 * "fieldSelector=..."; `token` is the continue token of the page before, "" for the first. */
struct str object_list_path(struct str path, const char *selector, unsigned page, struct str token,
			    struct arena *a);

struct object_event {
	struct str api, kind, namespace, name, uid; /* the object it is about */
	struct str reason;			    /* CamelCase: "PodSkipped" */
	struct str message;			    /* at most 1024 bytes; longer is cut */
	struct str component;			    /* the reporter: "pinfold-operator" */
	struct str host;			    /* the node it comes from; mostly "" */
	bool is_warning;
	uint32_t count; /* occurrences; 0 counts as 1 */
	int64_t now_s;
	uint32_t random; /* makes names within one second unique */
};

/* An Event to create (POST) at *ret_path. For cluster-scoped objects it is in "default". */
int object_event_write(const struct object_event *e, struct arena *a, struct str *ret_path,
		       struct str *ret_body, struct err *err);
