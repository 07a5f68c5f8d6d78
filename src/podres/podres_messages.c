/* Field numbers of api.proto (docs/reference/podresources.md#messages). With PB_OTHERS a field
 * without a row is kept in `rest` as encoded bytes and written again after the known fields:
 * devices and fields of newer kubelets survive decoding and encoding. */

#include "podres_messages.h"

/* clang-format off */
static const struct pb_field container_fields[] = {
	PB_FIELD(struct podres_container_resources, 1, PB_STRING, name),
	PB_NUMBERS(struct podres_container_resources, 3, cpu_ids, n_cpu_ids),
	PB_OTHERS(struct podres_container_resources, rest),
};
static const struct pb_message container_message =
	PB_TABLE(struct podres_container_resources, container_fields);

static const struct pb_field pod_fields[] = {
	PB_FIELD(struct podres_pod_resources, 1, PB_STRING, name),
	PB_FIELD(struct podres_pod_resources, 2, PB_STRING, namespace),
	PB_LIST(struct podres_pod_resources, 3, containers, n_containers, &container_message),
	PB_OTHERS(struct podres_pod_resources, rest),
};
static const struct pb_message pod_message = PB_TABLE(struct podres_pod_resources, pod_fields);

static const struct pb_field list_response_fields[] = {
	PB_LIST(struct podres_list_response, 1, pods, n_pods, &pod_message),
};
const struct pb_message podres_list_response_message =
	PB_TABLE(struct podres_list_response, list_response_fields);

static const struct pb_field get_request_fields[] = {
	PB_FIELD(struct podres_get_request, 1, PB_STRING, name),
	PB_FIELD(struct podres_get_request, 2, PB_STRING, namespace),
};
const struct pb_message podres_get_request_message =
	PB_TABLE(struct podres_get_request, get_request_fields);

static const struct pb_field get_response_fields[] = {
	PB_SUB(struct podres_get_response, 1, pod, &pod_message),
};
const struct pb_message podres_get_response_message =
	PB_TABLE(struct podres_get_response, get_response_fields);

static const struct pb_field allocatable_response_fields[] = {
	PB_NUMBERS(struct podres_allocatable_response, 2, cpu_ids, n_cpu_ids),
	PB_OTHERS(struct podres_allocatable_response, rest),
};
const struct pb_message podres_allocatable_response_message =
	PB_TABLE(struct podres_allocatable_response, allocatable_response_fields);
