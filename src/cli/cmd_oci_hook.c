#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/oci_hook.h"
#include "agent/report.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "command.h"
#include "kube/names.h"

#define MAX_STATE ((size_t)1 << 20)

struct oci_hook_options {
	struct oci_hook_config config;
	struct option_list policy_options, namespaces;
};

#define AT(field) offsetof(struct oci_hook_options, config.field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR",
	  "the agent's directory, with its socket or the ledger (default: " REPORT_RUN_DIR ")",
	  NULL, AT(run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR", "where cgroups are mounted (default: /sys/fs/cgroup)",
	  NULL, AT(cgroup_root) },
	{ OPT_GROUP, 0, NULL, NULL, "While no agent runs", NULL, 0 },
	{ OPT_STR, 0, "reserved", "LIST", "CPUs of the platform", NULL, AT(pools.reserved) },
	{ OPT_STR, 0, "shared", "LIST", "CPUs of containers that own none", NULL,
	  AT(pools.shared) },
	{ OPT_STR, 0, "guaranteed", "LIST", "CPUs that containers get for themselves", NULL,
	  AT(pools.guaranteed) },
	{ OPT_STR, 0, "pools-file", "FILE",
	  "where the three lists stand otherwise (default: " NAME_POOLS_FILE ")", NULL,
	  AT(pools.pools_file) },
	{ OPT_STR, 0, "marker-file", "FILE",
	  "the kubelet marker, read when there is no pools file (default: " NAME_KUBELET_MARKER ")",
	  NULL, AT(pools.marker_file) },
	{ OPT_FLAG, 0, "fold-rest", NULL, "CPUs in no list are shared, instead of an error", NULL,
	  AT(pools.fold_rest) },
	{ OPT_STRS, 0, "policy-option", "NAME=VALUE",
	  "an option of the kubelet's static policy, such as full-pcpus-only=true", NULL,
	  offsetof(struct oci_hook_options, policy_options) },
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(topology) },
	{ OPT_STRS, 0, "allow-namespace", "NAME",
	  "a namespace whose pods may run on reserved CPUs (default: pods that look converted)",
	  NULL, offsetof(struct oci_hook_options, namespaces) },
	{ 0 },
};

static const struct oci_hook_options defaults = {
	.config = {
		.pools = { .pools_file = NAME_POOLS_FILE, .marker_file = NAME_KUBELET_MARKER },
		.run_dir = REPORT_RUN_DIR,
		.cgroup_root = "/sys/fs/cgroup",
		.topology = "host",
		.proc = "/proc",
	},
};

static const struct command_example examples[] = {
	{ "pinfold oci-hook create <state.json", "what a runtime does at createRuntime" },
	{ "pinfold oci-hook remove <state.json", "and at poststop" },
	{ "podman --hooks-dir /usr/local/share/pinfold/oci-hook run --cpus 2 --memory 1g IMAGE",
	  "a container that owns two CPUs" },
	{ 0 },
};

static int read_stage(const struct option_list *args, enum oci_stage *ret, struct err *err)
{
	static const struct {
		const char *word;
		enum oci_stage stage;
	} words[] = {
		{ "create", OCI_CREATE },   { "createRuntime", OCI_CREATE },
		{ "prestart", OCI_CREATE }, { "remove", OCI_REMOVE },
		{ "poststop", OCI_REMOVE }, { NULL, OCI_CREATE },
	};

	if (args->n == 1)
		for (size_t i = 0; words[i].word; i++)
			if (strcmp(words[i].word, args->items[0]) == 0) {
				*ret = words[i].stage;
				return 0;
			}
	return err_set(err, EINVAL,
		       "name one stage: create or remove (see pinfold oci-hook --help)");
}

static int run(struct invocation *inv, struct err *err)
{
	struct oci_hook_options *o = inv->options;
	struct oci_hook_result result = { 0 };
	enum oci_stage stage;
	struct str input;
	int r;

	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT); /* a runtime shows it when we fail */
	o->config.pools.policy_options = o->policy_options.items;
	o->config.pools.n_policy_options = o->policy_options.n;
	o->config.namespaces = o->namespaces.items;
	o->config.n_namespaces = o->namespaces.n;
	r = read_stage(&inv->args, &stage, err);
	if (r == 0)
		r = file_read_fd(STDIN_FILENO, "state", MAX_STATE, inv->arena, &input, err);
	if (r == 0)
		r = oci_hook_run(&o->config, stage, input, inv->arena, &result, err);
	if (r == -ENOSPC || r == -EDOM || r == -EPERM || r == -EBUSY) {
		(void)fprintf(stderr, "container refused: %s\n", err->msg);
		return EXIT_FINDING;
	}
	if (r < 0)
		return err_wrap(err, "oci-hook");
	if (result.is_ignored)
		(void)fprintf(stderr, PRI_STR "\n", FMT_STR(result.text));
	return EXIT_YES;
}

const struct command cmd_oci_hook = {
	.name = "oci-hook",
	.group = COMMAND_TOOL,
	.summary = "pin containers of podman and of runtimes without NRI",
	.operands = "create|remove",
	.about =
		"For the runtime to call, with a container's state on standard input: create at "
		"the\n"
		"stage createRuntime (or prestart), remove at poststop. The container gets its "
		"CPUs by\n"
		"the rules of the agent: management annotations the reserved ones, a whole number "
		"of\n"
		"CPUs as limit together with a limit of memory some of its own, all others the "
		"shared\n"
		"ones. The agent decides when one runs; else the hook does, with the same ledger.\n"
		"Exit status 1 when the container has no place: the runtime does not start it "
		"then.",
	.options = options,
	.options_size = sizeof(struct oci_hook_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
