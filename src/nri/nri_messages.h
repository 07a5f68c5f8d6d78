#pragma once

/* NRI's messages as field tables for rpc/pb.h (docs/reference/nri.md#messages): only the fields
 * that are read or written here. The structs that handlers get are in nri.h; the structs here wrap
 * them as the wire format nests them. */

#include "nri.h"
#include "rpc/pb.h"

struct nri_register {
	const char *name, *index, *nri_version;
};

struct nri_configured {
	int32_t events;
};

struct nri_sync {
	struct nri_pod *pods;
	struct nri_container *containers;
	size_t n_pods, n_containers;
	bool more;
};

/* Every request about a pod or a container, and StateChange: which fields exist depends on the
 * table used. */
struct nri_call {
	int32_t event;
	struct nri_pod *pod;
	struct nri_container *container;
	struct nri_resources *resources; /* of UpdateContainer */
};

struct nri_linux_update {
	struct nri_resources *resources;
};

struct nri_update {
	const char *container_id;
	struct nri_linux_update *on_linux;
	bool ignore_failure;
};

struct nri_linux_adjustment {
	struct nri_resources *resources;
};

struct nri_adjustment {
	struct nri_pair *annotations, *env;
	size_t n_annotations, n_env;
	struct nri_linux_adjustment *on_linux;
};

/* The response to CreateContainer, UpdateContainer, StopContainer and Synchronize, and the request
 * UpdateContainers. */
struct nri_response {
	struct nri_adjustment *adjustment;
	struct nri_update *updates;
	size_t n_updates;
	bool more;
};

extern const struct pb_message nri_register_message;
extern const struct pb_message nri_runtime_message;
extern const struct pb_message nri_configured_message;
extern const struct pb_message nri_sync_message;
extern const struct pb_message nri_call_message;	 /* {pod 1, container 2, resources 3} */
extern const struct pb_message nri_pod_call_message;	 /* {pod 1} */
extern const struct pb_message nri_state_change_message; /* {event 1, pod 2, container 3} */
extern const struct pb_message nri_created_message;	 /* {adjust 1, update 2} */
extern const struct pb_message nri_updated_message;	 /* {update 1, more 2} */
