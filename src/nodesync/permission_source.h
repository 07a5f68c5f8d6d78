#pragma once

/* Keeps the allowlist of namespaces from the operator's digest, one small object, or from a watch
 * of all namespaces when there is no digest that can be used (permission_origin.h decides). */

#include "cluster/watch.h"
#include "namespace_watch.h"
#include "permission_origin.h"

struct permission_source {
	struct namespace_watch namespaces; /* with the allowlist in force, also for the digest */
	struct watch digest_watch;
	struct namespace_allowlist digest; /* as received, until it is in force */
	struct digest_age age;
	struct timer decide_timer; /* outside of the watches' callbacks */
	struct timer list_timer;   /* before the namespaces are listed for want of a digest */
	struct api *api;
	struct api_failures *failures;
	enum permission_origin origin;
	bool is_open, is_answered;
	bool has_digest;    /* the object exists and can be read */
	bool is_digest_new; /* `digest` is to be taken over */
	bool was_in_list;   /* of the digest watch */
	bool has_logged_unusable;

	/* The permissions are known from a new origin. */
	void (*on_known)(struct permission_source *s);
};

/* on_known and namespaces.allowlist.is_legacy are set by the owner. Starts at once. With is_legacy
 * the namespaces are watched: the digest does not contain labels. */
void permission_source_start(struct permission_source *s, struct api *api,
			     struct api_failures *failures);
void permission_source_tick(struct permission_source *s); /* once a second */
void permission_source_close(struct permission_source *s);
void permission_source_done(struct permission_source *s); /* after the loop is done */
