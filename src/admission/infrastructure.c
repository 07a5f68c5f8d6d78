/* Changes of the cluster flag: turning it off is refused (D8), turning it on before the nodes are
 * ready is allowed with warnings (D19). */

#include "base/arena.h"
#include "kube/names.h"
#include "steps.h"
#include "texts.h"

static void refuse_off(const struct subject *s, struct admission_result *r)
{
	struct field_errors p;

	field_errors_init(&p, r->patch.arena);
	field_errors_add(&p, STR("status." NAME_PARTITIONING_KEY ": Forbidden: " TEXT_TURN_OFF));
	result_invalid(r, RULE_TURN_OFF, s, &p);
}

/* What the change does to pods, as long as the nodes stay as they are. */
static void warn_on(const struct admission_state *state, struct admission_result *r)
{
	const struct cores_count cores =
		state->count_cores(state->owner, STR(NAME_TYPE_MANAGEMENT));
	const size_t n = state->nodes.n_available;

	if (!cores.n_available)
		result_warn(r,
			    STR("no ready node advertises " NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX
				": pods keep their CPU requests until one does; run the agent on "
				"the nodes"));
	else if (cores.n_available < n)
		result_warn(r, str_printf(r->patch.arena,
					  "%zu of %zu ready nodes do not "
					  "advertise " NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX
					  ": management pods are not scheduled to them",
					  n - cores.n_available, n));
	result_warn(r, STR("workload partitioning can not be turned off once it "
			   "is " NAME_PARTITIONING_ALL));
}

void infrastructure_validate(const struct admission_state *state,
			     const struct admission_request *rq, struct admission_result *r)
{
	struct infrastructure_status before = infrastructure_status_of(rq->old_object);
	struct infrastructure_status after = infrastructure_status_of(rq->object);
	struct subject s = subject_of(rq->old_object ? rq->old_object : rq->object,
				      "infrastructures.config.openshift.io",
				      "Infrastructure.config.openshift.io");

	if (!str_eq(s.name, STR(NAME_INFRASTRUCTURE)) ||
	    before.is_partitioned == after.is_partitioned) {
		result_decide(r, RULE_TURN_OFF, VERDICT_LEAVE, after.partitioning);
		return;
	}
	if (before.is_partitioned) {
		refuse_off(&s, r);
		return;
	}
	if (state->is_synced)
		warn_on(state, r);
	result_decide(r, RULE_TURN_ON, VERDICT_LEAVE, after.partitioning);
}
