/* The agent's settings against the kernel, read by another process than the agent, so that a
 * setting which the agent failed to write is found, too. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/node_audit.h"
#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "audit_print.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/audit.h"
#include "cluster_report.h"
#include "command.h"
#include "output.h"

struct verify_options {
	const char *run_dir, *cgroup_root, *proc, *output;
	bool strict;
	struct cluster_report_options all;
};

#define AT(field) offsetof(struct verify_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR",
	  "mount point of the cgroup hierarchy (default: /sys/fs/cgroup)", NULL, AT(cgroup_root) },
	{ OPT_STR, 0, "proc", "DIR", "mount point of procfs (default: /proc)", NULL, AT(proc) },
	AUDIT_STRICT_OPTION(struct verify_options),
	OUTPUT_OPTION(struct verify_options, output),
	CLUSTER_REPORT_OPTIONS(struct verify_options, all),
	{ 0 },
};

static const struct verify_options defaults = { .run_dir = AGENT_RUN_DIR,
						.cgroup_root = "/sys/fs/cgroup",
						.proc = "/proc" };

static const struct command_example examples[] = {
	{ "pinfold verify", "check every container of this node" },
	{ "pinfold verify -o json", "the same, for programs" },
	{ "pinfold verify --cluster", "what the agents of all nodes report" },
	{ 0 },
};

static int verify_node(const struct verify_options *o, struct arena *a, struct err *err)
{
	CLEANUP(cgroup_done) struct cgroup_fs fs = { .cpu_fd = -1, .cpuset_fd = -1 };
	AUTO_CLOSE int proc = open(o->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct audit audit;
	struct agent_status status;
	int r;

	if (proc < 0)
		return err_set(err, errno, "open %s: %s", o->proc, strerror(errno));
	/* The expected settings first: what the agent changes afterwards is compared with an older
	 * expectation and may be reported once. */
	r = status_client_read(o->run_dir, a, &status, err);
	if (r == 0)
		r = cgroup_open(&fs, o->cgroup_root, err);
	if (r == 0)
		r = node_audit(&(struct node_audit_source){ &fs, proc, status.is_running },
			       status.doc.root, a, &audit, err);
	if (r < 0)
		return r;
	return audit_print(&audit,
			   &(struct audit_format){
				   o->output,
				   o->strict,
				   { doc_str(doc_find(status.doc.root, "/pools/management/cpus")),
				     fs.version } },
			   a, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct verify_options *o = inv->options;

	if (command_no_operands(inv, err) < 0 || cluster_report_check(&o->all, err) < 0)
		return -EINVAL;
	if (o->all.cluster)
		return cluster_report_verify(&o->all, output_format_of(o->output), inv->arena, err);
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
		"status 1 when there is a finding or no node.",
	.options = options,
	.options_size = sizeof(struct verify_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
