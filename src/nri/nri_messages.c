/* Tables with the field numbers of NRI's api.proto. Numbers that are left out are fields that this
 * library does not read; pb_decode() skips them. A protobuf map is on the wire a list of pairs with
 * the key as field 1 and the value as field 2, so maps and lists of KeyValue share one table. */

#include "nri_messages.h"

static const struct pb_field pair_fields[] = {
	PB_FIELD(struct nri_pair, 1, PB_STRING, key),
	PB_FIELD(struct nri_pair, 2, PB_STRING, value),
};
static const struct pb_message pair_message = PB_TABLE(struct nri_pair, pair_fields);

/* nri.h includes no header of the project, so it has a struct of its own. */
_Static_assert(sizeof(struct nri_pair) == sizeof(struct pb_pair) &&
		       offsetof(struct nri_pair, value) == offsetof(struct pb_pair, value),
	       "a pair is a pair");

static const struct pb_field memory_fields[] = {
	PB_OPTIONAL(struct nri_memory, 1, PB_OPT_INT64, limit_bytes, has_limit),
};
static const struct pb_message memory_message = PB_TABLE(struct nri_memory, memory_fields);

static const struct pb_field cpu_fields[] = {
	PB_OPTIONAL(struct nri_cpu, 1, PB_OPT_UINT64, shares, has_shares),
	PB_OPTIONAL(struct nri_cpu, 2, PB_OPT_INT64, quota_us, has_quota),
	PB_OPTIONAL(struct nri_cpu, 3, PB_OPT_UINT64, period_us, has_period),
	PB_FIELD(struct nri_cpu, 6, PB_STRING, cpus),
	PB_FIELD(struct nri_cpu, 7, PB_STRING, mems),
};
static const struct pb_message cpu_message = PB_TABLE(struct nri_cpu, cpu_fields);

static const struct pb_field resources_fields[] = {
	PB_SUB(struct nri_resources, 1, memory, &memory_message),
	PB_SUB(struct nri_resources, 2, cpu, &cpu_message),
};
static const struct pb_message resources_message = PB_TABLE(struct nri_resources, resources_fields);

static const struct pb_field pod_linux_fields[] = {
	PB_SUB(struct nri_pod_linux, 2, pod_resources, &resources_message),
	PB_FIELD(struct nri_pod_linux, 3, PB_STRING, cgroup_parent),
	PB_FIELD(struct nri_pod_linux, 4, PB_STRING, cgroups_path),
};
static const struct pb_message pod_linux_message = PB_TABLE(struct nri_pod_linux, pod_linux_fields);

static const struct pb_field pod_fields[] = {
	PB_FIELD(struct nri_pod, 1, PB_STRING, id),
	PB_FIELD(struct nri_pod, 2, PB_STRING, name),
	PB_FIELD(struct nri_pod, 3, PB_STRING, uid),
	PB_FIELD(struct nri_pod, 4, PB_STRING, pod_namespace),
	PB_PAIRS(struct nri_pod, 5, labels, n_labels, label_bytes, &pair_message, NRI_POD_LABEL),
	PB_PAIRS(struct nri_pod, 6, annotations, n_annotations, annotation_bytes, &pair_message,
		 NRI_POD_ANNOTATION),
	PB_FIELD(struct nri_pod, 7, PB_STRING, runtime_handler),
	PB_SUB(struct nri_pod, 8, on_linux, &pod_linux_message),
	PB_FIELD(struct nri_pod, 9, PB_UINT32, pid),
};
static const struct pb_message pod_message = PB_TABLE(struct nri_pod, pod_fields);

static const struct pb_field container_linux_fields[] = {
	PB_SUB(struct nri_container_linux, 3, resources, &resources_message),
	PB_FIELD(struct nri_container_linux, 5, PB_STRING, cgroups_path),
};
static const struct pb_message container_linux_message =
	PB_TABLE(struct nri_container_linux, container_linux_fields);

static const struct pb_field container_fields[] = {
	PB_FIELD(struct nri_container, 1, PB_STRING, id),
	PB_FIELD(struct nri_container, 2, PB_STRING, pod_id),
	PB_FIELD(struct nri_container, 3, PB_STRING, name),
	PB_FIELD(struct nri_container, 4, PB_INT32, state),
	PB_PAIRS(struct nri_container, 5, labels, n_labels, label_bytes, &pair_message,
		 NRI_CONTAINER_LABEL),
	PB_PAIRS(struct nri_container, 6, annotations, n_annotations, annotation_bytes,
		 &pair_message, NRI_CONTAINER_ANNOTATION),
	PB_SUB(struct nri_container, 11, on_linux, &container_linux_message),
	PB_FIELD(struct nri_container, 12, PB_UINT32, pid),
};
static const struct pb_message container_message = PB_TABLE(struct nri_container, container_fields);

static const struct pb_field register_fields[] = {
	PB_FIELD(struct nri_register, 1, PB_STRING, name),
	PB_FIELD(struct nri_register, 2, PB_STRING, index),
	PB_FIELD(struct nri_register, 3, PB_STRING, nri_version),
};
const struct pb_message nri_register_message = PB_TABLE(struct nri_register, register_fields);

static const struct pb_field runtime_fields[] = {
	PB_FIELD(struct nri_runtime, 1, PB_STRING, config),
	PB_FIELD(struct nri_runtime, 2, PB_STRING, name),
	PB_FIELD(struct nri_runtime, 3, PB_STRING, version),
	PB_FIELD(struct nri_runtime, 4, PB_INT64, registration_timeout_ms),
	PB_FIELD(struct nri_runtime, 5, PB_INT64, request_timeout_ms),
	PB_FIELD(struct nri_runtime, 6, PB_STRING, nri_version),
};
const struct pb_message nri_runtime_message = PB_TABLE(struct nri_runtime, runtime_fields);

static const struct pb_field configured_fields[] = {
	PB_FIELD(struct nri_configured, 2, PB_INT32, events), /* there is no field 1 */
};
const struct pb_message nri_configured_message = PB_TABLE(struct nri_configured, configured_fields);

static const struct pb_field sync_fields[] = {
	PB_LIST(struct nri_sync, 1, pods, n_pods, &pod_message),
	PB_LIST(struct nri_sync, 2, containers, n_containers, &container_message),
	PB_FIELD(struct nri_sync, 3, PB_BOOL, more),
};
const struct pb_message nri_sync_message = PB_TABLE(struct nri_sync, sync_fields);

static const struct pb_field call_fields[] = {
	PB_SUB(struct nri_call, 1, pod, &pod_message),
	PB_SUB(struct nri_call, 2, container, &container_message),
	PB_SUB(struct nri_call, 3, resources, &resources_message),
};
const struct pb_message nri_call_message = PB_TABLE(struct nri_call, call_fields);

/* A table of its own: in calls about pods the fields 2 and 3 have other meanings than in calls
 * about containers. */
static const struct pb_field pod_call_fields[] = {
	PB_SUB(struct nri_call, 1, pod, &pod_message),
};
const struct pb_message nri_pod_call_message = PB_TABLE(struct nri_call, pod_call_fields);

static const struct pb_field state_change_fields[] = {
	PB_FIELD(struct nri_call, 1, PB_INT32, event),
	PB_SUB(struct nri_call, 2, pod, &pod_message),
	PB_SUB(struct nri_call, 3, container, &container_message),
};
const struct pb_message nri_state_change_message = PB_TABLE(struct nri_call, state_change_fields);

static const struct pb_field linux_update_fields[] = {
	PB_SUB(struct nri_linux_update, 1, resources, &resources_message),
};
static const struct pb_message linux_update_message =
	PB_TABLE(struct nri_linux_update, linux_update_fields);

static const struct pb_field update_fields[] = {
	PB_FIELD(struct nri_update, 1, PB_STRING, container_id),
	PB_SUB(struct nri_update, 2, on_linux, &linux_update_message),
	PB_FIELD(struct nri_update, 3, PB_BOOL, ignore_failure),
};
static const struct pb_message update_message = PB_TABLE(struct nri_update, update_fields);

static const struct pb_field linux_adjustment_fields[] = {
	PB_SUB(struct nri_linux_adjustment, 2, resources, &resources_message),
};
static const struct pb_message linux_adjustment_message =
	PB_TABLE(struct nri_linux_adjustment, linux_adjustment_fields);

static const struct pb_field adjustment_fields[] = {
	PB_LIST(struct nri_adjustment, 2, annotations, n_annotations, &pair_message),
	PB_LIST(struct nri_adjustment, 4, env, n_env, &pair_message),
	PB_SUB(struct nri_adjustment, 6, on_linux, &linux_adjustment_message),
};
static const struct pb_message adjustment_message =
	PB_TABLE(struct nri_adjustment, adjustment_fields);

static const struct pb_field created_fields[] = {
	PB_SUB(struct nri_response, 1, adjustment, &adjustment_message),
	PB_LIST(struct nri_response, 2, updates, n_updates, &update_message),
};
const struct pb_message nri_created_message = PB_TABLE(struct nri_response, created_fields);

static const struct pb_field updated_fields[] = {
	PB_LIST(struct nri_response, 1, updates, n_updates, &update_message),
	PB_FIELD(struct nri_response, 2, PB_BOOL, more),
};
const struct pb_message nri_updated_message = PB_TABLE(struct nri_response, updated_fields);
