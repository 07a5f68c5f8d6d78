#pragma once

/* Watches the PerformanceProfiles of the cluster and keeps what of them matters to a node, as text:
 * there are few, and they are read only when one has changed. What follows from them is decided by
 * the owner. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/watch.h"

struct api_failures;

struct watched_profile {
	char *name;
	char *text; /* of node_profile_trim() */
	bool is_listed;
};

struct profile_watch {
	struct watch watch;
	struct api_failures *failures;
	struct watched_profile *items; /* in the order in which they were first seen */
	size_t n, cap;
	bool is_open;
	bool is_listing;	  /* a list has begun and is not complete */
	bool is_known;		  /* a list was complete once */
	bool is_changed;	  /* since the owner last cleared it */
	unsigned n_refused;	  /* lists in a row to which the server responded with an error */
	uint64_t absent_since_ms; /* the CRD is missing; 0: it is not */
	bool has_logged_forbidden;
};

/* Starts at once. */
void profile_watch_start(struct profile_watch *w, struct api *api, struct api_failures *failures);
void profile_watch_close(struct profile_watch *w);
void profile_watch_done(struct profile_watch *w); /* after the loop is done */

/* Whether the owner has yet to decide what follows from the profiles: no list was complete, or
 * something has changed since. Not while the server refuses lists: then the last decision stays. */
bool profile_watch_is_undecided(const struct profile_watch *w);

/* The profiles as objects, in `a`. */
yyjson_val **profile_watch_objects(const struct profile_watch *w, struct arena *a, size_t *ret_n);
