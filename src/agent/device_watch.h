#pragma once

/* Knows the NUMA nodes of the devices of pods that start, for the manager: the kubelet allocates
 * devices before it creates the sandbox, so its PodResources are read when a Guaranteed pod's
 * sandbox runs. Never blocks: a container that is created before the response is placed without. */

#include "base/arena.h"
#include "pin/manager.h"
#include "podres/device_nodes.h"
#include "podres/kubelet_client.h"

struct device_watch {
	struct manager *manager;
	struct kubelet_client kubelet;
	struct arena arena; /* of the items */
	struct device_nodes *items;
	size_t n;
	bool is_on;
	bool is_stale; /* a pod came while a request was under way */
	bool is_failing;
};

/* `path` is the kubelet's socket, which must outlive it; NULL: devices are never known. */
void device_watch_init(struct device_watch *w, struct loop *loop, const char *path,
		       struct manager *m);
void device_watch_done(struct device_watch *w); /* its memory stays until the loop is done */

/* Replaces what is known by a List response. */
void device_watch_read(struct device_watch *w, struct str list_response);
