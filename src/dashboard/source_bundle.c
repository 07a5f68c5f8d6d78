#include "source_bundle.h"

#include <errno.h>

#include "admission/admission_state.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle/saved_bundle.h"
#include "cpu/topology_read.h"
#include "kube/manifest.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "source_cluster.h"
#include "source_machine.h"

static void put_pod(struct shown_state *state, yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;
	struct shown_pod pod;

	arena_init(&a, 0);
	if (source_pod_of(object, &a, &pod) && !str_eq(pod.state, STR("Succeeded")) &&
	    !str_eq(pod.state, STR("Failed")))
		shown_state_put_pod(state, &pod);
}

/* A NodePartition that cannot be read is a finding of its node. */
static void put_object(struct shown_state *state, yyjson_val *object)
{
	const struct str kind = object_kind(object);

	if (str_eq(kind, STR("Node")))
		shown_state_put_node(state, object);
	else if (str_eq(kind, STR(NAME_PARTITION_KIND)))
		(void)shown_state_put_partition(state, object, NULL);
	else if (str_eq(kind, STR(NAME_PROFILE_KIND)))
		shown_state_put_profile(state, object);
	else if (str_eq(kind, STR("Pod")))
		put_pod(state, object);
	else if (str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND)))
		state->is_partitioned = infrastructure_status_of(object).is_partitioned;
}

/* A bundle without objects has the agents' statuses. */
static int put_machine(const struct saved_bundle *b, struct str node, struct shown_state *state,
		       struct arena *a, struct err *err)
{
	struct topology topology;
	struct doc doc;
	struct str text;
	int r = saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_TOPOLOGY, a), a, &doc,
				 err);

	if (r >= 0)
		r = topology_from_doc(&doc, a, &topology, err);
	if (r >= 0)
		r = source_machine_groups(&topology, a, &text, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!state->is_cluster) {
		r = saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_STATUS, a), a,
				     &doc, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		source_machine_put_status(state, node, &topology, doc.root);
	}
	shown_state_set_topology(state, node, text);
	return 0;
}

int source_bundle_read(const struct saved_bundle *bundle, const struct manifest_list *objects,
		       struct shown_state *state, struct arena *a, struct err *err)
{
	struct str *nodes;
	size_t n;
	int64_t created_s;

	if (object_time_read(bundle->created, &created_s))
		state->now_ms = created_s * 1000;
	for (size_t i = 0; i < objects->n; i++)
		state->is_cluster |= str_eq(object_kind(objects->items[i].object), STR("Node"));
	for (size_t i = 0; i < objects->n; i++)
		put_object(state, objects->items[i].object);
	saved_bundle_nodes(bundle, a, &nodes, &n);
	for (size_t i = 0; i < n; i++) {
		int r = put_machine(bundle, nodes[i], state, a, err);

		if (r < 0)
			return r;
	}
	state->is_complete = true;
	state->history.since_ms = state->now_ms;
	return 0;
}
