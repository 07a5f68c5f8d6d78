#include "removal.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"

#define ADMISSION "admissionregistration.k8s.io/v1"
#define RBAC "rbac.authorization.k8s.io/v1"
#define FLOW_CONTROL "flowcontrol.apiserver.k8s.io/v1"
#define CRD "apiextensions.k8s.io/v1"

#define RELEASE_FLAG "--uninstall"

/* In the order in which they are deleted. A policy binding goes before its policy, and RBAC before
 * the policies that restrict the accounts. */
const struct removal_kind removal_kinds[] = {
	{ REMOVE_CONVERSION, ADMISSION, "mutatingwebhookconfigurations", "" },
	{ REMOVE_CONVERSION, ADMISSION, "validatingwebhookconfigurations", "" },
	{ REMOVE_CONVERSION, ADMISSION, "mutatingadmissionpolicybindings", "" },
	{ REMOVE_CONVERSION, ADMISSION, "mutatingadmissionpolicies", "" },
	{ REMOVE_CONVERSION, ADMISSION, "validatingadmissionpolicybindings", "" },
	{ REMOVE_CONVERSION, ADMISSION, "validatingadmissionpolicies", "" },
	{ REMOVE_CONTROLLERS, "apps/v1", "deployments", NAME_NAMESPACE_WEBHOOK },
	{ REMOVE_AGENTS, "apps/v1", "daemonsets", NAME_NAMESPACE_AGENT },
	{ REMOVE_PERMISSIONS, RBAC, "clusterrolebindings", "" },
	{ REMOVE_PERMISSIONS, RBAC, "clusterroles", "" },
	{ REMOVE_PERMISSIONS, RBAC, "rolebindings", NAME_PERMISSIONS_NAMESPACE },
	{ REMOVE_PERMISSIONS, RBAC, "roles", NAME_PERMISSIONS_NAMESPACE },
	{ REMOVE_PERMISSIONS, ADMISSION, "validatingadmissionpolicybindings", "" },
	{ REMOVE_PERMISSIONS, ADMISSION, "validatingadmissionpolicies", "" },
	{ REMOVE_PERMISSIONS, "v1", "configmaps", NAME_PERMISSIONS_NAMESPACE },
	{ REMOVE_PERMISSIONS, FLOW_CONTROL, "flowschemas", "" },
	{ REMOVE_PERMISSIONS, FLOW_CONTROL, "prioritylevelconfigurations", "" },
	{ REMOVE_NAMESPACES, "v1", "namespaces", "" },
	{ REMOVE_CRDS, CRD, "customresourcedefinitions", "" },
	{ REMOVE_CRDS_WITH_DATA, CRD, "customresourcedefinitions", "" },
	{ 0 },
};

/* Policies that restrict an account as long as it has permissions, or protect what agents trust.
 * The others are about pods. */
static bool is_restriction(struct str name)
{
	static const char *const names[] = { "pinfold-agent", "pinfold-webhook", "pinfold-operator",
					     "pinfold-permissions" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, str_from(names[i])))
			return true;
	return false;
}

static bool is_own_name(struct str name)
{
	return str_eq(name, STR("pinfold")) || str_starts(name, STR("pinfold-"));
}

static bool is_own_namespace(struct str name)
{
	return str_eq(name, STR(NAME_NAMESPACE_WEBHOOK)) || str_eq(name, STR(NAME_NAMESPACE_AGENT));
}

bool removal_takes(const struct removal_kind *kind, struct str name)
{
	const bool is_policy = str_starts(str_from(kind->resource), STR("validatingadmission"));

	switch (kind->step) {
	case REMOVE_CRDS:
		return str_eq(name, STR(NAME_PARTITION_RESOURCE ".pinfold.io"));
	case REMOVE_CRDS_WITH_DATA:
		return str_eq(name, STR(NAME_PROFILE_RESOURCE "." NAME_PROFILE_GROUP)) ||
		       str_eq(name, STR("infrastructures.config.openshift.io"));
	case REMOVE_NAMESPACES:
		return is_own_namespace(name);
	case REMOVE_CONVERSION:
		return is_own_name(name) && !(is_policy && is_restriction(name));
	case REMOVE_PERMISSIONS:
		return is_own_name(name) && (!is_policy || is_restriction(name));
	default:
		return is_own_name(name);
	}
}

static bool counts_in_pool(struct str resource)
{
	return str_ends(resource, STR(NAME_CORES_SUFFIX)) ||
	       str_eq(resource, STR(NAME_SHARED_CPUS)) ||
	       str_eq(resource, STR(NAME_GUARANTEED_CPUS));
}

bool pod_is_partitioned(yyjson_val *object)
{
	struct pod pod = { .spec = doc_get(object, STR("spec")) };
	struct container_iter it = container_iter(&pod, false);
	struct container c;

	while (container_next(&it, &c)) {
		yyjson_val *key, *value;

		DOC_EACH_PAIR (c.requests, key, value) {
			(void)value;
			if (counts_in_pool(doc_str(key)))
				return true;
		}
	}
	return false;
}

bool pod_waits_for_node(yyjson_val *object)
{
	return !doc_str(doc_find(object, "/spec/nodeName")).n &&
	       str_eq(doc_str(doc_find(object, "/status/phase")), STR("Pending")) &&
	       !doc_find(object, "/metadata/deletionTimestamp") && pod_is_partitioned(object);
}

bool pod_has_controller(yyjson_val *object)
{
	yyjson_val *owner;

	DOC_EACH_ITEM (doc_find(object, "/metadata/ownerReferences"), owner)
		if (doc_bool(doc_get(owner, STR("controller")), false))
			return true;
	return false;
}

static bool has_flag(yyjson_val *args)
{
	yyjson_val *arg;

	DOC_EACH_ITEM (args, arg)
		if (str_eq(doc_str(arg), STR(RELEASE_FLAG)))
			return true;
	return false;
}

/* The probes would end the container while it works, and all nodes do it at once: the agents do not
 * run afterwards. */
int agents_release_patch(yyjson_val *daemonset, struct arena *a, struct str *ret_body,
			 struct err *err)
{
	yyjson_val *old = doc_find(daemonset, "/spec/template/spec/containers/0");
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *spec, *update, *container, *args;
	yyjson_val *old_args = doc_get(old, STR("args"));
	int r;

	if (has_flag(old_args))
		return 0;
	spec = doc_put_obj(m, root, STR("spec"));
	update = doc_put_obj(m, spec, STR("updateStrategy"));
	doc_put_str(m, update, STR("type"), STR("RollingUpdate"));
	doc_put_str(m, doc_put_obj(m, update, STR("rollingUpdate")), STR("maxUnavailable"),
		    STR("100%"));
	container = yyjson_mut_arr_add_obj(
		m,
		doc_put_arr(m, doc_put_obj(m, doc_put_obj(m, spec, STR("template")), STR("spec")),
			    STR("containers")));
	doc_put_str(m, container, STR("name"), doc_str(doc_get(old, STR("name"))));
	args = old_args ? yyjson_val_mut_copy(m, old_args) : yyjson_mut_arr(m);
	(void)yyjson_mut_arr_append(args, doc_new_str(m, STR(RELEASE_FLAG)));
	doc_put(m, container, STR("args"), args);
	doc_put(m, container, STR("livenessProbe"), yyjson_mut_null(m));
	doc_put(m, container, STR("readinessProbe"), yyjson_mut_null(m));
	r = doc_write(root, false, a, ret_body, err);
	return r < 0 ? r : 1;
}

static bool ended_well(yyjson_val *state)
{
	yyjson_val *terminated = doc_get(state, STR("terminated"));
	int64_t code = -1;

	return doc_int(doc_get(terminated, STR("exitCode")), &code) && code == 0;
}

/* The kubelet starts the container again and again; every run does the same. */
bool agent_has_released(yyjson_val *pod)
{
	yyjson_val *status = doc_find(pod, "/status/containerStatuses/0");

	return has_flag(doc_find(pod, "/spec/containers/0/args")) &&
	       (ended_well(doc_get(status, STR("state"))) ||
		ended_well(doc_get(status, STR("lastState"))));
}
