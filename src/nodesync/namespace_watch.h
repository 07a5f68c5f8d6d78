#pragma once

/* Watches the namespaces and keeps the allowlist: which of them may use which workload types. */

#include "cluster/watch.h"
#include "pin/namespace_allowlist.h"

struct api_failures;

struct namespace_watch {
	struct watch watch;
	struct namespace_allowlist allowlist;
	struct api_failures *failures;
	void (*on_listed)(struct namespace_watch *w); /* the first list after a start is complete */
	bool is_listed;
	bool is_open; /* namespace_watch_start() was called */
	bool has_logged_forbidden;
};

/* on_listed and allowlist.is_legacy are set by the owner. Starts at once, also again after a pause.
 * Until its list is complete, the allowlist stays as it is. */
void namespace_watch_start(struct namespace_watch *w, struct api *api,
			   struct api_failures *failures);
void namespace_watch_pause(struct namespace_watch *w);
void namespace_watch_close(struct namespace_watch *w);
void namespace_watch_done(struct namespace_watch *w); /* after the loop is done */
