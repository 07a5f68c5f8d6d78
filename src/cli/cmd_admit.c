/* Admission without a cluster. What is printed is what the API server would store after it called
 * the webhook: a workload's template becomes a pod, the API's defaults are applied, then the pod is
 * mutated and validated. Pods that are refused are not printed. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admission/admission.h"
#include "admission/defaults.h"
#include "admission/review.h"
#include "admission/static_pod.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "cluster_options.h"
#include "codec/yaml.h"
#include "command.h"
#include "diff.h"
#include "kube/pod.h"
#include "manifest_paths.h"
#include "output.h"

struct admit_options {
	struct cluster_options cluster;
	struct option_list files;
	const char *output;
	const char *hook;
	bool review;
	bool is_static;
	bool every_container;
};

#define AT(field) offsetof(struct admit_options, field)

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct admit_options, files),
	CLUSTER_OPTIONS(struct admit_options, cluster),
	{ OPT_ENUM, 'o', "output", "FORMAT", "print yaml (default), json, or a diff",
	  "yaml|json|diff", AT(output) },
	{ OPT_FLAG, 0, "static", NULL, "convert as a static pod on its node, without a cluster",
	  NULL, AT(is_static) },
	{ OPT_FLAG, 0, "every-container", NULL,
	  "with --static: also annotate containers that request no CPU, as the agent does", NULL,
	  AT(every_container) },
	{ OPT_FLAG, 0, "review", NULL,
	  "respond to one AdmissionReview (v1, JSON) instead of reading manifests", NULL,
	  AT(review) },
	{ OPT_ENUM, 0, "hook", "HOOK", "the webhook that responds to the review (default: mutate)",
	  "mutate|validate", AT(hook) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold admit -f deployment.yaml -o diff", "what admission would change" },
	{ "pinfold admit --state cluster.yaml -f pod.yaml",
	  "the pod as that cluster would store it" },
	{ "pinfold admit --static -f /etc/kubernetes/manifests/etcd.yaml",
	  "the static pod as its node would run it" },
	{ "pinfold admit --review --hook mutate --state cluster.yaml <review.json",
	  "one webhook call, offline" },
	{ 0 },
};

static int respond_to_review(const struct admit_options *o, struct arena *a, struct err *err)
{
	bool validates = o->hook && strcmp(o->hook, "validate") == 0;
	const char *file = o->files.n ? o->files.items[0] : "-";
	struct state_manifests m;
	struct review_outcome outcome;
	struct str body, response;
	int r;

	r = cluster_load(&o->cluster, a, &m, err);
	if (r < 0)
		return r;
	state_manifests_seal(&m);
	/* Without --state the cluster is not known. */
	m.state.is_synced = m.state.has_profiles = o->cluster.state.n > 0;
	if (strcmp(file, "-") == 0)
		r = file_read_fd(STDIN_FILENO, "<stdin>", REVIEW_MAX_SIZE, a, &body, err);
	else
		r = file_read_at(AT_FDCWD, file, REVIEW_MAX_SIZE, a, &body, err);
	if (r < 0)
		return r;
	r = review_respond(&m.state, validates ? REVIEW_VALIDATE : REVIEW_MUTATE, body, a,
			   &response, &outcome, err);
	if (r < 0)
		return r;
	r = output_text(str_printf(a, PRI_STR "\n", FMT_STR(response)), err);
	if (r < 0)
		return r;
	/* The response is printed in any case: a caller that plays the API server needs it. */
	if (outcome.is_malformed)
		return err_set(err, EINVAL, "malformed AdmissionReview, the response has status %u",
			       outcome.code);
	return outcome.allowed ? EXIT_YES : EXIT_FINDING;
}

/* One run over all manifests. A pod that is refused does not stop it. */
struct admitting {
	const struct admit_options *options;
	const struct admission_state *state;
	struct arena *a;
	yyjson_val **pods; /* to be printed */
	size_t n_pods, n_refused;
	struct strbuf diff;
};

static void print_result(struct admitting *ad, const struct manifest *m,
			 const struct admission_result *result)
{
	struct str place = manifest_position(m, ad->a);

	for (size_t i = 0; i < result->n_warnings; i++)
		(void)fprintf(stderr, PRI_STR ": warning: " PRI_STR "\n", FMT_STR(place),
			      FMT_STR(result->warnings[i]));
	if (result->allowed)
		return;
	(void)fprintf(stderr, PRI_STR ": refused (%s): " PRI_STR "\n", FMT_STR(place),
		      rule_name(result->rule), FMT_STR(result->message));
	ad->n_refused++;
}

static int decide(struct admitting *ad, yyjson_val *pod, struct admission_result *result,
		  yyjson_val **ret, struct err *err)
{
	struct static_options o = { .every_container = ad->options->every_container };

	if (!ad->options->is_static)
		return admit_and_validate(ad->state, pod, ad->a, result, ret);
	(void)static_pod_convert(pod, &o, ad->a, result);
	return patch_apply(&result->patch, pod, ad->a, ret, err);
}

static int add_diff(struct admitting *ad, const struct manifest *m, yyjson_val *before,
		    yyjson_val *after, struct err *err)
{
	struct str place = manifest_position(m, ad->a), x, y, text;
	int r;

	r = yaml_write_val(before, ad->a, &x, err);
	if (r >= 0)
		r = yaml_write_val(after, ad->a, &y, err);
	if (r < 0)
		return r;
	text = diff_unified(x, y, str_cstr(ad->a, place), "admitted", ad->a);
	strbuf_add(&ad->diff, text);
	return 0;
}

static int admit_one(struct admitting *ad, const struct manifest *m, struct err *err)
{
	struct admission_result result;
	yyjson_val *given, *pod, *after;
	int r;

	r = pod_from_workload(m->object, ad->a, &given, err);
	if (r < 0)
		return err_wrap(err, PRI_STR, FMT_STR(manifest_position(m, ad->a)));
	pod = given;
	/* A static pod is read by the kubelet, and no API server defaults it. */
	if (!ad->options->is_static) {
		r = pod_default_resources(given, ad->a, &pod, err);
		if (r < 0)
			return r;
	}
	r = decide(ad, pod, &result, &after, err);
	if (r < 0)
		return r;
	print_result(ad, m, &result);
	/* The kubelet runs a static pod in any case, so it is printed although it is refused. */
	if (!result.allowed && !result.is_static)
		return 0;
	if (ad->options->output && strcmp(ad->options->output, "diff") == 0)
		return add_diff(ad, m, given, after, err);
	ad->pods[ad->n_pods++] = after;
	return 0;
}

static int print_yaml(const struct admitting *ad, struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, ad->a);
	for (size_t i = 0; i < ad->n_pods; i++) {
		struct str text;
		int r = yaml_write_val(ad->pods[i], ad->a, &text, err);

		if (r < 0)
			return r;
		if (i)
			strbuf_add(&b, STR("---\n"));
		strbuf_add(&b, text);
	}
	return output_text(strbuf_str(&b), err);
}

static int print_json(const struct admitting *ad, struct err *err)
{
	yyjson_mut_doc *m = doc_build(ad->a);
	yyjson_mut_val *list = yyjson_mut_obj(m), *items;

	/* As kubectl: one object by itself, several in a List. */
	if (ad->n_pods == 1)
		return output_doc(yyjson_val_mut_copy(m, ad->pods[0]), OUTPUT_JSON, ad->a, err);
	doc_put_str(m, list, STR("apiVersion"), STR("v1"));
	doc_put_str(m, list, STR("kind"), STR("List"));
	items = doc_put_arr(m, list, STR("items"));
	for (size_t i = 0; i < ad->n_pods; i++)
		yyjson_mut_arr_append(items, yyjson_val_mut_copy(m, ad->pods[i]));
	return output_doc(list, OUTPUT_JSON, ad->a, err);
}

static int print(const struct admitting *ad, struct err *err)
{
	const char *format = ad->options->output;

	if (format && strcmp(format, "diff") == 0)
		return output_text(strbuf_str(&ad->diff), err);
	if (!ad->n_pods)
		return 0;
	return format && strcmp(format, "json") == 0 ? print_json(ad, err) : print_yaml(ad, err);
}

static int admit_all(struct admitting *ad, const struct manifest_list *list, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct pod pod;
		int r;

		if (!pod_from_object(list->items[i].object, &pod))
			continue;
		n++;
		r = admit_one(ad, &list->items[i], err);
		if (r < 0)
			return r;
	}
	if (!n)
		return err_set(err, EINVAL, "no pod and no workload in the manifests given");
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct admit_options *o = inv->options;
	struct admitting ad = { .options = o, .a = inv->arena };
	struct cluster_input in;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (o->review)
		return respond_to_review(o, inv->arena, err);
	r = cluster_and_manifests(o->is_static ? NULL : &o->cluster, &o->files, inv->arena, &in,
				  err);
	if (r < 0)
		return r;
	assumptions_print(in.assumed);
	ad.state = &in.state.state;
	ad.pods = arena_array(inv->arena, yyjson_val *, in.list.n + 1);
	strbuf_init(&ad.diff, inv->arena);
	r = admit_all(&ad, &in.list, err);
	if (r >= 0)
		r = print(&ad, err);
	if (r < 0)
		return r;
	return ad.n_refused ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_admit = {
	.name = "admit",
	.group = COMMAND_TOOL,
	.summary = "show pods as admission would store them",
	.operands = "",
	.about = "Reads pods, or workloads with a pod template, and prints each pod as a cluster "
		 "with\n"
		 "Pinfold's webhook would store it: defaulted, mutated and validated.\n"
		 "Cluster objects come from the manifests and from --state files. Where an object "
		 "is\n"
		 "missing, the most permissive one is assumed, and standard error says so.\n"
		 "With --review the command responds to one AdmissionReview as the webhook does, "
		 "and\n"
		 "assumes nothing.\n"
		 "Without -f the manifests come from standard input.\n"
		 "The exit status is 1 when a pod is refused.",
	.options = options,
	.options_size = sizeof(struct admit_options),
	.examples = examples,
	.run = run,
};
