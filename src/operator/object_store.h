#pragma once

/* The objects of one kind as the API server has them, by name: the members that the operator needs,
 * as text, so that a thousand nodes take one MiB. Watches fill it, and so do the responses to the
 * operator's own writes, which may arrive before or after the watch reports the same change. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct stored_object {
	char *key;     /* "name", or "namespace/name" */
	char *version; /* resourceVersion */
	char *text;    /* JSON */
	size_t n;
	uint32_t list; /* the list that it was last seen in */
	/* A write may have changed it, no response came, and the server may still execute it until
	 * then. 0: the object is as stored, or a watch will report what has changed. */
	uint64_t doubted_until_ms;
	int64_t seen_s; /* of a Node: the last heartbeat of its agent, Unix time; 0: none */
};

struct object_store {
	struct stored_object *items; /* by key */
	size_t n, cap;
	uint32_t list;
};

void object_store_done(struct object_store *s);

/* Returns true when the text is new or has changed. An older version than the stored one is
 * ignored. */
bool object_store_put(struct object_store *s, struct str key, struct str version, struct str text);

/* The same for the response to a write: an object that is not stored was deleted meanwhile. */
bool object_store_update(struct object_store *s, struct str key, struct str version,
			 struct str text);
bool object_store_remove(struct object_store *s, struct str key);

/* A later heartbeat is no change: it decides nothing by itself, and there is one every 5 minutes
 * from every node. */
void object_store_see(struct object_store *s, struct str key, int64_t seen_s);

/* The outcome of a write is unknown. object_store_update() ends the doubt, a watch does not: its
 * events may be older than the write. */
void object_store_doubt(struct object_store *s, struct str key, uint64_t until_ms);

void object_store_begin_list(struct object_store *s);
bool object_store_end_list(struct object_store *s); /* removes what was not put since */

const struct stored_object *object_store_find(const struct object_store *s, struct str key);

/* Whether version `x` is older than `y`. Kubernetes defines versions as comparable decimal numbers;
 * anything else is never older. */
bool object_version_is_older(struct str x, struct str y);
