/* The agent's settings against the kernel, read by another process than the agent, so that a
 * setting which the agent failed to write is found, too. */

#include <errno.h>

#include "agentclient/run_dir.h"
#include "audit_print.h"
#include "base/arena.h"
#include "base/err.h"
#include "bundle_input.h"
#include "cluster_report.h"
#include "command.h"
#include "node_verify.h"
#include "output.h"

struct verify_options {
	struct node_verify_source node;
	struct bundle_options bundle;
	const char *output;
	bool strict;
	struct cluster_report_options all;
};

#define AT(field) offsetof(struct verify_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(node.run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR",
	  "mount point of the cgroup hierarchy (default: /sys/fs/cgroup)", NULL,
	  AT(node.cgroup_root) },
	{ OPT_STR, 0, "proc", "DIR", "mount point of procfs (default: /proc)", NULL,
	  AT(node.proc) },
	BUNDLE_OPTIONS(struct verify_options, bundle),
	AUDIT_STRICT_OPTION(struct verify_options),
	OUTPUT_OPTION(struct verify_options, output),
	CLUSTER_REPORT_OPTIONS(struct verify_options, all),
	{ 0 },
};

static const struct verify_options defaults = { .node = NODE_VERIFY_DEFAULTS };

static const struct command_example examples[] = {
	{ "pinfold verify", "check every container of this node" },
	{ "pinfold verify -o json", "the same, for programs" },
	{ "pinfold verify --cluster", "what the agents of all nodes report" },
	{ "pinfold verify --bundle saved.tar", "what was found when the bundle was made" },
	{ 0 },
};

static int verify_node(const struct verify_options *o, struct arena *a, struct err *err)
{
	struct node_verify v;
	int r = o->bundle.path ? bundle_input_verify(&o->bundle, a, &v, err) :
				 node_verify(&o->node, a, &v, err);

	return r < 0 ? r :
		       audit_print(&v.audit, &(struct audit_format){ o->output, o->strict, v.host },
				   a, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct verify_options *o = inv->options;
	struct cluster_report_options all = o->all;

	all.is_strict = o->strict;
	if (command_no_operands(inv, err) < 0 || cluster_report_check(&o->all, &o->bundle, err) < 0)
		return -EINVAL;
	if (o->all.cluster)
		return cluster_report_verify(&all, &o->bundle, output_format_of(o->output),
					     inv->arena, err);
	return verify_node(o, inv->arena, err);
}

const struct command cmd_verify = {
	.name = "verify",
	.group = COMMAND_TOOL,
	.summary = "compare CPU settings in the kernel with those of the agent",
	.operands = "",
	.about =
		"Compares the CPU settings that the agent (or its last status file) has for every\n"
		"container with the kernel: effective CPUs, weight, quota, and the allowed CPUs of "
		"every\n"
		"thread; also the cgroups of pods and pause containers. Lists foreign processes "
		"that may\n"
		"run on exclusive CPUs.\n"
		"Exit status 1 when something differs, when the agent is not running or not "
		"connected to\n"
		"the runtime, and when no container was checked.\n"
		"With --cluster, reads the NodePartitions of all nodes from the API server: nodes "
		"without\n"
		"one, or not partitioned as configured, conflicts, changes that wait, drift that "
		"was not\n"
		"corrected, agents that do not report, have another version, or advertise no "
		"cores. Exit\n"
		"status 1 when there is a finding or no node. Host files that a profile only "
		"reports\n"
		"(pinfold.io/host-configuration: report, the default) are findings with "
		"--strict.\n"
		"With --bundle, prints the result that a support bundle has of its node, or with "
		"--cluster\n"
		"checks the objects in it as of the time it was made.",
	.options = options,
	.options_size = sizeof(struct verify_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
