#pragma once

/* The NUMA nodes of devices, from the kubelet's List response of the PodResources API. Decodes;
 * the request is kubelet_client.h. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

/* The devices of one container. */
struct device_nodes {
	const char *namespace, *pod, *container;
	uint64_t mask; /* bit = node id; ids from 64 on are left out */
};

/* Only containers with devices whose nodes the kubelet knows; in `a`. */
int device_nodes_read(struct str list_response, struct arena *a, struct device_nodes **ret,
		      size_t *ret_n, struct err *err);
