#pragma once

/* Watches one object by its name, such as the agent's own Node, and hands every version of it to
 * the owner. */

#include "cluster/watch.h"

struct api_failures;

struct object_watch_config {
	const char *path;    /* of the collection: "/api/v1/nodes" */
	const char *request; /* for the log: "watch the Node" */
	bool may_be_absent;  /* the collection: its CRD is not installed */
};

struct object_watch {
	struct watch watch;
	struct watch_config watch_config;
	const struct object_watch_config *config;
	struct watch_callbacks callbacks;
	char selector[512];
	struct str name;
	struct api_failures *failures;
	bool is_open;

	/* `object` is NULL when it does not exist, also at the beginning of every list. */
	void (*on_object)(struct object_watch *w, yyjson_val *object);
	void (*on_synced)(struct object_watch *w); /* a list is complete; may be NULL */
};

/* on_object and on_synced are set by the owner; the rest is overwritten. Starts at once. `config`
 * and `name` must outlive it. */
void object_watch_start(struct object_watch *w, struct api *api,
			const struct object_watch_config *config, struct str name,
			struct api_failures *failures);
void object_watch_close(struct object_watch *w); /* also when it was not started */
void object_watch_done(struct object_watch *w);	 /* after the loop is done */
