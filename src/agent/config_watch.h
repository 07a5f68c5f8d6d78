#pragma once

/* Watches the agent's configuration while it runs: the files that assign CPUs to pools, and the
 * kubelet's static pod directory. Handles events, timers and logs; pin/resize.h and
 * staticpod/static_pods.h do the work. */

#include "net/dir_watch.h"
#include "net/loop.h"
#include "pin/pools_source.h"
#include "staticpod/static_pods.h"

struct manager;

struct config_watch_settings {
	const struct pools_source *pools;
	const char *static_pods; /* directory; NULL: not converted */
	bool is_legacy;		 /* static pods opt in by the names of 2021, too */
	bool is_host;		 /* the topology is this machine's: check its boot parameters */
	bool moves_services; /* host services are moved live: a resize needs no reboot for them */
};

struct config_watch {
	struct config_watch_settings config;
	struct loop *loop;
	struct manager *manager;
	struct dir_watch pools, marker, manifests;
	struct static_pods static_pods;
	struct timer scan_timer; /* delays a scan until manifests are written completely */
	uint64_t retry_ms;	 /* when pools of a profile that were refused are tried again */
	bool scan_fails;	 /* logged once, */
	bool watch_fails;	 /* likewise */
};

void config_watch_init(struct config_watch *l, const struct config_watch_settings *config,
		       struct manager *m);

/* Converts existing static pods before the agent reports ready, then watches. */
void config_watch_start(struct config_watch *l, struct loop *loop);
void config_watch_done(struct config_watch *l);

/* SIGHUP: reads the pools and resizes if they changed. */
void config_watch_reload(struct config_watch *l);
/* The same for a source that was changed by the agent itself. */
void config_watch_update(struct config_watch *l);

/* Once a second: retries a deferred resize and missing directories. */
void config_watch_tick(struct config_watch *l);

/* Compares boot parameters with the pools; differences go to the manager's status and, if new, to
 * the log. */
void config_watch_check_boot(struct config_watch *l);
