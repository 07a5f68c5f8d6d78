#pragma once

/* Watches the namespaces and keeps the allowlist: which of them may use the management CPUs. */

#include "cluster/watch.h"
#include "namespace_allowlist.h"

struct api_failures;

struct namespace_watch {
	struct watch watch;
	struct namespace_allowlist allowlist;
	struct api_failures *failures;
	void (*on_known)(struct namespace_watch *w); /* the first list is complete */
	bool has_logged_forbidden;
};

/* on_known and allowlist.is_legacy are set by the owner. Starts at once. */
void namespace_watch_start(struct namespace_watch *w, struct api *api,
			   struct api_failures *failures);
