#pragma once

/* The requests that a reconcile decides on. Decisions add to the list; writer.h sends. A reconcile
 * always adds everything that differs from the snapshot: what was sent already, or failed just
 * before, is recognised by its key. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/api.h"
#include "cluster/object_path.h"
#include "kinds.h"

struct arena;

struct operator_write {
	/* "status of profile/worker": what is written. At most one request of a key is in flight,
	 * and failures delay the next one of this key only. */
	struct str key;
	const char *what; /* a constant, for log and metrics: "profile status" */
	struct api_request request;

	/* Where the response is stored; OPERATOR_KIND__COUNT: nowhere. */
	enum operator_kind kind;
	struct str object; /* its key in the store */

	uint64_t interval_ms;	    /* between two requests of this key, at least */
	struct object_event *event; /* is sent after success; NULL: none */
};

struct operator_writes {
	struct arena *arena;
	struct operator_write *items;
	size_t n;
};

/* A zeroed element, except for `kind`. Everything in it must live as long as the arena. */
struct operator_write *operator_writes_add(struct operator_writes *w);

/* Replaces an object as a whole (PUT). One that does not exist is created by server-side apply:
 * RBAC can restrict that to one name, and a POST not. */
struct api_request operator_replace_request(const struct object_ref *ref, bool exists,
					    struct str body, struct arena *a);

/* A PATCH with a JSON merge patch. `object` is the key in the store of `kind`. */
struct operator_write *operator_writes_merge(struct operator_writes *w, struct str path,
					     yyjson_mut_val *body, enum operator_kind kind,
					     struct str object);
