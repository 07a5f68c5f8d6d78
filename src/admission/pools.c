/* CPU pools (D12): whole CPUs of Guaranteed pods are counted in the guaranteed pool, every other
 * CPU request in the shared pool, as extended resources next to native cpu. Converted pods are
 * not counted: they have no CPU request left. */

#include "base/arena.h"
#include "kube/names.h"
#include "kube/stamp.h"
#include "steps.h"

static const struct str pool_resources[] = {
	[POOL_SHARED] = STR_INIT(NAME_SHARED_CPUS),
	[POOL_GUARANTEED] = STR_INIT(NAME_GUARANTEED_CPUS),
};

/* The name of a node that could take the pod and does not advertise the shared pool; "" when there
 * is none. Labels and affinity are not compared. */
static struct str find_node_without_pool(const struct pod_context *ctx)
{
	const struct node_totals *nodes = &ctx->state->nodes;
	yyjson_val *tolerations = doc_get(ctx->pod.spec, STR("tolerations"));

	for (size_t i = 0; i < nodes->n_missing_shared; i++)
		if (taints_are_tolerated(nodes->missing_shared[i].taints, tolerations))
			return nodes->missing_shared[i].name;
	return STR("");
}

/* All nodes or none: a counted pod cannot be scheduled to a node without the resource. */
static bool check_active(struct pod_context *ctx)
{
	struct str without = find_node_without_pool(ctx), text;

	if (!ctx->state->settings.pools)
		return false;
	/* Every pod passes here, not only those that opted in, so an unknown cluster must not
	 * refuse. */
	if (ctx->state->is_synced && ctx->state->nodes.n_shared && !without.n) {
		result_step(ctx->result, RULE_POOL_NODES, VERDICT_GO_ON, STR(NAME_SHARED_CPUS));
		return true;
	}
	text = !without.n ? STR("CPU pools are inactive: no node advertises " NAME_SHARED_CPUS) :
			    str_printf(ctx->a,
				       "CPU pools are inactive: node " PRI_STR
				       " does not advertise " NAME_SHARED_CPUS,
				       FMT_STR(without));
	result_step(ctx->result, RULE_POOL_NODES, VERDICT_LEAVE, text);
	result_warn(ctx->result, text);
	return false;
}

/* False when the pod was refused. */
static bool stamp_containers(struct pod_context *ctx, struct cpu_stamp *stamps)
{
	yyjson_val *pod_level = doc_get(ctx->pod.spec, STR("resources"));
	/* A pod with spec.resources gets no exclusive CPUs
	 * (docs/reference/pools.md#pod-level-resources). */
	bool can_be_exclusive = !pod_level || yyjson_is_null(pod_level);
	enum qos_class class = QOS_BURSTABLE;
	struct field_errors problems;

	field_errors_init(&problems, ctx->a);
	if (can_be_exclusive && qos_kubernetes(&ctx->pod, &class, NULL) < 0)
		class = QOS_BURSTABLE; /* the sum is out of range: too large for any node */
	for (size_t i = 0; i < ctx->resources.n; i++) {
		const struct container_resources *f = &ctx->resources.items[i];
		int64_t milli = 0;

		if (f->has_request[QOS_CPU] && container_milli(f, false, &milli, &problems) < 0)
			continue;
		stamps[i] = (struct cpu_stamp){
			.name = f->c.name,
			.kind = f->c.kind,
			.milli = milli,
			.pool = class == QOS_GUARANTEED && milli > 0 && milli % 1000 == 0 ?
					POOL_GUARANTEED :
					POOL_SHARED,
		};
	}
	if (problems.n)
		result_invalid(ctx->result, RULE_QUANTITY, &ctx->subject, &problems);
	return !problems.n;
}

/* The pod's amount where no container has one (docs/reference/pools.md#pod-level-resources). Only
 * containers can request extended resources, so the first app container requests it. */
static void assign_pod_level(struct pod_context *ctx, struct cpu_stamp *stamps)
{
	yyjson_val *resources = doc_get(ctx->pod.spec, STR("resources"));
	struct quantity q;
	int64_t milli;

	if (resource_get(doc_get(resources, STR("requests")), STR(NAME_CPU), &q, NULL) != 1 &&
	    resource_get(doc_get(resources, STR("limits")), STR(NAME_CPU), &q, NULL) != 1)
		return;
	if (quantity_milli(&q, &milli, NULL) < 0)
		return;
	for (size_t i = 0; i < ctx->resources.n; i++)
		if (stamps[i].milli)
			return;
	for (size_t i = 0; i < ctx->resources.n; i++)
		if (stamps[i].kind == CONTAINER_APP) {
			stamps[i].milli = milli;
			return;
		}
}

static void count_container(struct pod_context *ctx, const struct container_resources *f,
			    const struct cpu_stamp *stamp)
{
	struct quantity amount = quantity_from_int(stamp->milli, QUANTITY_DECIMAL_SI);
	struct resource_edit e = resource_edit(&ctx->result->patch, &f->c);

	/* Extended resources must have equal requests and limits. An amount of the other pool, from
	 * an earlier call or from the user, is removed. */
	for (int of_limit = 0; of_limit <= 1; of_limit++)
		for (enum pool pool = POOL_SHARED; pool < POOL__COUNT; pool++) {
			if (stamp->milli && pool == stamp->pool)
				resource_set(&e, of_limit, pool_resources[pool], &amount);
			else
				resource_drop(&e, of_limit, pool_resources[pool]);
		}
}

void pools_admit(struct pod_context *ctx)
{
	struct cpu_stamp *stamps;

	/* Unreadable quantities refuse the pod; the API server would refuse it later as well. */
	if (!check_active(ctx) || !pod_context_read_resources(ctx))
		return;
	stamps = arena_array(ctx->a, struct cpu_stamp, ctx->resources.n + 1);
	if (!stamps || !stamp_containers(ctx, stamps))
		return;
	/* After all containers were stamped: it depends on whether any of them has an amount. */
	assign_pod_level(ctx, stamps);
	for (size_t i = 0; i < ctx->resources.n; i++)
		count_container(ctx, &ctx->resources.items[i], &stamps[i]);
	annotations_set(&ctx->annotations, STR(NAME_STAMP),
			stamps_format(stamps, ctx->resources.n, ctx->a));
	ctx->is_counted = true;
	/* When management skipped the pod, that rule stays the decisive one: it is in the
	 * warning. */
	result_step(ctx->result, RULE_POOLS, VERDICT_CHANGE, STR(NAME_STAMP));
	if (ctx->result->rule == RULE_TARGET)
		ctx->result->rule = RULE_POOLS;
}
