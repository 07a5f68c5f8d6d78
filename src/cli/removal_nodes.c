#include "removal_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "nodesync/node_plan.h"
#include "nodesync/node_uninstall.h"
#include "partition/cluster_nodes.h"
#include "removal.h"

#define POLL_MS 1000
#define QUIET_POLLS 3 /* the API server calls a deleted webhook for a moment */

#define PODS_PATH "/api/v1/pods"
#define AGENT_PODS_PATH "/api/v1/namespaces/" NAME_NAMESPACE_AGENT "/pods"
#define DAEMONSETS_PATH "/apis/apps/v1/namespaces/" NAME_NAMESPACE_AGENT "/daemonsets"

/* One list of the pods that wait. */
struct pod_round {
	struct arena *a;
	struct waiting_pods *pods;
	struct str *to_delete; /* paths */
	size_t n, cap;
};

static int collect_pod(void *context, yyjson_val *pod, struct err *err)
{
	struct str namespace = doc_str(doc_find(pod, "/metadata/namespace"));
	struct pod_round *round = context;
	struct waiting_pods *w = round->pods;

	(void)err;
	if (!pod_waits_for_node(pod))
		return 0;
	w->names = arena_reserve(round->a, w->names, w->n, &w->cap, sizeof(*w->names));
	w->names[w->n++] = str_printf(round->a, PRI_STR "/" PRI_STR, FMT_STR(namespace),
				      FMT_STR(object_name(pod)));
	if (!pod_has_controller(pod))
		return 0;
	round->to_delete = arena_reserve(round->a, round->to_delete, round->n, &round->cap,
					 sizeof(*round->to_delete));
	round->to_delete[round->n++] = str_printf(round->a,
						  "/api/v1/namespaces/" PRI_STR "/pods/" PRI_STR,
						  FMT_STR(namespace), FMT_STR(object_name(pod)));
	return 0;
}

static int delete_pods(struct api_sync *s, const struct pod_round *round, struct err *err)
{
	for (size_t i = 0; i < round->n; i++) {
		yyjson_val *ignored;
		int r = api_sync_call(
			s, &(struct api_request){ .method = "DELETE", .path = round->to_delete[i] },
			round->a, &ignored, err);

		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

int waiting_pods_settle(struct api_sync *s, unsigned timeout_s, struct arena *a,
			struct waiting_pods *ret, struct err *err)
{
	const time_t end_s = time(NULL) + (time_t)timeout_s;
	unsigned quiet = 0;
	int r;

	for (;;) {
		struct pod_round round = { .a = a, .pods = ret };

		*ret = (struct waiting_pods){ 0 };
		r = api_sync_list(s,
				  &(struct api_sync_list){ STR(PODS_PATH),
							   "fieldSelector=status.phase%3DPending",
							   collect_pod, &round },
				  err);
		if (r >= 0)
			r = delete_pods(s, &round, err);
		if (r < 0)
			return r;
		quiet = ret->n ? 0 : quiet + 1;
		if (quiet == QUIET_POLLS || time(NULL) >= end_s)
			return 0;
		api_sync_pause(s, POLL_MS);
	}
}

/* The operator's annotations. */
static bool is_annotated(yyjson_val *node)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (object_annotations(node), key, value) {
		(void)value;
		if (str_starts(doc_str(key), STR(NAME_OWN_PREFIX)))
			return true;
	}
	return false;
}

/* Resources, condition or taint. */
static bool is_written(const struct node_observed *o)
{
	for (int i = 0; i < NODE_RESOURCE__COUNT; i++)
		if (o->capacity[i] != NODE_ABSENT || o->allocatable[i] != NODE_ABSENT)
			return true;
	return o->n_types || o->status[0] || o->taint >= 0;
}

static int collect_node(void *context, yyjson_val *node, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch;
	struct cluster_agents *c = context;
	struct cluster_nodes one;
	struct node_observed observed;
	struct str rollout = doc_str(doc_get(object_annotations(node), STR(NAME_ROLLOUT)));

	(void)err;
	arena_init(&scratch, 0);
	cluster_nodes_init(&one, &scratch);
	cluster_nodes_add_node(&one, node);
	node_observed_of(node, &observed);
	c->items = arena_reserve(c->a, c->items, c->n, &c->cap, sizeof(*c->items));
	c->items[c->n++] = (struct cluster_agent){
		.node = str_dup(c->a, object_name(node)),
		.is_ready = one.items[0].is_ready,
		/* An agent that ends says so in its condition. */
		.is_alive = str_eq(one.items[0].agent_status, STR("True")) ||
			    str_eq(one.items[0].agent_status, STR("False")),
		.is_written = is_written(&observed),
		.is_annotated = is_annotated(node),
		.is_cordoned = str_eq(rollout, STR(NAME_ROLLOUT_CORDONED)),
	};
	return 0;
}

static struct cluster_agent *find_agent(struct cluster_agents *c, struct str node)
{
	for (size_t i = 0; i < c->n; i++)
		if (str_eq(c->items[i].node, node))
			return &c->items[i];
	return NULL;
}

static int collect_agent_pod(void *context, yyjson_val *pod, struct err *err)
{
	struct cluster_agents *c = context;
	struct cluster_agent *agent = find_agent(c, doc_str(doc_find(pod, "/spec/nodeName")));

	(void)err;
	if (!agent || !pod_has_controller(pod))
		return 0;
	agent->has_pod = true;
	agent->has_released |= agent_has_released(pod);
	return 0;
}

static int collect_daemonset(void *context, yyjson_val *object, struct err *err)
{
	struct cluster_agents *c = context;

	(void)err;
	if (str_eq(object_name(object), STR("pinfold-agent")))
		c->daemonset = str_dup(c->a, object_name(object));
	return 0;
}

static int list(struct api_sync *s, struct str path, api_sync_object_fn on_object,
		struct cluster_agents *c, struct err *err)
{
	return api_sync_list(
		s, &(struct api_sync_list){ .path = path, .on_object = on_object, .context = c },
		err);
}

int cluster_agents_read(struct api_sync *s, struct arena *a, struct cluster_agents *ret,
			struct err *err)
{
	int r;

	*ret = (struct cluster_agents){ .a = a };
	r = list(s, STR("/api/v1/nodes"), collect_node, ret, err);
	if (r >= 0)
		r = list(s, STR(DAEMONSETS_PATH), collect_daemonset, ret, err);
	if (r >= 0)
		r = list(s, STR(AGENT_PODS_PATH), collect_agent_pod, ret, err);
	return r;
}

static bool needs_cleaning(const struct cluster_agent *agent)
{
	return agent->is_written || agent->is_annotated;
}

bool cluster_agents_has_work(const struct cluster_agents *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->items[i].has_pod || needs_cleaning(&c->items[i]))
			return true;
	return false;
}

void cluster_agent_print_plan(const struct cluster_agent *agent)
{
	if (agent->has_pod && agent->is_ready)
		(void)printf("node " PRI_STR ": undo what the agent did\n", FMT_STR(agent->node));
	if (agent->is_cordoned)
		(void)printf("node " PRI_STR ": uncordon\n", FMT_STR(agent->node));
	if (needs_cleaning(agent))
		(void)printf("node " PRI_STR ": remove resources, condition and taint\n",
			     FMT_STR(agent->node));
}

/* One agent that is not done yet; NULL: all are. */
static const struct cluster_agent *find_busy(const struct cluster_agents *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->items[i].has_pod && c->items[i].is_ready && !c->items[i].has_released)
			return &c->items[i];
	return NULL;
}

static int patch_daemonset(struct api_sync *s, struct cluster_agents *c, struct err *err)
{
	struct str path = str_printf(c->a, DAEMONSETS_PATH "/" PRI_STR, FMT_STR(c->daemonset));
	yyjson_val *daemonset;
	struct str body;
	int r = api_sync_get(s, path, c->a, &daemonset, err);

	if (r >= 0)
		r = agents_release_patch(daemonset, c->a, &body, err);
	if (r > 0)
		r = api_sync_call(s,
				  &(struct api_request){ .method = "PATCH",
							 .path = path,
							 .content_type = API_PATCH_STRATEGIC,
							 .body = body },
				  c->a, &daemonset, err);
	return r;
}

int cluster_agents_release(struct api_sync *s, unsigned timeout_s, struct cluster_agents *c,
			   struct err *err)
{
	const time_t end_s = time(NULL) + (time_t)timeout_s;
	int r;

	if (!c->daemonset.n)
		return 0;
	r = patch_daemonset(s, c, err);
	while (r >= 0 && find_busy(c) && time(NULL) < end_s) {
		api_sync_pause(s, POLL_MS);
		r = list(s, STR(AGENT_PODS_PATH), collect_agent_pod, c, err);
	}
	return r;
}

static int remove_annotations(struct api_sync *s, const struct cluster_agent *agent,
			      struct arena *a, struct err *err)
{
	struct str body =
		str_printf(a,
			   "{\"metadata\":{\"annotations\":{\"" NAME_ROLLOUT
			   "\":null,\"" NAME_REBOOT_REQUIRED "\":null}}%s}",
			   agent->is_cordoned ? ",\"spec\":{\"unschedulable\":null}" : "");
	yyjson_val *ignored;
	int r = api_sync_call(s,
			      &(struct api_request){ .method = "PATCH",
						     .path = node_path(agent->node, STR(""), a),
						     .content_type = API_PATCH_MERGE,
						     .body = body },
			      a, &ignored, err);

	return r == -ENOENT ? 0 : r;
}

int cluster_agents_clean(struct api_sync *s, struct cluster_agents *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	int r = 0;

	arena_init(&a, 0);
	for (size_t i = 0; r >= 0 && i < c->n; i++) {
		const struct cluster_agent *agent = &c->items[i];

		if (agent->is_annotated)
			r = remove_annotations(s, agent, &a, err);
		/* A running agent would write everything again. */
		if (r >= 0 && (agent->has_pod || (agent->is_written && !agent->is_alive)))
			r = node_clean(s, agent->node, &a, err);
		arena_reset(&a);
	}
	return r;
}

bool cluster_agent_report(const struct cluster_agent *agent)
{
	const char *why = agent->has_pod && !agent->is_ready ? "the node is not ready" :
			  agent->has_pod && !agent->has_released ?
							       "the agent did not finish in time" :
			  !agent->has_pod && agent->is_alive ? "its agent is not of the DaemonSet" :
							       NULL;

	if (!why)
		return false;
	(void)fprintf(stderr,
		      "node " PRI_STR ": %s: on the node, stop the agent and run pinfold agent "
		      "--uninstall\n",
		      FMT_STR(agent->node), why);
	return true;
}
