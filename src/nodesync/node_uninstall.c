/* `pinfold agent --uninstall` and `pinfold uninstall`: remove what an agent wrote from its Node, in
 * at most three requests, and its NodePartition. */

#include "node_uninstall.h"

#include <errno.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "cluster/object_path.h"
#include "kube/names.h"
#include "node_plan.h"
#include "node_sync.h"

static int patch(struct api_sync *s, const char *type, struct str path, struct str body,
		 struct arena *a, yyjson_val **ret, struct err *err)
{
	return api_sync_call(
		s,
		&(struct api_request){
			.method = "PATCH", .path = path, .content_type = type, .body = body },
		a, ret, err);
}

/* The status first, then the taint: pods must not be scheduled to a Node whose CPUs are no longer
 * accounted for. */
static int clean(struct api_sync *s, struct str name, yyjson_val *node, struct arena *a,
		 struct err *err)
{
	struct node_observed observed;
	struct str body;
	int r;

	node_observed_of(node, &observed);
	r = node_plan_removal(&observed, a, &body, err);
	if (r > 0) {
		r = patch(s, API_PATCH_STRATEGIC, node_path(name, STR("status"), a), body, a, &node,
			  err);
		if (r >= 0)
			node_observed_of(node, &observed);
	}
	if (r >= 0)
		r = node_plan_taint(&observed, NODE_TAINT_REMOVE, a, &body, err);
	if (r > 0)
		r = patch(s, API_PATCH_JSON, node_path(name, STR(""), a), body, a, &node, err);
	return r;
}

int node_clean(struct api_sync *s, struct str name, struct arena *a, struct err *err)
{
	yyjson_val *node;
	int r = api_sync_get(s, node_path(name, STR(""), a), a, &node, err);

	if (r >= 0)
		r = clean(s, name, node, a, err);
	if (r == -ENOENT) /* the Node is gone, and with it everything that was written */
		return 0;
	return r < 0 ? err_wrap(err, "Node " PRI_STR, FMT_STR(name)) : 0;
}

/* The object does not matter to a scheduler, so it may stay: it goes with the Node. */
static void delete_partition(struct api_sync *s, struct str name, struct arena *a)
{
	const struct object_ref ref = { .api = STR(NAME_PARTITION_API),
					.resource = STR(NAME_PARTITION_RESOURCE),
					.name = name };
	struct err err = { 0 };
	yyjson_val *deleted;
	int r = api_sync_call(
		s, &(struct api_request){ .method = "DELETE", .path = object_path(&ref, a) }, a,
		&deleted, &err);

	if (r < 0 && r != -ENOENT)
		log_warning("cannot delete the NodePartition, leaving it", LOG_ERR(&err));
}

int node_sync_uninstall(const struct node_sync_config *config, struct err *err)
{
	CLEANUP(arena_done) struct arena a; /* after the connection, which uses the kubeconfig */
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	struct kubeconfig kubeconfig;
	struct str name;
	int r;

	arena_init(&a, 0);
	if (config->is_off)
		return 0;
	r = node_connection_find(config, &a, &kubeconfig, &name, err);
	if (r == -ENOENT && !config->kubeconfig)
		return 0; /* without a cluster there is no Node */
	if (r == 0)
		r = api_sync_open(&s, &kubeconfig, "pinfold-agent", &a, err);
	if (r == 0)
		r = node_clean(&s, name, &a, err);
	if (r == 0)
		delete_partition(&s, name, &a);
	return r;
}
