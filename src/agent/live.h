#pragma once

/* What the agent follows while it runs: the files that say which CPUs belong to which pool, and the
 * kubelet's directory of static pods. Watches, times and logs; the work is resize.h's and
 * static_pods.h's. */

#include "net/dir_watch.h"
#include "net/loop.h"
#include "settings.h"
#include "static_pods.h"

struct manager;

struct live_config {
	const struct pools_source *pools;
	const char *static_pods; /* directory; NULL: not ours */
	bool is_host;		 /* the topology is this machine's, so its boot settings matter */
};

struct live {
	struct live_config config;
	struct loop *loop;
	struct manager *manager;
	struct dir_watch pools, marker, manifests;
	struct static_pods static_pods;
	struct timer settle; /* manifests are looked at when they have come to rest */
	bool scan_fails;     /* said already, */
	bool said_unheard;   /* and that a directory cannot be watched */
};

void live_init(struct live *l, const struct live_config *config, struct manager *m);

/* Converts the static pods that are there, before anybody is told that we are ready; then watches.
 */
void live_start(struct live *l, struct loop *loop);
void live_done(struct live *l);

/* The pools, now: SIGHUP. Nothing happens when they are the ones we have. */
void live_reload(struct live *l);

/* Once a second: a resize that waits, directories that were not there. */
void live_tick(struct live *l);

/* What waits for a reboot, into the Manager's status; logged when it is new. */
void live_judge_boot(struct live *l);
