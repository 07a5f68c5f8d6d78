#pragma once

/* A partitioned cluster of one namespace and one node, and pods for it, as JSON texts; and changes
 * of objects there. For the tests of admission decisions. */

#include "admission/admission.h"
#include "admission_rows.h"

#define TARGET                                                                                     \
	"\"target.workload.openshift.io/"                                                          \
	"management\":\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\""
#define META(annotations)                                                                          \
	"\"metadata\":{\"name\":\"p\",\"namespace\":\"m\",\"annotations\":{" annotations "}}"
#define POD(annotations, containers)                                                               \
	"{\"kind\":\"Pod\"," META(annotations) ",\"spec\":{\"containers\":[" containers "]}}"
#define CONTAINER(requests, limits)                                                                \
	"{\"name\":\"c\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"
#define BURST CONTAINER("\"cpu\":\"1\",\"memory\":\"1\"", "")

static const char cluster_objects[] =
	"[{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":\"cluster\"},\"status\":{"
	"\"cpuPartitioning\":\"AllNodes\",\"controlPlaneTopology\":\"HighlyAvailable\"}},"
	"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"m\",\"annotations\":{"
	"\"workload.openshift.io/allowed\":\"management\"}}},"
	"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"old\",\"labels\":{"
	"\"workload.openshift.io/allowed\":\"management\"}}},"
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{"
	"\"openshift.io/shared-cpus\":\"4k\",\"management.workload.openshift.io/cores\":\"8k\"}}}]";

static inline void cluster(struct state_manifests *m, struct arena *a)
{
	struct err err = { 0 };
	yyjson_val *object;

	state_manifests_init(m, a);
	DOC_EACH_ITEM (row_doc(str_from(cluster_objects), a), object)
		CHECK_OK(state_manifests_add(m, object, &err));
	state_manifests_seal(m);
}

/* The same, with these nodes: "{...},{...}". */
static inline void cluster_of(const char *nodes, struct state_manifests *m, struct arena *a)
{
	struct err err = { 0 };
	yyjson_val *object;

	cluster(m, a);
	m->n_nodes = 0;
	DOC_EACH_ITEM (row_doc(str_printf(a, "[%s]", nodes), a), object)
		CHECK_OK(state_manifests_add(m, object, &err));
	state_manifests_seal(m);
}

static inline struct admission_result admitted(const struct admission_state *s, const char *pod,
					       struct arena *a, yyjson_val **ret)
{
	yyjson_val *object = row_doc(str_from(pod), a);
	struct admission_result result;
	struct err err = { 0 };

	CHECK_INT(admit_pod(s, object, a, &result), 0);
	CHECK_OK(patch_apply(&result.patch, object, a, ret, &err));
	return result;
}

struct change_row {
	const char *what, *subresource, *before, *after, *message; /* NULL: allowed */
};

static inline void check_change(const struct change_row *row, const char *group,
				const char *resource, struct arena *a)
{
	struct admission_request rq = {
		.operation = OPERATION_UPDATE,
		.group = str_from(group),
		.resource = str_from(resource),
		.subresource = str_from(row->subresource),
		.old_object = row_doc(str_from(row->before), a),
		.object = row_doc(str_from(row->after), a),
	};
	struct admission_result result;
	struct state_manifests m;

	TEST_ROW("%s", row->what);
	cluster(&m, a);
	CHECK_INT(admit_validate(&m.state, &rq, a, &result), 0);
	CHECK(result.allowed == !row->message);
	CHECK_STR(result.message, row->message);
	CHECK_UINT(result.code, row->message ? 422 : 0);
}
