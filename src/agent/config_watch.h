#pragma once

/* What the agent follows while it runs: the files that say which CPUs belong to which pool, and the
 * kubelet's directory of static pods. Watches, times and logs; the work is resize.h's and
 * static_pods.h's. */

#include "net/dir_watch.h"
#include "net/loop.h"
#include "pin/pools_source.h"
#include "staticpod/static_pods.h"

struct manager;

struct config_watch_settings {
	const struct pools_source *pools;
	const char *static_pods; /* directory; NULL: not ours */
	bool is_host;		 /* the topology is this machine's, so its boot settings matter */
};

struct config_watch {
	struct config_watch_settings config;
	struct loop *loop;
	struct manager *manager;
	struct dir_watch pools, marker, manifests;
	struct static_pods static_pods;
	struct timer settle; /* manifests are looked at when they have come to rest */
	bool scan_fails;     /* said already, */
	bool said_unheard;   /* and that a directory cannot be watched */
};

void config_watch_init(struct config_watch *l, const struct config_watch_settings *config,
		       struct manager *m);

/* Converts the static pods that are there, before anybody is told that we are ready; then watches.
 */
void config_watch_start(struct config_watch *l, struct loop *loop);
void config_watch_done(struct config_watch *l);

/* The pools, now: SIGHUP. Nothing happens when they are the ones we have. */
void config_watch_reload(struct config_watch *l);

/* Once a second: a resize that waits, directories that were not there. */
void config_watch_tick(struct config_watch *l);

/* What waits for a reboot, into the Manager's status; logged when it is new. */
void config_watch_check_boot(struct config_watch *l);
