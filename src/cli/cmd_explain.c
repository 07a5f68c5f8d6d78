/* The decision of admission with the steps that led to it. It calls the same functions as the
 * webhook, so the explanation cannot differ from the decision. */

#include <errno.h>

#include "admission/admission.h"
#include "admission/defaults.h"
#include "admission/static_pod.h"
#include "base/arena.h"
#include "base/err.h"
#include "cluster_options.h"
#include "command.h"
#include "kube/pod.h"
#include "manifest_paths.h"
#include "output.h"

struct explain_options {
	struct cluster_options cluster;
	struct option_list files;
	const char *output;
	bool is_static;
};

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct explain_options, files),
	CLUSTER_OPTIONS(struct explain_options, cluster),
	{ OPT_FLAG, 0, "static", NULL, "decide as for a static pod on its node", NULL,
	  offsetof(struct explain_options, is_static) },
	OUTPUT_OPTION(struct explain_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold explain -f deployment.yaml", "which rules its pods would meet" },
	{ "kubectl get ns,nodes,infrastructure -o yaml | pinfold explain --state - -f pod.yaml",
	  "the same in a real cluster" },
	{ 0 },
};

/* One pod and what was decided about it. */
struct explained {
	const struct manifest *manifest;
	struct pod pod; /* as given, maybe a template */
	struct admission_result result;
	const struct profile_cpus *profile;
};

static struct str outcome(const struct explained *e, struct arena *a)
{
	const struct admission_result *r = &e->result;
	const struct rule_step *last = r->n_steps ? &r->steps[r->n_steps - 1] : NULL;

	if (!r->allowed)
		return str_printf(a, "refused (%u %s): " PRI_STR, r->code, r->reason,
				  FMT_STR(r->message));
	if (r->rule == RULE_CONVERT)
		return STR("converted: CPU requests become requests for the workload resource");
	if (r->rule == RULE_POOLS)
		return STR("admitted, and its CPU is counted in the pools");
	/* A rule that strips the annotations always adds a warning with its reason. */
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].verdict == VERDICT_STRIP)
			return str_printf(a, "skipped: " PRI_STR, FMT_STR(r->warnings[0]));
	if (last && !patch_is_empty(&r->patch))
		return STR("admitted; annotations that only admission may write are removed");
	return STR("admitted unchanged");
}

/* Only what did not turn out as the user may have meant it has something to change. */
static const char *advice_for(const struct explained *e)
{
	const struct admission_result *r = &e->result;

	if (r->rule == RULE__COUNT || r->rule == RULE_CONVERT || r->rule == RULE_POOLS)
		return NULL;
	return rule_advice(r->rule);
}

static void add_cpus(struct strbuf *b, const struct explained *e)
{
	const struct profile_cpus *p = e->profile;

	if (e->result.rule == RULE_CONVERT && p->reserved.n)
		strbuf_printf(b, "runs on: management CPUs " PRI_STR " (profile " PRI_STR ")\n",
			      FMT_STR(p->reserved), FMT_STR(p->name));
	else if (e->result.rule == RULE_POOLS && p->shared.n)
		strbuf_printf(b,
			      "runs on: shared CPUs " PRI_STR ", exclusive CPUs from " PRI_STR
			      " (profile " PRI_STR ")\n",
			      FMT_STR(p->shared), FMT_STR(p->isolated), FMT_STR(p->name));
}

static void add_changes(struct strbuf *b, const struct patch *p)
{
	yyjson_mut_val *op;

	DOC_EACH_BUILT_ITEM (p->ops, op) {
		struct str verb = doc_mut_str(yyjson_mut_obj_get(op, "op"));
		struct str path = doc_mut_str(yyjson_mut_obj_get(op, "path"));
		yyjson_mut_val *value = yyjson_mut_obj_get(op, "value");
		struct str text = STR("");

		strbuf_printf(b, "  " PRI_STR " " PRI_STR, FMT_STR(verb), FMT_STR(path));
		if (value && doc_write(value, false, p->arena, &text, NULL) == 0)
			strbuf_printf(b, " " PRI_STR, FMT_STR(text));
		strbuf_addc(b, '\n');
	}
}

static void add_text(struct strbuf *b, const struct explained *e, struct arena *a)
{
	const struct admission_result *r = &e->result;
	struct str place = manifest_position(e->manifest, a), name = pod_name(&e->pod);
	struct str namespace = pod_namespace(&e->pod), result = outcome(e, a);
	const char *advice = advice_for(e);

	strbuf_printf(b, PRI_STR ": " PRI_STR " " PRI_STR ", namespace " PRI_STR "\n",
		      FMT_STR(place), FMT_STR(e->pod.kind), FMT_STR(name), FMT_STR(namespace));
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct rule_step *step = &r->steps[i];

		strbuf_printf(b, "%3zu. %s: %s — ", i + 1, rule_name(step->rule),
			      rule_question(step->rule));
		/* The message of a refusal contains the value, and the result repeats it. */
		if (step->verdict != VERDICT_REFUSE)
			strbuf_printf(b, PRI_STR " — ", FMT_STR(step->seen));
		strbuf_printf(b, "%s\n", verdict_name(step->verdict));
	}
	strbuf_printf(b, "result: " PRI_STR "\n", FMT_STR(result));
	add_cpus(b, e);
	if (!patch_is_empty(&r->patch)) {
		strbuf_add(b, STR("changes:\n"));
		add_changes(b, &r->patch);
	}
	if (advice)
		strbuf_printf(b, "to change that: %s\n", advice);
}

static yyjson_mut_val *doc_of(yyjson_mut_doc *m, const struct explained *e, struct arena *a)
{
	const struct admission_result *r = &e->result;
	yyjson_mut_val *root = yyjson_mut_obj(m), *steps, *warnings;
	const char *advice = advice_for(e);

	doc_put_str(m, root, STR("at"), manifest_position(e->manifest, a));
	doc_put_str(m, root, STR("kind"), e->pod.kind);
	doc_put_str(m, root, STR("namespace"), pod_namespace(&e->pod));
	doc_put_str(m, root, STR("name"), pod_name(&e->pod));
	steps = doc_put_arr(m, root, STR("steps"));
	for (size_t i = 0; i < r->n_steps; i++) {
		yyjson_mut_val *step = yyjson_mut_arr_add_obj(m, steps);

		doc_put_str(m, step, STR("rule"), str_from(rule_name(r->steps[i].rule)));
		doc_put_str(m, step, STR("question"), str_from(rule_question(r->steps[i].rule)));
		doc_put_str(m, step, STR("seen"), r->steps[i].seen);
		doc_put_str(m, step, STR("verdict"), str_from(verdict_name(r->steps[i].verdict)));
	}
	doc_put_bool(m, root, STR("allowed"), r->allowed);
	if (!r->allowed)
		doc_put_int(m, root, STR("code"), r->code);
	if (r->rule < RULE__COUNT)
		doc_put_str(m, root, STR("rule"), str_from(rule_name(r->rule)));
	doc_put_str(m, root, STR("result"), outcome(e, a));
	warnings = doc_put_arr(m, root, STR("warnings"));
	for (size_t i = 0; i < r->n_warnings; i++)
		yyjson_mut_arr_append(warnings, doc_new_str(m, r->warnings[i]));
	doc_put(m, root, STR("patch"), yyjson_mut_val_mut_copy(m, r->patch.ops));
	if (advice)
		doc_put_str(m, root, STR("advice"), str_from(advice));
	return root;
}

static int explain_one(const struct admission_state *state, bool is_static, struct explained *e,
		       struct arena *a, struct err *err)
{
	struct static_options o = { 0 };
	yyjson_val *pod;
	int r;

	r = pod_from_workload(e->manifest->object, a, &pod, err);
	/* A static pod is not defaulted: no API server has seen it. */
	if (r >= 0 && !is_static)
		r = pod_default_resources(pod, a, &pod, err);
	if (r < 0)
		return err_wrap(err, PRI_STR, FMT_STR(manifest_position(e->manifest, a)));
	if (is_static)
		return static_pod_convert(pod, &o, a, &e->result);
	return admit_and_validate(state, pod, a, &e->result, &pod);
}

static int explain_all(const struct explain_options *o, const struct state_manifests *m,
		       const struct manifest_list *list, struct arena *a, struct err *err)
{
	enum output_format format = output_format_of(o->output);
	yyjson_mut_doc *doc = doc_build(a);
	yyjson_mut_val *all = yyjson_mut_arr(doc);
	size_t n = 0, n_refused = 0;
	struct strbuf b;
	int r;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++) {
		struct explained e = { .manifest = &list->items[i], .profile = &m->profile };

		if (!pod_from_object(list->items[i].object, &e.pod))
			continue;
		r = explain_one(&m->state, o->is_static, &e, a, err);
		if (r < 0)
			return r;
		if (n++)
			strbuf_addc(&b, '\n');
		n_refused += !e.result.allowed;
		if (format == OUTPUT_TABLE)
			add_text(&b, &e, a);
		else
			yyjson_mut_arr_append(all, doc_of(doc, &e, a));
	}
	if (!n)
		return err_set(err, EINVAL, "no pod and no workload in the manifests given");
	r = format == OUTPUT_TABLE ? output_text(strbuf_str(&b), err) :
				     output_doc(all, format, a, err);
	return r < 0 ? r : n_refused ? EXIT_FINDING : EXIT_YES;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct explain_options *o = inv->options;
	struct manifest_list list;
	struct state_manifests m;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	r = cluster_and_manifests(o->is_static ? NULL : &o->cluster, &o->files, inv->arena, &m,
				  &list, err);
	return r < 0 ? r : explain_all(o, &m, &list, inv->arena, err);
}

const struct command cmd_explain = {
	.name = "explain",
	.group = COMMAND_TOOL,
	.summary = "show the admission rules that decide about a pod",
	.operands = "",
	.about = "Prints the rules that admission applies to a pod: each rule, the value that it\n"
		 "checked, and its result. Then follow the decision, the changes, and, where the "
		 "pod was\n"
		 "skipped or refused, what to change in the pod or the cluster.\n"
		 "Without -f the manifests come from standard input.\n"
		 "The decision is the same as the webhook's. The exit status is 1 when a pod is "
		 "refused.",
	.options = options,
	.options_size = sizeof(struct explain_options),
	.examples = examples,
	.run = run,
};
