/* Pools (document 004, D12): whole CPUs of Guaranteed pods count against the guaranteed pool, every
 * other CPU request against the shared one. The native cpu stays. Pods of a workload type never get
 * here. */

#include "admission.h"
#include "base/arena.h"
#include "kube/names.h"
#include "kube/stamp.h"

static const struct str pool_resources[] = {
	[POOL_SHARED] = STR_INIT(NAME_SHARED_CPUS),
	[POOL_GUARANTEED] = STR_INIT(NAME_GUARANTEED_CPUS),
};

/* Cluster-wide: a node without the resource would get no pods at all. */
static bool is_active(struct admission *ad)
{
	const struct node_totals *nodes = &ad->state->nodes;
	struct str text;

	if (!ad->state->settings.pools)
		return false;
	if (ad->state->is_synced && nodes->n_schedulable &&
	    nodes->n_schedulable == nodes->n_schedulable_shared) {
		result_step(ad->result, RULE_POOL_NODES, VERDICT_GO_ON, STR(NAME_SHARED_CPUS));
		return true;
	}
	text = !nodes->n_schedulable ? STR("CPU pools are inactive: there is no schedulable node") :
				       str_printf(ad->a,
						  "CPU pools are inactive: node " PRI_STR
						  " does not advertise " NAME_SHARED_CPUS,
						  FMT_STR(nodes->missing_shared));
	result_step(ad->result, RULE_POOL_NODES, VERDICT_LEAVE, text);
	result_warn(ad->result, text);
	return false;
}

static bool has_pod_level_cpu(const struct admission *ad, struct quantity *ret)
{
	yyjson_val *resources = doc_get(ad->pod.spec, STR("resources"));

	return resource_get(doc_get(resources, STR("requests")), STR(NAME_CPU), ret, NULL) == 1 ||
	       resource_get(doc_get(resources, STR("limits")), STR(NAME_CPU), ret, NULL) == 1;
}

/* False when the pod was refused. */
static bool stamp_containers(struct admission *ad, struct cpu_stamp *stamps)
{
	yyjson_val *pod_level = doc_get(ad->pod.spec, STR("resources"));
	bool can_be_exclusive = !pod_level || yyjson_is_null(pod_level);
	enum qos_class class = QOS_BURSTABLE;
	struct field_errors problems;

	field_errors_init(&problems, ad->a);
	if (can_be_exclusive && qos_kubernetes(&ad->pod, &class, NULL) < 0)
		class = QOS_BURSTABLE; /* sums out of range: no CPU of that size exists anyway */
	for (size_t i = 0; i < ad->facts.n; i++) {
		const struct container_facts *f = &ad->facts.items[i];
		int64_t milli = 0;

		if (f->has_request[QOS_CPU] && container_milli(f, false, &milli, &problems) < 0)
			continue;
		if (milli < 0)
			milli = 0; /* the API server refuses it afterwards */
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
		result_invalid(ad->result, RULE_QUANTITY, &ad->subject, &problems);
	return !problems.n;
}

/* spec/cpumanager.md 7.10 case 15: the pod's amount where no container has one. Containers are all
 * that may request extended resources, so the first app container carries it. */
static void spread_pod_level(struct admission *ad, struct cpu_stamp *stamps)
{
	struct quantity q;
	int64_t milli;

	if (!has_pod_level_cpu(ad, &q) || quantity_milli(&q, &milli, NULL) < 0)
		return;
	for (size_t i = 0; i < ad->facts.n; i++)
		if (stamps[i].milli)
			return;
	for (size_t i = 0; i < ad->facts.n; i++)
		if (stamps[i].kind == CONTAINER_APP) {
			stamps[i].milli = milli;
			return;
		}
}

static void count_container(struct admission *ad, const struct container_facts *f,
			    const struct cpu_stamp *stamp)
{
	struct quantity amount = quantity_from_int(stamp->milli, QUANTITY_DECIMAL_SI);
	struct resource_edit e = resource_edit(&ad->result->patch, &f->c);

	for (int of_limit = 0; of_limit <= 1; of_limit++)
		for (enum pool pool = POOL_SHARED; pool < POOL__COUNT; pool++) {
			if (stamp->milli && pool == stamp->pool)
				resource_set(&e, of_limit, pool_resources[pool], &amount);
			else
				resource_drop(&e, of_limit, pool_resources[pool]);
		}
}

void pools_admit(struct admission *ad)
{
	struct cpu_stamp *stamps;

	if (!is_active(ad) || !admission_read_facts(ad))
		return;
	stamps = arena_array(ad->a, struct cpu_stamp, ad->facts.n + 1);
	if (!stamps || !stamp_containers(ad, stamps))
		return;
	spread_pod_level(ad, stamps);
	for (size_t i = 0; i < ad->facts.n; i++)
		count_container(ad, &ad->facts.items[i], &stamps[i]);
	annotations_set(&ad->annotations, STR(NAME_STAMP),
			stamps_format(stamps, ad->facts.n, ad->a));
	ad->is_counted = true;
	/* A pod that was skipped as a workload is still told so: that rule decided. */
	result_step(ad->result, RULE_POOLS, VERDICT_CHANGE, STR(NAME_STAMP));
	if (ad->result->rule == RULE_TARGET)
		ad->result->rule = RULE_POOLS;
}
