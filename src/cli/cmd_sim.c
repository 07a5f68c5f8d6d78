/* Whether pods fit on nodes, before either exists. Admission, pools and exclusive CPUs are decided
 * by the functions of the daemons (sim/sim.h). */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "manifest_paths.h"
#include "sim/sim_workload.h"
#include "sim_print.h"

static const struct sim_options defaults = { .max_pods = 110, .seed = 1 };

static const struct option_desc options[] = {
	{ OPT_STRS, 0, "nodes", "[POOL=]N x FROM",
	  "N nodes of role POOL (default: worker) with the CPUs of FROM: host, a file or a "
	  "synthetic "
	  "string; may be repeated",
	  NULL, offsetof(struct sim_options, nodes) },
	MANIFESTS_OPTION(struct sim_options, files),
	{ OPT_STRS, 0, "topology", "FROM",
	  "CPUs of the Node objects in the manifests that have as many; may be repeated", NULL,
	  offsetof(struct sim_options, topologies) },
	{ OPT_STR, 0, "memory", "QUANTITY",
	  "allocatable memory of the nodes of --nodes (default: 4Gi for each CPU)", NULL,
	  offsetof(struct sim_options, memory) },
	{ OPT_UINT, 0, "max-pods", "N", "pods on a node of --nodes (default: 110)", NULL,
	  offsetof(struct sim_options, max_pods) },
	{ OPT_ENUM, 0, "workload", "NAME", "generate pods: a RAN site, a core, or a mixture",
	  SIM_WORKLOADS, offsetof(struct sim_options, workload) },
	{ OPT_UINT, 0, "pods", "N", "how many pods to generate", NULL,
	  offsetof(struct sim_options, pods) },
	{ OPT_UINT, 0, "churn", "N", "then N times a pod leaves and another one arrives", NULL,
	  offsetof(struct sim_options, churn) },
	{ OPT_UINT, 0, "seed", "N", "of the random numbers (default: 1)", NULL,
	  offsetof(struct sim_options, seed) },
	{ OPT_ENUM, 0, "topology-policy", "POLICY",
	  "NUMA policy of exclusive CPUs (default: as in the profiles)",
	  "none|best-effort|restricted|single-numa-node", offsetof(struct sim_options, policy) },
	{ OPT_STRS, 0, "compare", "FILE|topology-policy=POLICY",
	  "run again with the profiles in FILE, or with another NUMA policy", NULL,
	  offsetof(struct sim_options, compare) },
	{ OPT_FLAG, 0, "print-manifests", NULL,
	  "print the nodes and pods as manifests, for a real cluster", NULL,
	  offsetof(struct sim_options, print_manifests) },
	CLUSTER_OPTIONS(struct sim_options, cluster),
	{ OPT_ENUM, 'o', "output", "FORMAT", "print json, yaml, svg or a table (default: table)",
	  "json|yaml|svg|table", offsetof(struct sim_options, output) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold sim --nodes 'ran=100 x pack:1 core:32 pu:2' -f profile.yaml --workload ran-site "
	  "--pods 3000",
	  "whether 100 sites can hold 3,000 pods" },
	{ "pinfold sim -f nodes.yaml -f pods.yaml -f profile.yaml --compare new-profile.yaml",
	  "what another profile would change in a cluster" },
	{ "pinfold sim --nodes '20 x pack:2 core:28 pu:2' -f profile.yaml -f apps.yaml "
	  "--compare topology-policy=single-numa-node",
	  "what a stricter NUMA policy costs" },
	{ 0 },
};

static int print(const struct sim_options *o, const struct sim_run *runs, size_t n, struct arena *a,
		 struct err *err)
{
	const enum output_format format = output_format_of(o->output);
	yyjson_mut_doc *m;

	if (o->print_manifests) {
		m = doc_build(a);
		return output_doc(sim_print_manifests(&runs[0], m, a),
				  format == OUTPUT_TABLE ? OUTPUT_YAML : format, a, err);
	}
	if (o->output && strcmp(o->output, "svg") == 0)
		return output_text(sim_print_svg(runs, n, a), err);
	if (format == OUTPUT_TABLE)
		return output_readable(sim_print_table(runs, n, a), err);
	m = doc_build(a);
	return output_doc(sim_print_doc(runs, n, m, a), format, a, err);
}

static bool all_run(const struct sim_report *r)
{
	return !r->n_pending && !r->n_refused && !r->n_denied;
}

static int run_all(const struct sim_input *in, struct sim_run *runs, struct err *err)
{
	struct sim_variant v = sim_input_variant(in);
	const size_t n = 1 + in->o->compare.n;
	int r = sim_run(&runs[0], in, &v, false, err);

	if (r == 0 && n == 2)
		r = sim_input_compare(in, in->o->compare.items[0], &v, err);
	if (r == 0 && n == 2)
		r = sim_run(&runs[1], in, &v, true, err);
	if (r == 0)
		r = print(in->o, runs, n, in->a, err);
	if (r < 0)
		return r;
	return all_run(&runs[0].report) && all_run(&runs[n - 1].report) ? EXIT_YES : EXIT_FINDING;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct sim_options *o = inv->options;
	struct sim_run *runs = arena_array(inv->arena, struct sim_run, 2);
	struct sim_input in;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (o->compare.n > 1)
		return err_set(err, EINVAL, "--compare can be given once");
	r = sim_input_read(&in, o, inv->arena, err);
	if (r < 0)
		return r;
	r = run_all(&in, runs, err);
	sim_run_done(&runs[0]);
	sim_run_done(&runs[1]);
	return r;
}

const struct command cmd_sim = {
	.name = "sim",
	.group = COMMAND_TOOL,
	.summary = "show whether pods fit on nodes, and what a profile changes",
	.operands = "",
	.about =
		"Simulates a cluster: pods are admitted as by the webhook, placed as by a "
		"scheduler, and\n"
		"get their CPUs as from the agent. Nodes come from --nodes or from Node objects, "
		"pods from\n"
		"manifests or from --workload, pools from the profiles among the manifests. Prints "
		"what\n"
		"runs, what is left over and why, where exclusive CPUs are fragmented, and how "
		"many\n"
		"management CPUs suffice. The same input and seed give the same result.\n"
		"The exit status is 1 when a pod does not run.",
	.options = options,
	.options_size = sizeof(struct sim_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
