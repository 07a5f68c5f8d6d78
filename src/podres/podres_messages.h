#pragma once

/* The messages of the PodResources API v1 (docs/reference/podresources.md#messages): only fields
 * that are read or changed are named. Devices, memory, dynamic resources and fields of newer
 * kubelets are passed on unchanged (`rest`). */

#include <stddef.h>
#include <stdint.h>

#include "rpc/pb.h"

#define PODRES_LIST "/v1.PodResourcesLister/List"
#define PODRES_GET "/v1.PodResourcesLister/Get"
#define PODRES_ALLOCATABLE "/v1.PodResourcesLister/GetAllocatableResources"

struct podres_container_resources {
	const char *name;
	int64_t *cpu_ids;
	size_t n_cpu_ids;
	struct str rest;
};

struct podres_pod_resources {
	const char *name, *namespace;
	struct podres_container_resources *containers;
	size_t n_containers;
	struct str rest;
};

struct podres_list_response {
	struct podres_pod_resources *pods;
	size_t n_pods;
};

struct podres_get_request {
	const char *name, *namespace;
};

struct podres_get_response {
	struct podres_pod_resources *pod;
};

struct podres_allocatable_response {
	int64_t *cpu_ids;
	size_t n_cpu_ids;
	struct str rest;
};

extern const struct pb_message podres_list_response_message;
extern const struct pb_message podres_get_request_message;
extern const struct pb_message podres_get_response_message;
extern const struct pb_message podres_allocatable_response_message;
