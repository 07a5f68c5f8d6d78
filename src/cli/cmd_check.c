/* Facts are read, then decided on, both in src/preflight; here is what to look at, and how long. */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agentclient/run_dir.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "check_print.h"
#include "cluster/api_sync.h"
#include "command.h"
#include "distro/distro.h"
#include "output.h"
#include "preflight/cluster_read.h"
#include "preflight/machine_read.h"

#define WAIT_MAX_S UINT64_C(86400)
#define WAIT_STEP_S 2

struct check_options {
	const char *scope, *kubeconfig, *context, *output, *wait;
	struct machine_source node;
	bool strict;
};

#define AT(field) offsetof(struct check_options, field)

static const struct option_desc options[] = {
	{ OPT_ENUM, 0, "scope", "WHAT",
	  "what is checked: this node, the cluster or both (default: the node; with --kubeconfig "
	  "also the cluster, and the node only where a distribution is detected)",
	  "node|cluster|all", AT(scope) },
	{ OPT_STR, 0, "kubeconfig", "FILE",
	  "check the cluster of this file (default with --scope cluster or all: $KUBECONFIG, "
	  "~/.kube/config, or the pod's service account)",
	  NULL, AT(kubeconfig) },
	{ OPT_STR, 0, "context", "NAME", "context of the kubeconfig (default: the current one)",
	  NULL, AT(context) },
	{ OPT_ENUM, 0, "distro", "NAME", "the node's distribution (default: as detected)",
	  DISTRO_CHOICES, AT(node.distro) },
	{ OPT_STR, 0, "root", "DIR",
	  "check the files of a node below this directory; sockets and the agent are not tried",
	  NULL, AT(node.root) },
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(node.run_dir) },
	{ OPT_STR, 0, "wait", "DURATION",
	  "repeat the checks until they pass, for at most this time, such as 90s or 5m", NULL,
	  AT(wait) },
	{ OPT_FLAG, 0, "strict", NULL, "exit status 1 for warnings, too", NULL, AT(strict) },
	OUTPUT_OPTION(struct check_options, output),
	{ 0 },
};

static const struct check_options defaults = { .node = { .run_dir = AGENT_RUN_DIR } };

static const struct command_example examples[] = {
	{ "pinfold check", "before the installation, or when something is wrong: this node" },
	{ "pinfold check --scope cluster", "the cluster of the current kubeconfig" },
	{ "pinfold check --scope cluster --wait 5m", "wait until an installation is complete" },
	{ "pinfold check -o json --strict", "for programs; warnings fail, too" },
	{ 0 },
};

/* "90s", "5m", "1h"; a bare number is seconds. */
static int parse_wait(const char *text, uint64_t *ret_s, struct err *err)
{
	struct str s = str_from(text);
	uint64_t unit = 1, n;

	if (s.n && strchr("smh", s.p[s.n - 1])) {
		unit = s.p[s.n - 1] == 'm' ? 60 : s.p[s.n - 1] == 'h' ? 3600 : 1;
		s.n--;
	}
	if (!str_to_u64(s, WAIT_MAX_S / unit, &n))
		return err_set(
			err, EINVAL,
			"--wait: \"%s\" is not a duration such as 90s or 5m of at most a day",
			text);
	*ret_s = n * unit;
	return 0;
}

static bool covers(const struct check_options *o, const char *what)
{
	return o->scope && (strcmp(o->scope, what) == 0 || strcmp(o->scope, "all") == 0);
}

static int check_node(const struct check_options *o, struct preflight_report *r, struct err *err)
{
	struct machine_facts *facts = arena_new(r->a, struct machine_facts);
	int result = machine_read(&o->node, r->a, facts, err);

	if (result < 0)
		return result;
	/* With a kubeconfig on another machine than a node, only the cluster is meant. */
	if (o->scope || !o->kubeconfig || facts->distro.is_detected || o->node.root)
		preflight_node(facts, r);
	return 0;
}

static int check_cluster(const struct check_options *o, struct preflight_report *r, struct err *err)
{
	struct cluster_facts *facts = arena_new(r->a, struct cluster_facts);
	struct kubeconfig kubeconfig;
	int result = api_sync_find_kubeconfig(o->kubeconfig, o->context, r->a, &kubeconfig, err);

	if (result == 0)
		result = cluster_facts_read(&kubeconfig, STR(PINFOLD_VERSION), r->a, facts, err);
	if (result == 0)
		preflight_cluster(facts, r);
	return result;
}

static int check_once(const struct check_options *o, struct preflight_report *r, struct err *err)
{
	int result = 0;

	if (!o->scope || covers(o, "node"))
		result = check_node(o, r, err);
	if (result == 0 && ((!o->scope && o->kubeconfig) || covers(o, "cluster")))
		result = check_cluster(o, r, err);
	return result;
}

static bool passes(const struct check_options *o, const struct preflight_report *r)
{
	return r->count[PREFLIGHT_FAILURE] == 0 && !(o->strict && r->count[PREFLIGHT_WARNING]);
}

static time_t now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct check_options *o = inv->options;
	CLEANUP(arena_done) struct arena a; /* of one round; options are in the other one */
	struct preflight_report report;
	uint64_t wait_s = 0;
	time_t end_s;
	int r;

	arena_init(&a, 0);
	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (o->wait && parse_wait(o->wait, &wait_s, err) < 0)
		return -EINVAL;
	if (o->context && !o->kubeconfig && !covers(o, "cluster"))
		return err_set(err, EINVAL, "--context needs --kubeconfig or --scope cluster");
	end_s = now_s() + (time_t)wait_s;
	for (;;) {
		arena_reset(&a);
		preflight_report_init(&report, &a);
		r = check_once(o, &report, err);
		if (r < 0 || passes(o, &report) || now_s() >= end_s)
			break;
		(void)nanosleep(&(struct timespec){ .tv_sec = WAIT_STEP_S }, NULL);
	}
	if (r == 0)
		r = check_print(&report, output_format_of(o->output), &a, err);
	if (r < 0)
		return r;
	return passes(o, &report) ? EXIT_YES : EXIT_FINDING;
}

const struct command cmd_check = {
	.name = "check",
	.group = COMMAND_TOOL,
	.summary = "check that a node and a cluster are fit for Pinfold, and what is wrong",
	.operands = "",
	.about =
		"Checks a node (distribution, kernel, CPUs and pools, container runtime and NRI, "
		"kubelet,\n"
		"agent) and, with a kubeconfig, the cluster (API server, CRDs, policies, webhook "
		"and its\n"
		"certificate, nodes, versions). Every finding is ok, a note, a warning or a "
		"failure, and\n"
		"has a remedy. Nothing is changed: the one pod that is sent to the API server is a "
		"dry run.\n"
		"Exit status 1 when there is a failure.",
	.options = options,
	.options_size = sizeof(struct check_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
