/* Whether the running pods of each node still fit the new pools. Pods are added up in the order of
 * the input, so those that no longer fit are a possible choice, not a prediction: the kubelet
 * admits pods in its own order after a reboot. */

#include <inttypes.h>
#include <limits.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "plan.h"
#include "pool/demand.h"
#include "profile/layout.h"

#define DEMAND_MAX 256 /* containers of a pod; the rest of a larger one is not counted */

/* The requests of one node's pods so far. */
struct node_use {
	struct str name;
	unsigned guaranteed; /* whole CPUs */
	int64_t shared_milli;
};

struct pod_request {
	bool is_management;
	unsigned whole_cpus;
	int64_t shared_milli; /* requests of containers without CPUs of their own */
};

/* The request of a container; without one its limit, as the API server defaults it. */
static int64_t cpu_milli(const struct container *c)
{
	struct quantity q;
	int64_t milli = 0;

	if (resource_get(c->requests, STR(NAME_CPU), &q, NULL) > 0 ||
	    resource_get(c->limits, STR(NAME_CPU), &q, NULL) > 0)
		(void)quantity_milli(&q, &milli, NULL);
	return milli;
}

static struct pod_request request_of(const struct pod *pod)
{
	struct container_iter it = container_iter(pod, false);
	enum qos_class class = QOS_BEST_EFFORT;
	struct pod_request request = { 0 };
	struct demand demands[DEMAND_MAX];
	struct container c;
	size_t n = 0;

	/* A quantity that does not parse leaves BestEffort, hence no exclusive CPUs. */
	(void)qos_kubernetes(pod, &class, NULL);
	request.is_management =
		doc_get(pod_annotations(pod), STR(NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT)) != NULL;
	while (container_next(&it, &c) && n < DEMAND_MAX) {
		demands[n] = (struct demand){ c.kind, class == QOS_GUARANTEED, cpu_milli(&c) };
		/* Init containers run before the others and use the same CPUs. */
		if (!demand_cpus(&demands[n]) && c.kind != CONTAINER_INIT)
			request.shared_milli += demands[n].cpu_milli;
		n++;
	}
	request.whole_cpus = demand_pod_cpus(demands, n);
	return request;
}

/* CPUs that containers may own: the isolated ones; without pools all that are not reserved, of
 * which there are any number where neither the machine nor an isolated set is given. */
static unsigned guaranteed_size(const struct partition *part)
{
	struct cpuset cpus = part->cpus[PROFILE_ISOLATED];

	if (!part->topology && !profile_has_pools(part->profile) && cpuset_is_empty(&cpus))
		return UINT_MAX;
	if (part->topology && !profile_has_pools(part->profile)) {
		cpus = part->topology->online;
		cpuset_minus(&cpus, &part->cpus[PROFILE_RESERVED]);
		cpuset_minus(&cpus, &part->cpus[PROFILE_OFFLINED]);
	}
	return cpuset_count(&cpus);
}

static void check_pod(const struct plan_pool *pool, const struct pod_request *request,
		      struct node_use *use, struct plan_pod *pod, struct arena *a)
{
	const struct partition *part = pool->part;
	unsigned size = guaranteed_size(part);
	int64_t shared_capacity = (int64_t)cpuset_count(&part->cpus[PROFILE_SHARED]) * 1000;

	pod->fits = true;
	pod->class = request->is_management ? "management" :
		     request->whole_cpus    ? "guaranteed" :
					      "shared";
	if (request->is_management) {
		if (plan_moves(pool, PROFILE_RESERVED))
			pod->why = STR("moves to the new management CPUs");
		return;
	}
	if (use->guaranteed + request->whole_cpus > size) {
		pod->fits = false;
		pod->why = str_printf(a, "requests %u exclusive CPUs; %u of %u are assigned",
				      request->whole_cpus, use->guaranteed, size);
		return;
	}
	if (profile_has_pools(part->profile) &&
	    use->shared_milli + request->shared_milli > shared_capacity) {
		pod->fits = false;
		pod->why = str_printf(a,
				      "requests %" PRId64 "m of the shared pool; %" PRId64
				      "m of %" PRId64 "m are requested already",
				      request->shared_milli, use->shared_milli, shared_capacity);
		return;
	}
	use->guaranteed += request->whole_cpus;
	use->shared_milli += request->shared_milli;
	if (request->whole_cpus && plan_moves(pool, PROFILE_ISOLATED))
		pod->why = STR("gets other CPUs of the guaranteed pool");
	else if (!request->whole_cpus &&
		 (plan_moves(pool, PROFILE_SHARED) || plan_moves(pool, PROFILE_RESERVED)))
		pod->why = STR("moves to the new shared CPUs");
}

static struct node_use *node_use_of(struct node_use *uses, size_t *n, struct str node)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq(uses[i].name, node))
			return &uses[i];
	uses[*n] = (struct node_use){ .name = node };
	return &uses[(*n)++];
}

/* By its node's labels; where no node was given, the only pool there is. */
static struct plan_pool *pool_of_pod(struct plan *plan, const struct layout *layout,
				     const struct manifests *ms, struct str node)
{
	for (size_t i = 0; i < ms->nodes.n; i++) {
		yyjson_val *object = ms->nodes.items[i].object;
		const struct machine_pool *pool;

		if (!str_eq(object_name(object), node))
			continue;
		pool = layout_pool_of_node(layout, doc_find(object, "/metadata/labels"));
		for (size_t j = 0; j < plan->n_pools; j++)
			if (plan->pools[j].part->pool == pool)
				return &plan->pools[j];
		return NULL;
	}
	return plan->n_pools == 1 ? &plan->pools[0] : NULL;
}

void plan_pods(const struct layout *layout, const struct manifests *ms, struct arena *a,
	       struct plan *plan)
{
	struct node_use *uses = arena_array(a, struct node_use, ms->pods.n + 1);
	size_t n_uses = 0;

	for (size_t i = 0; i < ms->pods.n; i++) {
		struct plan_pod found = { 0 };
		struct plan_pool *pool;
		struct pod_request request;
		struct pod pod;

		if (!pod_from_object(ms->pods.items[i].object, &pod))
			continue;
		found.namespace = pod_namespace(&pod);
		found.name = pod_name(&pod);
		found.node = doc_str(doc_get(pod.spec, STR("nodeName")));
		pool = pool_of_pod(plan, layout, ms, found.node);
		if (!pool || !found.node.n)
			continue;
		request = request_of(&pod);
		check_pod(pool, &request, node_use_of(uses, &n_uses, found.node), &found, a);
		if (!found.why.n) /* it stays as it is */
			continue;
		if (!pool->pods)
			pool->pods = arena_array(a, struct plan_pod, ms->pods.n);
		pool->pods[pool->n_pods++] = found;
		plan->has_unfit_pods |= !found.fits;
	}
}
