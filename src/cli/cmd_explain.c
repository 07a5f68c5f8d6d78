/* The decision of admission with the steps that led to it. It calls the same functions as the
 * webhook, so the explanation cannot differ from the decision. */

#include <errno.h>
#include <inttypes.h>

#include "admission/admission.h"
#include "admission/defaults.h"
#include "admission/live_pod.h"
#include "admission/static_pod.h"
#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle_input.h"
#include "cluster_options.h"
#include "command.h"
#include "explain_place.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "manifest_paths.h"
#include "map_draw.h"
#include "output.h"
#include "policy/policy_limits.h"

struct explain_options {
	struct cluster_options cluster;
	struct option_list files;
	const char *output, *run_dir, *bundle;
	bool is_static, with_policy;
};

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct explain_options, files),
	CLUSTER_OPTIONS(struct explain_options, cluster),
	{ OPT_FLAG, 0, "static", NULL, "decide as for a static pod on its node", NULL,
	  offsetof(struct explain_options, is_static) },
	{ OPT_FLAG, 0, "policy", NULL,
	  "also say what admission policies cannot do for the pod, and what happens then", NULL,
	  offsetof(struct explain_options, with_policy) },
	{ OPT_STR, 0, "run-dir", "DIR",
	  "directory of the agent that runs a live pod (default: " AGENT_RUN_DIR
	  ", if there is one)",
	  NULL, offsetof(struct explain_options, run_dir) },
	BUNDLE_OPTION(struct explain_options, bundle),
	OUTPUT_OPTION(struct explain_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold explain -f deployment.yaml", "which rules its pods would meet" },
	{ "kubectl get ns,nodes,infrastructure -o yaml | pinfold explain --state - -f pod.yaml",
	  "the same in a real cluster" },
	{ "kubectl get pod -n dns dns-x -o yaml | pinfold explain",
	  "what happened to a pod that exists" },
	{ "pinfold explain --bundle saved.tar 'ran/vdu-*'",
	  "what happened to pods of a support bundle" },
	{ 0 },
};

/* What all pods are explained with. */
struct explain_input {
	struct cluster_input cluster;
	yyjson_val **statuses; /* of the agent, or of those of a bundle */
	size_t n_statuses;
	struct option_list pods; /* patterns; none: all */
	bool with_policy;	 /* also what policies cannot do */
};

/* One pod and what was decided about it. */
struct explained {
	const struct explain_input *in;
	const struct manifest *manifest;
	struct pod pod; /* as given, maybe a template */
	bool is_live;	/* an API server has stored it */
	struct live_pod live;
	struct admission_result result;
};

/* The workload type of a skipped pod is not known any more. */
static bool is_restored(const struct explained *e)
{
	return e->is_live && e->live.outcome == LIVE_SKIPPED;
}

/* Whether the value that a rule checked was assumed. */
static bool is_assumed(const struct explained *e, enum admission_rule rule)
{
	unsigned facts;

	switch (rule) {
	case RULE_TARGET:
	case RULE_EFFECT:
		return is_restored(e);
	case RULE_INFRASTRUCTURE:
	case RULE_PARTITIONING:
		facts = 1u << ASSUMED_INFRASTRUCTURE;
		break;
	case RULE_NAMESPACE:
	case RULE_PERMISSION:
	case RULE_TYPE_ALLOWED:
		facts = 1u << ASSUMED_NAMESPACES;
		break;
	case RULE_SINGLE_NODE:
	case RULE_CORES:
	case RULE_POOL_NODES:
		facts = 1u << ASSUMED_NODES;
		break;
	default:
		return false;
	}
	return e->in->cluster.assumed & facts;
}

/* The facts that the result rests on, although no manifest states them. */
static size_t assumed_facts(const struct explained *e, struct str ret[ASSUMPTION__COUNT + 1])
{
	size_t n = 0;

	if (is_restored(e))
		ret[n++] = STR("the pod opted in to type " NAME_TYPE_MANAGEMENT
			       " (admission removed the annotation)");
	for (unsigned i = 0; i < ASSUMPTION__COUNT; i++)
		if (e->in->cluster.assumed & 1u << i)
			ret[n++] = str_from(assumption_text((enum assumption)i));
	return n;
}

/* --- what happened to a pod that exists --- */

/* The status of the pod's node. An agent need not know the name of its node, so a single status may
 * be that of any; explain_place() compares the pods. */
static yyjson_val *status_for(const struct explain_input *in, struct str node)
{
	for (size_t i = 0; i < in->n_statuses; i++)
		if (str_eq(doc_str(doc_get(in->statuses[i], STR("node"))), node))
			return in->statuses[i];
	return in->n_statuses == 1 ? in->statuses[0] : NULL;
}

static struct explain_place place_of(const struct explained *e, const struct live_container *c,
				     struct arena *a)
{
	const struct explain_container container = { .uid = e->live.uid,
						     .node = e->live.node,
						     .namespace = pod_namespace(&e->pod),
						     .pod = pod_name(&e->pod),
						     .name = c->name,
						     .pool = c->pool };

	return explain_place(&e->in->cluster.state, status_for(e->in, e->live.node), &container, a);
}

static struct str place_text(const struct explained *e, const struct explain_place *p,
			     struct arena *a)
{
	if (!e->live.node.n)
		return STR("not scheduled yet");
	if (p->refusal)
		return str_printf(a, "refused by the agent: " PRI_STR ": " PRI_STR,
				  FMT_STR(doc_str(doc_get(p->refusal, STR("reason")))),
				  FMT_STR(doc_str(doc_get(p->refusal, STR("message")))));
	if (!p->cpus.n)
		return STR("CPUs unknown: give the profile and the Node with --state, or run this "
			   "on the node");
	return str_printf(a, "CPUs " PRI_STR " (" PRI_STR "%s)", FMT_STR(p->cpus), FMT_STR(p->from),
			  p->is_assumed ? ", assumed" : "");
}

static void add_live(struct strbuf *b, const struct explained *e, struct arena *a)
{
	const struct live_pod *p = &e->live;

	strbuf_printf(b, "happened: " PRI_STR "\n", FMT_STR(live_pod_text(p, a)));
	for (size_t i = 0; i < p->n; i++) {
		const struct live_container *c = &p->containers[i];
		const struct explain_place place = place_of(e, c, a);

		strbuf_printf(b, "  container " PRI_STR ": %s pool", FMT_STR(c->name),
			      pool_name(c->pool));
		if (c->milli > 0)
			strbuf_printf(b, ", %" PRId64 "m", c->milli);
		if (c->shares > 0)
			strbuf_printf(b, ", cpushares %" PRIu64, c->shares);
		if (c->limit_milli > 0)
			strbuf_printf(b, ", cpulimit %" PRId64, c->limit_milli);
		strbuf_printf(b, ", " PRI_STR "\n", FMT_STR(place_text(e, &place, a)));
	}
	if (p->outcome == LIVE_SKIPPED && p->rule < RULE__COUNT && rule_advice(p->rule))
		strbuf_printf(b, "to change that: %s, and create the pod again\n",
			      rule_advice(p->rule));
	strbuf_add(b, STR("created again, the pod meets these rules:\n"));
}

static void put_refusal(yyjson_mut_doc *m, yyjson_mut_val *item, yyjson_val *refusal)
{
	yyjson_mut_val *v = doc_put_obj(m, item, STR("refused"));

	doc_put_str(m, v, STR("reason"), doc_str(doc_get(refusal, STR("reason"))));
	doc_put_str(m, v, STR("message"), doc_str(doc_get(refusal, STR("message"))));
}

static void put_live(yyjson_mut_doc *m, yyjson_mut_val *root, const struct explained *e,
		     struct arena *a)
{
	yyjson_mut_val *live = doc_put_obj(m, root, STR("live")), *list;
	const struct live_pod *p = &e->live;

	doc_put_str(m, live, STR("outcome"), str_from(live_outcome_name(p->outcome)));
	doc_put_str(m, live, STR("happened"), live_pod_text(p, a));
	doc_put_str(m, live, STR("node"), p->node);
	if (p->rule < RULE__COUNT)
		doc_put_str(m, live, STR("rule"), str_from(rule_name(p->rule)));
	if (p->rule < RULE__COUNT && rule_advice(p->rule))
		doc_put_str(m, live, STR("advice"), str_from(rule_advice(p->rule)));
	list = doc_put_arr(m, live, STR("containers"));
	for (size_t i = 0; i < p->n; i++) {
		const struct live_container *c = &p->containers[i];
		const struct explain_place place = place_of(e, c, a);
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("container"), c->name);
		doc_put_str(m, item, STR("pool"), str_from(pool_name(c->pool)));
		doc_put_int(m, item, STR("millicores"), c->milli);
		if (c->shares > 0)
			doc_put_int(m, item, STR("cpushares"), (int64_t)c->shares);
		if (c->limit_milli > 0)
			doc_put_int(m, item, STR("cpulimit"), c->limit_milli);
		if (place.refusal)
			put_refusal(m, item, place.refusal);
		if (!place.cpus.n)
			continue;
		doc_put_str(m, item, STR("cpus"), place.cpus);
		doc_put_str(m, item, STR("cpusFrom"), place.from);
		if (place.is_assumed)
			doc_put_bool(m, item, STR("assumed"), true);
	}
}

/* --- what admission decides --- */

/* Of a pod that does not exist yet; "" when it is not known. */
static struct str cpus_text(const struct explained *e, struct arena *a)
{
	const char *assumed;
	const struct profile_cpus *p;
	bool is_guess;

	p = explain_profile(&e->in->cluster.state, STR(""), &is_guess);
	assumed = is_guess ? ", assumed" : "";
	if (!p || e->is_live)
		return STR("");
	if (e->result.rule == RULE_CONVERT && p->reserved.n)
		return str_printf(a, "management CPUs " PRI_STR " (profile " PRI_STR "%s)",
				  FMT_STR(p->reserved), FMT_STR(p->name), assumed);
	if (e->result.rule == RULE_POOLS && p->shared.n)
		return str_printf(a,
				  "shared CPUs " PRI_STR ", exclusive CPUs from " PRI_STR
				  " (profile " PRI_STR "%s)",
				  FMT_STR(p->shared), FMT_STR(p->isolated), FMT_STR(p->name),
				  assumed);
	return STR("");
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

static void add_steps(struct strbuf *b, const struct explained *e)
{
	for (size_t i = 0; i < e->result.n_steps; i++) {
		const struct rule_step *step = &e->result.steps[i];
		const char *assumed = is_assumed(e, step->rule) ? " (assumed)" : "";

		strbuf_printf(b, "%3zu. %s: %s — ", i + 1, rule_name(step->rule),
			      rule_question(step->rule));
		/* The message of a refusal contains the value, and the result repeats it. */
		if (step->verdict != VERDICT_REFUSE)
			strbuf_printf(b, PRI_STR "%s — ", FMT_STR(step->seen), assumed);
		strbuf_printf(b, "%s\n", verdict_name(step->verdict));
	}
}

static size_t limits_of(const struct explained *e, struct arena *a,
			const struct policy_limit *ret[POLICY_LIMITS_MAX])
{
	return policy_limits_of(&e->pod, &e->result, &e->in->cluster.state.state.settings, a, ret);
}

static void add_limits(struct strbuf *b, const struct explained *e, struct arena *a)
{
	const struct policy_limit *limits[POLICY_LIMITS_MAX];
	size_t n = limits_of(e, a, limits);

	for (size_t i = 0; i < n; i++)
		strbuf_printf(b, "by policies: %s: %s\n", limits[i]->what, limits[i]->happens);
	if (!n)
		strbuf_add(b, STR("by policies: the same\n"));
}

static void put_limits(yyjson_mut_doc *m, yyjson_mut_val *root, const struct explained *e,
		       struct arena *a)
{
	const struct policy_limit *limits[POLICY_LIMITS_MAX];
	yyjson_mut_val *list = doc_put_arr(m, root, STR("policyLimits"));
	size_t n = limits_of(e, a, limits);

	for (size_t i = 0; i < n; i++) {
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("limit"), str_from(limits[i]->name));
		doc_put_str(m, item, STR("reason"), str_from(limits[i]->what));
		doc_put_str(m, item, STR("result"), str_from(limits[i]->happens));
	}
}

static void add_text(struct strbuf *b, const struct explained *e, struct arena *a)
{
	const struct admission_result *r = &e->result;
	struct str place = manifest_position(e->manifest, a), name = pod_name(&e->pod);
	struct str namespace = pod_namespace(&e->pod), cpus = cpus_text(e, a);
	struct str facts[ASSUMPTION__COUNT + 1];
	const char *advice = admission_result_advice(&e->result);
	const size_t n_facts = assumed_facts(e, facts);

	strbuf_printf(b, PRI_STR ": " PRI_STR " " PRI_STR ", namespace " PRI_STR, FMT_STR(place),
		      FMT_STR(e->pod.kind), FMT_STR(name), FMT_STR(namespace));
	if (e->is_live && e->live.node.n)
		strbuf_printf(b, ", node " PRI_STR, FMT_STR(e->live.node));
	strbuf_addc(b, '\n');
	if (e->is_live)
		add_live(b, e, a);
	add_steps(b, e);
	for (size_t i = 0; i < n_facts; i++)
		strbuf_printf(b, "assumed: " PRI_STR "\n", FMT_STR(facts[i]));
	strbuf_printf(b, "result: " PRI_STR "\n", FMT_STR(admission_result_text(&e->result, a)));
	if (cpus.n)
		strbuf_printf(b, "runs on: " PRI_STR "\n", FMT_STR(cpus));
	if (!patch_is_empty(&r->patch)) {
		strbuf_add(b, STR("changes:\n"));
		add_changes(b, &r->patch);
	}
	if (advice)
		strbuf_printf(b, "to change that: %s\n", advice);
	if (e->in->with_policy)
		add_limits(b, e, a);
}

static void put_steps(yyjson_mut_doc *m, yyjson_mut_val *root, const struct explained *e)
{
	yyjson_mut_val *steps = doc_put_arr(m, root, STR("steps")), *list;
	const struct admission_result *r = &e->result;
	struct str facts[ASSUMPTION__COUNT + 1];
	const size_t n_facts = assumed_facts(e, facts);

	for (size_t i = 0; i < r->n_steps; i++) {
		yyjson_mut_val *step = yyjson_mut_arr_add_obj(m, steps);

		doc_put_str(m, step, STR("rule"), str_from(rule_name(r->steps[i].rule)));
		doc_put_str(m, step, STR("question"), str_from(rule_question(r->steps[i].rule)));
		doc_put_str(m, step, STR("seen"), r->steps[i].seen);
		if (is_assumed(e, r->steps[i].rule))
			doc_put_bool(m, step, STR("assumed"), true);
		doc_put_str(m, step, STR("verdict"), str_from(verdict_name(r->steps[i].verdict)));
	}
	list = doc_put_arr(m, root, STR("assumptions"));
	for (size_t i = 0; i < n_facts; i++)
		yyjson_mut_arr_append(list, doc_new_str(m, facts[i]));
}

static yyjson_mut_val *doc_of(yyjson_mut_doc *m, const struct explained *e, struct arena *a)
{
	const struct admission_result *r = &e->result;
	yyjson_mut_val *root = yyjson_mut_obj(m), *warnings;
	const struct str cpus = cpus_text(e, a);
	const char *advice = admission_result_advice(&e->result);

	doc_put_str(m, root, STR("at"), manifest_position(e->manifest, a));
	doc_put_str(m, root, STR("kind"), e->pod.kind);
	doc_put_str(m, root, STR("namespace"), pod_namespace(&e->pod));
	doc_put_str(m, root, STR("name"), pod_name(&e->pod));
	if (e->is_live)
		put_live(m, root, e, a);
	put_steps(m, root, e);
	doc_put_bool(m, root, STR("allowed"), r->allowed);
	if (!r->allowed)
		doc_put_int(m, root, STR("code"), r->code);
	if (r->rule < RULE__COUNT)
		doc_put_str(m, root, STR("rule"), str_from(rule_name(r->rule)));
	doc_put_str(m, root, STR("result"), admission_result_text(&e->result, a));
	if (cpus.n)
		doc_put_str(m, root, STR("runsOn"), cpus);
	warnings = doc_put_arr(m, root, STR("warnings"));
	for (size_t i = 0; i < r->n_warnings; i++)
		yyjson_mut_arr_append(warnings, doc_new_str(m, r->warnings[i]));
	doc_put(m, root, STR("patch"), yyjson_mut_val_mut_copy(m, r->patch.ops));
	if (advice)
		doc_put_str(m, root, STR("advice"), str_from(advice));
	if (e->in->with_policy)
		put_limits(m, root, e, a);
	return root;
}

static int explain_one(struct explained *e, bool is_static, struct arena *a, struct err *err)
{
	yyjson_val *object = e->manifest->object, *pod;
	struct static_options o = { 0 };
	int r;

	e->is_live = !is_static && live_pod_read(object, a, &e->live);
	if (is_restored(e))
		object = live_pod_restore(object, STR(NAME_TYPE_MANAGEMENT), a);
	r = pod_from_workload(object, a, &pod, err);
	/* A static pod is not defaulted: no API server has seen it. */
	if (r >= 0 && !is_static)
		r = pod_default_resources(pod, a, &pod, err);
	if (r < 0)
		return err_wrap(err, PRI_STR, FMT_STR(manifest_position(e->manifest, a)));
	if (is_static)
		return static_pod_convert(pod, &o, a, &e->result);
	return admit_and_validate(&e->in->cluster.state.state, pod, a, &e->result, &pod);
}

static int explain_all(const struct explain_options *o, const struct explain_input *in,
		       struct arena *a, struct err *err)
{
	const struct manifest_list *list = &in->cluster.list;
	enum output_format format = output_format_of(o->output);
	CLEANUP(arena_done) struct arena scratch;
	struct arena *work;
	yyjson_mut_doc *doc = doc_build(a);
	yyjson_mut_val *all = yyjson_mut_arr(doc);
	size_t n = 0, n_refused = 0;
	struct strbuf b;
	int r;

	arena_init(&scratch, 0);
	/* A document refers to what was decided; text does not, and a cluster has many pods. */
	work = format == OUTPUT_TABLE ? &scratch : a;
	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++) {
		struct explained e = { .in = in, .manifest = &list->items[i] };

		if (!pod_from_object(list->items[i].object, &e.pod) ||
		    !map_is_wanted(&(struct map_container){ .namespace = pod_namespace(&e.pod),
							    .pod = pod_name(&e.pod) },
				   &in->pods, &scratch))
			continue;
		arena_reset(&scratch);
		r = explain_one(&e, o->is_static, work, err);
		if (r < 0)
			return r;
		if (n++)
			strbuf_addc(&b, '\n');
		n_refused += !e.result.allowed;
		if (format == OUTPUT_TABLE)
			add_text(&b, &e, work);
		else
			yyjson_mut_arr_append(all, doc_of(doc, &e, a));
	}
	if (!n)
		return err_set(err, EINVAL, "no pod and no workload%s in the manifests given",
			       in->pods.n ? " of this name" : "");
	r = format == OUTPUT_TABLE ? output_readable(strbuf_str(&b), err) :
				     output_doc(all, format, a, err);
	return r < 0 ? r : n_refused ? EXIT_FINDING : EXIT_YES;
}

/* Most machines have no agent, and others may not read its directory: only a directory that was
 * named has to be there. */
static int read_agent(const struct explain_options *o, struct arena *a, struct explain_input *in,
		      struct err *err)
{
	struct agent_status status;
	int r;

	in->statuses = arena_array(a, yyjson_val *, 1);
	r = status_client_read(o->run_dir ? o->run_dir : AGENT_RUN_DIR, a, &status, err);
	if (r >= 0)
		in->statuses[in->n_statuses++] = status.doc.root;
	return o->run_dir ? r : 0;
}

static int read_agents(const struct explain_options *o, struct arena *a, struct explain_input *in,
		       struct err *err)
{
	struct agent_status status;
	struct saved_bundle b;
	struct str *nodes;
	size_t n;
	int r = bundle_load(o->bundle, a, &b, err);

	if (r < 0)
		return r;
	saved_bundle_nodes(&b, a, &nodes, &n);
	in->statuses = arena_array(a, yyjson_val *, n + 1);
	for (size_t i = 0; i < n; i++)
		if (bundle_node_status(&b, nodes[i], a, &status, NULL) >= 0)
			in->statuses[in->n_statuses++] = status.doc.root;
	return 0;
}

static int read_input(const struct explain_options *o, struct arena *a, struct explain_input *in,
		      struct err *err)
{
	const struct option_list bundle = { (const char **)&o->bundle, o->bundle ? 1 : 0 };
	struct cluster_options cluster = o->cluster;
	int r = o->bundle ? read_agents(o, a, in, err) : read_agent(o, a, in, err);

	/* Pods of files meet the cluster of the bundle; without files its own pods are meant. */
	if (o->bundle && o->files.n) {
		cluster.state.items = arena_array(a, const char *, o->cluster.state.n + 1);
		for (size_t i = 0; i < o->cluster.state.n; i++)
			cluster.state.items[i] = o->cluster.state.items[i];
		cluster.state.items[cluster.state.n++] = o->bundle;
	}
	return r < 0 ? r :
		       cluster_and_manifests(o->is_static ? NULL : &cluster,
					     o->files.n || !o->bundle ? &o->files : &bundle, a,
					     &in->cluster, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct explain_options *o = inv->options;
	struct explain_input in = { .pods = inv->args, .with_policy = o->with_policy };
	int r;

	if (o->is_static && o->with_policy)
		return err_set(err, EINVAL,
			       "--policy and --static exclude each other: agents "
			       "convert static pods in every mode");
	r = read_input(o, inv->arena, &in, err);
	return r < 0 ? r : explain_all(o, &in, inv->arena, err);
}

const struct command cmd_explain = {
	.name = "explain",
	.group = COMMAND_TOOL,
	.summary = "show the admission rules that decide about a pod",
	.operands = "[POD...]",
	.about = "Prints the rules that admission applies to a pod: each rule, the value that it\n"
		 "checked, and its result. Then follow the decision, the changes, and, where the "
		 "pod was\n"
		 "skipped or refused, what to change in the pod or the cluster.\n"
		 "For a pod that exists (kubectl get pod -o yaml) it also says what admission did "
		 "with it\n"
		 "and on which CPUs its containers run: from the agent on this node, or from the "
		 "profile.\n"
		 "Facts that no manifest states are assumed, and marked as assumed in every "
		 "format.\n"
		 "Without -f the manifests come from standard input, or with --bundle from a "
		 "support\n"
		 "bundle; with both, the bundle is the cluster that the manifests of -f meet.\n"
		 "POD is a pod, namespace/pod, or a pattern such as 'vdu-*': only these are "
		 "explained.\n"
		 "The decision is the same as the webhook's. The exit status is 1 when a pod is "
		 "refused.",
	.options = options,
	.options_size = sizeof(struct explain_options),
	.examples = examples,
	.run = run,
};
