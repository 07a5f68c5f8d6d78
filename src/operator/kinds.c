/* Objects are much larger than what the operator needs of them: a Node lists the images on the
 * node, and managedFields are often half of an object. */

#include "kinds.h"

#include "base/arena.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"

static void copy_member(yyjson_mut_doc *m, yyjson_mut_val *to, yyjson_val *from, struct str key)
{
	yyjson_val *value = doc_get(from, key);

	if (value)
		doc_put(m, to, key, yyjson_val_mut_copy(m, value));
}

static yyjson_mut_val *keep_metadata(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	yyjson_mut_val *kept = doc_put_obj(m, to, STR("metadata"));

	copy_member(m, kept, meta, STR("name"));
	copy_member(m, kept, meta, STR("namespace"));
	copy_member(m, kept, meta, STR("uid"));
	copy_member(m, kept, meta, STR("creationTimestamp"));
	copy_member(m, kept, meta, STR("deletionTimestamp"));
	return kept;
}

/* Profiles are few, and their whole spec matters. */
static void keep_profile(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	yyjson_mut_val *kept = keep_metadata(object, m, to);

	copy_member(m, kept, meta, STR("generation"));
	copy_member(m, kept, meta, STR("annotations"));
	copy_member(m, kept, meta, STR("labels"));
	copy_member(m, kept, meta, STR("finalizers"));
	copy_member(m, kept, meta, STR("ownerReferences"));
	copy_member(m, to, object, STR("spec"));
	copy_member(m, to, object, STR("status"));
}

/* Use and counters change all the time and decide nothing. */
static void keep_partition(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *status = doc_get(object, STR("status"));
	yyjson_mut_val *kept = keep_metadata(object, m, to);

	copy_member(m, kept, doc_get(object, STR("metadata")), STR("generation"));
	copy_member(m, to, object, STR("spec"));
	if (!status)
		return;
	kept = doc_put_obj(m, to, STR("status"));
	copy_member(m, kept, status, STR("agentVersion"));
	copy_member(m, kept, status, STR("observedGeneration"));
	copy_member(m, kept, status, STR("source"));
	copy_member(m, kept, status, STR("profile"));
	copy_member(m, kept, status, STR("cpus"));
	copy_member(m, kept, status, STR("pending"));
	copy_member(m, kept, status, STR("conditions"));
}

static void keep_own_annotations(yyjson_val *meta, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_mut_val *kept = NULL;
	yyjson_val *key, *value;

	DOC_EACH_PAIR (doc_get(meta, STR("annotations")), key, value) {
		if (!str_starts(doc_str(key), STR(NAME_OWN_PREFIX)))
			continue;
		if (!kept)
			kept = doc_put_obj(m, to, STR("annotations"));
		doc_put_str(m, kept, doc_str(key), doc_str(value));
	}
}

/* Only the resources that Pinfold adds; an empty list says that the node reports others. */
static void keep_own_resources(yyjson_val *status, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_mut_val *kept;
	yyjson_val *key, *value;

	if (!doc_get(status, STR("allocatable")) && !doc_get(status, STR("capacity")))
		return;
	kept = doc_put_obj(m, to, STR("allocatable"));
	DOC_EACH_PAIR (doc_get(status, STR("allocatable")), key, value)
		if (str_ends(doc_str(key), STR(NAME_CORES)) ||
		    str_eq(doc_str(key), STR(NAME_SHARED_CPUS)) ||
		    str_eq(doc_str(key), STR(NAME_GUARANTEED_CPUS)))
			doc_put_str(m, kept, doc_str(key), doc_text(value));
}

static void keep_node(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *meta = doc_get(object, STR("metadata")),
		   *status = doc_get(object, STR("status"));
	yyjson_val *ready = object_condition(object, STR("Ready"));
	yyjson_mut_val *kept = keep_metadata(object, m, to);

	copy_member(m, kept, meta, STR("labels"));
	keep_own_annotations(meta, m, kept);
	kept = doc_put_obj(m, to, STR("spec"));
	copy_member(m, kept, doc_get(object, STR("spec")), STR("unschedulable"));
	copy_member(m, kept, doc_get(object, STR("spec")), STR("taints"));
	kept = doc_put_obj(m, to, STR("status"));
	keep_own_resources(status, m, kept);
	if (ready)
		doc_put_str(m, kept, STR("ready"), doc_str(doc_get(ready, STR("status"))));
}

int64_t operator_agent_seen_s(yyjson_val *object)
{
	yyjson_val *condition = object_condition(object, STR(NAME_CONDITION_READY));
	int64_t seen_s = 0;

	(void)object_time_read(doc_str(doc_get(condition, STR("lastHeartbeatTime"))), &seen_s);
	return seen_s;
}

static void keep_infrastructure(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *status = doc_get(object, STR("status"));
	yyjson_mut_val *kept;

	(void)keep_metadata(object, m, to);
	if (!status) /* while the cluster is installed */
		return;
	kept = doc_put_obj(m, to, STR("status"));
	copy_member(m, kept, status, STR(NAME_PARTITIONING_KEY));
	copy_member(m, kept, status, STR(NAME_TOPOLOGY_KEY));
}

/* Most namespaces allow nothing. */
static bool allows_a_type(yyjson_val *object)
{
	return doc_get(object_annotations(object), STR(NAME_ALLOWED)) != NULL;
}

static void keep_namespace(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_mut_val *kept = doc_put_obj(m, to, STR("metadata"));

	copy_member(m, kept, doc_get(object, STR("metadata")), STR("name"));
	kept = doc_put_obj(m, kept, STR("annotations"));
	copy_member(m, kept, object_annotations(object), STR(NAME_ALLOWED));
}

static void keep_digest(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	keep_own_annotations(doc_get(object, STR("metadata")), m, keep_metadata(object, m, to));
	copy_member(m, to, object, STR("data"));
}

bool operator_object_is_own(yyjson_val *object)
{
	return str_eq(doc_str(doc_get(doc_find(object, "/metadata/labels"), STR(NAME_MANAGED_BY))),
		      STR(NAME_FIELD_MANAGER));
}

/* What the operator applied is compared as a whole. */
static void keep_applied(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	yyjson_mut_val *kept = keep_metadata(object, m, to);

	copy_member(m, kept, meta, STR("labels"));
	copy_member(m, kept, meta, STR("annotations"));
	copy_member(m, kept, meta, STR("ownerReferences"));
	copy_member(m, to, object, STR("spec"));
	copy_member(m, to, object, STR("handler")); /* of a RuntimeClass, like the next */
	copy_member(m, to, object, STR("scheduling"));
}

static void keep_pool(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_mut_val *kept = keep_metadata(object, m, to);

	copy_member(m, kept, doc_get(object, STR("metadata")), STR("labels"));
	kept = doc_put_obj(m, to, STR("spec"));
	copy_member(m, kept, doc_get(object, STR("spec")), STR("nodeSelector"));
}

/* Of the MachineConfigs of others the paths of their files tell whether they partition a node. */
static void keep_machine_config(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_mut_val *kept, *files;
	yyjson_val *file;

	if (operator_object_is_own(object)) {
		keep_applied(object, m, to);
		return;
	}
	kept = keep_metadata(object, m, to);
	copy_member(m, kept, doc_get(object, STR("metadata")), STR("labels"));
	kept = doc_put_obj(m, doc_put_obj(m, to, STR("spec")), STR("config"));
	files = doc_put_arr(m, doc_put_obj(m, kept, STR("storage")), STR("files"));
	DOC_EACH_ITEM (doc_find(object, "/spec/config/storage/files"), file) {
		yyjson_mut_val *copy = yyjson_mut_arr_add_obj(m, files);

		copy_member(m, copy, file, STR("path"));
	}
}

/* The Machine Config Operator merges all MachineConfigs of a pool into large ones of its own. */
static bool is_source_config(yyjson_val *object)
{
	return !str_starts(object_name(object), STR("rendered-"));
}

#define OWN_SELECTOR "labelSelector=app.kubernetes.io%2Fmanaged-by%3D" NAME_FIELD_MANAGER

/* The page sizes keep the memory for one response below a few MiB. */
const struct operator_kind_info operator_kinds[OPERATOR_KIND__COUNT] = {
	[OPERATOR_PROFILES] = { .name = NAME_PROFILE_KIND,
				.watch = { .path = "/apis/" NAME_PROFILE_API "/performanceprofiles",
					   .may_be_absent = true,
					   .page = 50,
					   .frees_memory = true },
				.keep = keep_profile },
	[OPERATOR_PARTITIONS] = { .name = NAME_PARTITION_KIND,
				  .watch = { .path = "/apis/" NAME_PARTITION_API
						     "/" NAME_PARTITION_RESOURCE,
					     .may_be_absent = true,
					     .page = 100,
					     .frees_memory = true },
				  .keep = keep_partition },
	[OPERATOR_NODES] = { .name = "Node",
			     .watch = { .path = "/api/v1/nodes", .page = 50, .frees_memory = true },
			     .keep = keep_node },
	[OPERATOR_INFRASTRUCTURES] = { .name = NAME_INFRASTRUCTURE_KIND,
				       .watch = { .path = "/apis/" NAME_CONFIG_API
							  "/infrastructures",
						  .may_be_absent = true,
						  .page = 10,
						  .frees_memory = true },
				       .keep = keep_infrastructure },
	[OPERATOR_NAMESPACES] = { .name = "Namespace",
				  .watch = { .path = "/api/v1/namespaces",
					     .only_metadata = true,
					     .page = 100,
					     .frees_memory = true },
				  .keep = keep_namespace,
				  .is_wanted = allows_a_type },
	[OPERATOR_DIGEST] = { .name = "ConfigMap",
			      .watch = { .path = "/api/v1/namespaces/" NAME_PERMISSIONS_NAMESPACE
						 "/configmaps",
					 .selector =
						 "fieldSelector=metadata.name%3D" NAME_PERMISSIONS,
					 .page = 1,
					 .frees_memory = true },
			      .keep = keep_digest },
	[OPERATOR_PARAMETERS] = { .name = "ConfigMap/" NAME_PARAMETERS,
				  .watch = { .path = "/api/v1/"
						     "namespaces/" NAME_PERMISSIONS_NAMESPACE
						     "/configmaps",
					     .selector = "fieldSelector=metadata.name%"
							 "3D" NAME_PARAMETERS,
					     .page = 1,
					     .frees_memory = true },
				  .keep = keep_digest },
	[OPERATOR_MACHINE_POOLS] = { .name = NAME_POOL_KIND,
				     .watch = { .path = "/apis/" NAME_MACHINE_API
							"/machineconfigpools",
						.may_be_absent = true,
						.page = 20,
						.frees_memory = true },
				     .keep = keep_pool,
				     .is_openshift = true },
	[OPERATOR_MACHINE_CONFIGS] = { .name = NAME_MACHINE_CONFIG_KIND,
				       .watch = { .path = "/apis/" NAME_MACHINE_API
							  "/machineconfigs",
						  .may_be_absent = true,
						  .page = 5, /* rendered ones have up to 500 KiB */
						  .frees_memory = true },
				       .keep = keep_machine_config,
				       is_source_config,
				       .is_openshift = true },
	[OPERATOR_KUBELET_CONFIGS] = { .name = NAME_KUBELET_CONFIG_KIND,
				       .watch = { .path = "/apis/" NAME_MACHINE_API
							  "/kubeletconfigs",
						  .selector = OWN_SELECTOR,
						  .may_be_absent = true,
						  .page = 20,
						  .frees_memory = true },
				       .keep = keep_applied,
				       .is_openshift = true },
	[OPERATOR_TUNEDS] = { .name = "Tuned",
			      .watch = { .path = "/apis/" NAME_TUNED_API
						 "/namespaces/" NAME_TUNED_NAMESPACE "/tuneds",
					 .selector = OWN_SELECTOR,
					 .may_be_absent = true,
					 .page = 20,
					 .frees_memory = true },
			      .keep = keep_applied,
			      .is_openshift = true },
	[OPERATOR_RUNTIME_CLASSES] = { .name = "RuntimeClass",
				       .watch = { .path = "/apis/node.k8s.io/v1/runtimeclasses",
						  .selector = OWN_SELECTOR,
						  .page = 20,
						  .frees_memory = true },
				       .keep = keep_applied,
				       .is_openshift = true },
	[OPERATOR_NODE_PODS] = { .name = "Pod" },
};

struct str operator_object_key(yyjson_val *object, struct arena *a)
{
	struct str namespace = doc_str(doc_find(object, "/metadata/namespace"));
	struct str name = doc_str(doc_find(object, "/metadata/name"));

	if (!namespace.n)
		return name;
	return str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(namespace), FMT_STR(name));
}

int operator_object_trim(enum operator_kind kind, yyjson_val *object, struct arena *a,
			 struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *to = yyjson_mut_obj(m);

	operator_kinds[kind].keep(object, m, to);
	return doc_write(to, false, a, ret, err);
}
