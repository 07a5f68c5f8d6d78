/* A field is a path of keys. "[]" goes into the items of an array; a field whose key ends in "!own"
 * is an object of which only own keys are kept. What a field names is kept as a whole. */

#include "object_trim.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "names.h"

#define PATH_MAX_BYTES 128 /* longer than every field in the tables */

#define METADATA                                                                                   \
	"metadata.name", "metadata.namespace", "metadata.uid", "metadata.generation",              \
		"metadata.creationTimestamp", "metadata.deletionTimestamp",                        \
		"metadata.annotations!own"

static const char *const node_fields[] = {
	METADATA,
	"metadata.labels",
	"spec.taints",
	"spec.unschedulable",
	"status.capacity",
	"status.allocatable",
	"status.conditions",
	"status.nodeInfo",
	NULL,
};

static const char *const whole_fields[] = {
	METADATA, "metadata.labels", "metadata.ownerReferences", "spec", "status", NULL,
};

static const char *const infrastructure_fields[] = {
	METADATA,
	"spec.cpuPartitioning",
	"status.controlPlaneTopology",
	"status.infrastructureTopology",
	"status.cpuPartitioning",
	NULL,
};

static const char *const gate_fields[] = { METADATA, "spec", NULL };

static const char *const namespace_fields[] = { METADATA, "metadata.labels!own", "status.phase",
						NULL };

static const char *const pod_fields[] = {
	METADATA,
	"metadata.labels!own",
	"metadata.ownerReferences[].kind",
	"metadata.ownerReferences[].name",
	"spec.nodeName",
	"spec.resources",
	"spec.overhead",
	"spec.runtimeClassName",
	"spec.priorityClassName",
	"spec.initContainers[].name",
	"spec.initContainers[].resources",
	"spec.initContainers[].restartPolicy",
	"spec.containers[].name",
	"spec.containers[].resources",
	"spec.ephemeralContainers[].name",
	"status.phase",
	"status.qosClass",
	"status.reason",
	"status.startTime",
	"status.initContainerStatuses[].name",
	"status.initContainerStatuses[].restartCount",
	"status.initContainerStatuses[].containerID",
	"status.containerStatuses[].name",
	"status.containerStatuses[].restartCount",
	"status.containerStatuses[].containerID",
	"status.containerStatuses[].state",
	"status.containerStatuses[].resources",
	NULL,
};

static const char *const pool_fields[] = {
	METADATA,
	"metadata.labels",
	"spec.machineConfigSelector",
	"spec.nodeSelector",
	"spec.paused",
	NULL,
};

static const char *const workload_fields[] = {
	METADATA,
	"metadata.labels",
	"spec.replicas",
	"spec.selector",
	"spec.template.metadata.labels",
	"spec.template.spec.nodeSelector",
	"spec.template.spec.tolerations",
	"spec.template.spec.hostNetwork",
	"spec.template.spec.priorityClassName",
	"spec.template.spec.serviceAccountName",
	"spec.template.spec.containers[].name",
	"spec.template.spec.containers[].image",
	"spec.template.spec.containers[].args",
	"spec.template.spec.containers[].resources",
	"spec.template.spec.containers[].env[].name",
	"status",
	NULL,
};

static const char *const event_fields[] = {
	METADATA,
	"involvedObject",
	"reason",
	"message",
	"type",
	"count",
	"firstTimestamp",
	"lastTimestamp",
	"eventTime",
	"source",
	"reportingComponent",
	"reportingInstance",
	NULL,
};

const struct trimmed_kind trimmed_kinds[] = {
	{ NAME_INFRASTRUCTURE_KIND, NAME_CONFIG_API, "/apis/" NAME_CONFIG_API "/infrastructures",
	  "infrastructures", infrastructure_fields },
	{ NAME_FEATURE_GATE_KIND, NAME_CONFIG_API, "/apis/" NAME_CONFIG_API "/featuregates",
	  "featuregates", gate_fields },
	{ NAME_PROFILE_KIND, NAME_PROFILE_API, "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE,
	  NAME_PROFILE_RESOURCE, whole_fields },
	{ NAME_POOL_KIND, NAME_MACHINE_API, "/apis/" NAME_MACHINE_API "/machineconfigpools",
	  "machineconfigpools", pool_fields },
	{ "Node", "v1", "/api/v1/nodes", "nodes", node_fields },
	{ NAME_PARTITION_KIND, NAME_PARTITION_API,
	  "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE, NAME_PARTITION_RESOURCE,
	  whole_fields },
	{ "Deployment", "apps/v1", "/apis/apps/v1/deployments", "deployments", workload_fields },
	{ "DaemonSet", "apps/v1", "/apis/apps/v1/daemonsets", "daemonsets", workload_fields },
	{ "Event", "v1", "/api/v1/events", "events", event_fields },
	{ "Namespace", "v1", "/api/v1/namespaces", "namespaces", namespace_fields },
	{ "Pod", "v1", "/api/v1/pods", "pods", pod_fields },
	{ 0 },
};

bool object_trim_is_own_key(struct str key)
{
	static const char *const exact[] = { NAME_CONFIG_SOURCE, NAME_CONFIG_MIRROR,
					     NAME_DEBUG_SOURCE, NAME_LEGACY_MANAGEMENT,
					     NAME_KUBELET_EXPERIMENTAL };

	if (str_starts(key, STR(NAME_OWN_PREFIX)) ||
	    str_starts(key, STR(NAME_PROFILE_ANNOTATION)) ||
	    str_has(key, STR("workload.openshift.io/")) ||
	    str_has(key, STR(NAME_REQUIRED_PLUGINS)) || str_has(key, STR(NAME_TOLERATE_PLUGINS)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(exact); i++)
		if (str_eq(key, str_from(exact[i])))
			return true;
	return false;
}

enum keeping { KEEP_NOTHING, KEEP_PARTS, KEEP_OWN, KEEP_ALL };

static enum keeping keeping_of(const char *const *fields, struct str path)
{
	enum keeping best = KEEP_NOTHING;

	for (; *fields; fields++) {
		const struct str field = str_from(*fields);
		const char next = field.n > path.n ? field.p[path.n] : '\0';

		if (!str_starts(field, path))
			continue;
		if (next == '\0')
			return KEEP_ALL;
		if (next == '!')
			best = KEEP_OWN;
		else if ((next == '.' || next == '[') && best == KEEP_NOTHING)
			best = KEEP_PARTS;
	}
	return best;
}

static yyjson_mut_val *copy_own(yyjson_val *object, yyjson_mut_doc *m)
{
	yyjson_mut_val *out = yyjson_mut_obj(m);
	yyjson_val *key, *value;

	DOC_EACH_PAIR (object, key, value)
		if (object_trim_is_own_key(doc_str(key)))
			doc_put(m, out, doc_str(key), yyjson_val_mut_copy(m, value));
	return out;
}

static yyjson_mut_val *copy_parts(const char *const *fields, struct str path, yyjson_val *v,
				  yyjson_mut_doc *m, yyjson_mut_val *out);

static yyjson_mut_val *copy_items(const char *const *fields, struct str path, yyjson_val *v,
				  yyjson_mut_doc *m)
{
	yyjson_mut_val *out = yyjson_mut_arr(m);
	char below[PATH_MAX_BYTES];
	yyjson_val *item;

	if (path.n + 2 > sizeof(below))
		return out;
	memcpy(below, path.p, path.n);
	memcpy(below + path.n, "[]", 2);
	DOC_EACH_ITEM (v, item)
		yyjson_mut_arr_append(out, copy_parts(fields, (struct str){ below, path.n + 2 },
						      item, m, yyjson_mut_obj(m)));
	return out;
}

static yyjson_mut_val *copy_field(const char *const *fields, struct str path, yyjson_val *value,
				  yyjson_mut_doc *m)
{
	switch (keeping_of(fields, path)) {
	case KEEP_ALL:
		return yyjson_val_mut_copy(m, value);
	case KEEP_OWN:
		return copy_own(value, m);
	case KEEP_PARTS:
		if (yyjson_is_arr(value))
			return copy_items(fields, path, value, m);
		return copy_parts(fields, path, value, m, yyjson_mut_obj(m));
	case KEEP_NOTHING:
		break;
	}
	return NULL;
}

/* The depth is that of the longest field: a deeper object is not followed. */
static yyjson_mut_val *copy_parts(const char *const *fields, struct str path, yyjson_val *v,
				  yyjson_mut_doc *m, yyjson_mut_val *out)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (v, key, value) {
		const struct str name = doc_str(key);
		char below[PATH_MAX_BYTES];
		yyjson_mut_val *copy;
		size_t n = path.n;

		if (path.n + 1 + name.n > sizeof(below))
			continue;
		memcpy(below, path.p, path.n);
		if (n)
			below[n++] = '.';
		memcpy(below + n, name.p, name.n);
		copy = copy_field(fields, (struct str){ below, n + name.n }, value, m);
		if (copy)
			doc_put(m, out, name, copy);
	}
	return out;
}

yyjson_mut_val *object_trim(const struct trimmed_kind *kind, yyjson_val *object, yyjson_mut_doc *m)
{
	yyjson_mut_val *out = yyjson_mut_obj(m);

	doc_put_str(m, out, STR("apiVersion"), str_from(kind->api));
	doc_put_str(m, out, STR("kind"), str_from(kind->kind));
	return copy_parts(kind->kept, STR(""), object, m, out);
}
