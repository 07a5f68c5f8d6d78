#include "explanation.h"

#include "admission/admission.h"
#include "admission/defaults.h"
#include "admission/live_pod.h"
#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"

static void put_steps(const struct admission_result *r, yyjson_mut_doc *m, yyjson_mut_val *v)
{
	yyjson_mut_val *list = doc_put_arr(m, v, STR("steps"));

	for (size_t i = 0; i < r->n_steps; i++) {
		const struct rule_step *step = &r->steps[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("rule"), str_from(rule_name(step->rule)));
		doc_put_str(m, item, STR("question"), str_from(rule_question(step->rule)));
		doc_put_str(m, item, STR("seen"), step->seen);
		doc_put_str(m, item, STR("verdict"), str_from(verdict_name(step->verdict)));
	}
}

static void put_live(const struct live_pod *live, yyjson_mut_doc *m, yyjson_mut_val *v,
		     struct arena *a)
{
	doc_put_str(m, v, STR("outcome"), str_from(live_outcome_name(live->outcome)));
	doc_put_str(m, v, STR("happened"), live_pod_text(live, a));
	if (live->rule < RULE__COUNT && rule_advice(live->rule))
		doc_put_str(m, v, STR("happenedAdvice"), str_from(rule_advice(live->rule)));
}

static void put_result(const struct admission_result *r, yyjson_mut_doc *m, yyjson_mut_val *v,
		       struct arena *a)
{
	const char *advice = admission_result_advice(r);
	yyjson_mut_val *list;

	put_steps(r, m, v);
	doc_put_bool(m, v, STR("allowed"), r->allowed);
	doc_put_str(m, v, STR("result"), admission_result_text(r, a));
	if (advice)
		doc_put_str(m, v, STR("advice"), str_from(advice));
	list = doc_put_arr(m, v, STR("warnings"));
	for (size_t i = 0; i < r->n_warnings; i++)
		yyjson_mut_arr_append(list, doc_new_str(m, r->warnings[i]));
	doc_put(m, v, STR("patch"), yyjson_mut_val_mut_copy(m, r->patch.ops));
}

int explanation_of(const struct admission_state *state, yyjson_val *object, yyjson_mut_doc *m,
		   struct arena *a, yyjson_mut_val **ret, struct err *err)
{
	yyjson_mut_val *v = yyjson_mut_obj(m);
	struct admission_result result;
	struct live_pod live;
	yyjson_val *pod;
	int r;

	if (live_pod_read(object, a, &live)) {
		put_live(&live, m, v, a);
		/* The type of a skipped pod is not known any more. */
		if (live.outcome == LIVE_SKIPPED)
			object = live_pod_restore(object, STR(NAME_TYPE_MANAGEMENT), a);
	}
	r = pod_from_workload(object, a, &pod, err);
	if (r >= 0)
		r = pod_default_resources(pod, a, &pod, err);
	if (r >= 0)
		r = admit_and_validate(state, pod, a, &result, &pod);
	if (r < 0)
		return r;
	put_result(&result, m, v, a);
	*ret = v;
	return 0;
}
