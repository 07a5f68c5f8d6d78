/* Prints the admission policies of src/policy; deploy/ ships what it prints. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "command.h"
#include "output.h"
#include "policy/policy.h"

struct policy_command_options {
	const char *mode, *kubernetes, *nodes, *output;
	bool legacy, only_mutating;
};

#define AT(field) offsetof(struct policy_command_options, field)

static const struct option_desc options[] = {
	{ OPT_ENUM, 0, "mode", "MODE",
	  "webhook: the guard alone; policy: also mutate, without a webhook; both: mutate before a "
	  "webhook (default: webhook)",
	  "webhook|policy|both", AT(mode) },
	{ OPT_STR, 0, "kubernetes", "VERSION",
	  "the version of the API server, such as 1.36 (default: the first that has all)", NULL,
	  AT(kubernetes) },
	{ OPT_ENUM, 0, "nodes", "MODE",
	  "what happens to nodes that join without the cores resource (default: taint)",
	  "taint|refuse", AT(nodes) },
	{ OPT_FLAG, 0, "legacy", NULL, "a namespace's label of 2021 is a permission, too", NULL,
	  AT(legacy) },
	{ OPT_FLAG, 0, "without-guard", NULL, "leave out the guard, which every mode needs", NULL,
	  AT(only_mutating) },
	{ OPT_ENUM, 'o', "output", "FORMAT", "print yaml, or json as a List (default: yaml)",
	  "yaml|json", AT(output) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold policy | kubectl apply -f -", "the guard" },
	{ "pinfold policy --mode policy --kubernetes 1.36 | kubectl apply -f -",
	  "admission without a webhook" },
	{ 0 },
};

/* "1.36", "v1.36.4" */
static int parse_minor(const char *text, unsigned *ret, struct err *err)
{
	struct str_split parts = str_split(str_from(*text == 'v' ? text + 1 : text));
	struct str major, minor;
	uint64_t n;

	if (!str_next(&parts, '.', &major) || !str_next(&parts, '.', &minor) ||
	    !str_eq(major, STR("1")) || !str_to_u64(minor, 999, &n))
		return err_set(err, EINVAL, "--kubernetes \"%s\" is not a version such as 1.36",
			       text);
	*ret = (unsigned)n;
	return 0;
}

static int read_options(const struct policy_command_options *o, struct policy_options *ret,
			struct err *err)
{
	ret->legacy = o->legacy;
	ret->only_mutating = o->only_mutating;
	ret->refuse_nodes = o->nodes && strcmp(o->nodes, "refuse") == 0;
	ret->minor = POLICY_MINOR_MUTATING;
	for (enum policy_mode m = 0; o->mode && m < POLICY_MODE__COUNT; m++)
		if (strcmp(o->mode, policy_mode_name(m)) == 0)
			ret->mode = m;
	if (ret->only_mutating && ret->mode == POLICY_MODE_WEBHOOK)
		return err_set(err, EINVAL,
			       "--without-guard leaves nothing of --mode webhook: the webhook "
			       "mutates there");
	return o->kubernetes ? parse_minor(o->kubernetes, &ret->minor, err) : 0;
}

static int print_json(const struct policy_options *o, struct arena *a, struct err *err)
{
	yyjson_mut_val *items, *list;
	yyjson_mut_doc *m;
	int r = policy_objects(o, a, &m, &items, err);

	if (r < 0)
		return r;
	list = yyjson_mut_obj(m);
	doc_put_str(m, list, STR("apiVersion"), STR("v1"));
	doc_put_str(m, list, STR("kind"), STR("List"));
	doc_put(m, list, STR("items"), items);
	return output_doc(list, OUTPUT_JSON, a, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct policy_command_options *o = inv->options;
	struct policy_options policy = { 0 };
	struct str text;
	int r;

	if (command_no_operands(inv, err) < 0 || read_options(o, &policy, err) < 0)
		return -EINVAL;
	if (o->output && strcmp(o->output, "json") == 0)
		return print_json(&policy, inv->arena, err);
	r = policy_yaml(&policy, inv->arena, &text, err);
	return r < 0 ? r : output_text(text, err);
}

const struct command cmd_policy = {
	.name = "policy",
	.group = COMMAND_TOOL,
	.summary = "print admission policies for the API server",
	.operands = "",
	.about = "Prints ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their "
		 "bindings.\n"
		 "The guard refuses pods that claim CPUs without permission; every installation "
		 "has it,\n"
		 "and it needs Kubernetes 1.30. With the modes policy and both, policies also do "
		 "what the\n"
		 "webhook does; that needs Kubernetes 1.36 and the operator, which writes their "
		 "parameters.",
	.options = options,
	.options_size = sizeof(struct policy_command_options),
	.examples = examples,
	.run = run,
};
