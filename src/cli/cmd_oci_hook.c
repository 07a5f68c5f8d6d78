#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentclient/run_dir.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "command.h"
#include "kube/names.h"
#include "oci/oci_hook.h"
#include "output.h"

#define MAX_HOOK_INPUT ((size_t)4 << 20)

struct oci_hook_options {
	struct oci_hook_config config;
	struct option_list policy_options, namespaces;
	bool refuses_later;
};

#define AT(field) offsetof(struct oci_hook_options, config.field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR",
	  "the agent's directory, with its socket or the ledger (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR", "where cgroups are mounted (default: /sys/fs/cgroup)",
	  NULL, AT(cgroup_root) },
	{ OPT_GROUP, 0, NULL, NULL, "The stage precreate", NULL, 0 },
	{ OPT_STR, 0, "id", "ID", "the container's (default: as its linux.cgroupsPath ends)", NULL,
	  AT(id) },
	{ OPT_FLAG, 0, "refuse-later", NULL,
	  "who has no place passes, for create to refuse: podman shows the reason of that stage "
	  "only",
	  NULL, offsetof(struct oci_hook_options, refuses_later) },
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
		.run_dir = AGENT_RUN_DIR,
		.cgroup_root = "/sys/fs/cgroup",
		.topology = "host",
		.proc = "/proc",
	},
};

static const struct command_example examples[] = {
	{ "pinfold oci-hook <config.json >adjusted.json",
	  "what podman does at precreate: the container is born on its CPUs" },
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
		{ "precreate", OCI_PRECREATE },	 { "create", OCI_CREATE },
		{ "createRuntime", OCI_CREATE }, { "prestart", OCI_CREATE },
		{ "remove", OCI_REMOVE },	 { "poststop", OCI_REMOVE },
	};
	const char *word = args->n == 0 ? "precreate" : args->items[0];

	for (size_t i = 0; i < ARRAY_LEN(words) && args->n <= 1; i++)
		if (strcmp(words[i].word, word) == 0) {
			*ret = words[i].stage;
			return 0;
		}
	return err_set(err, EINVAL,
		       "name one stage: precreate, create or remove (see pinfold oci-hook --help)");
}

static int check_options(const struct oci_hook_options *o, enum oci_stage stage, struct err *err)
{
	if (stage != OCI_PRECREATE && (o->config.id || o->refuses_later))
		return err_set(err, EINVAL, "--id and --refuse-later go with precreate only");
	return 0;
}

static bool is_refusal(int r)
{
	return r == -ENOSPC || r == -EDOM || r == -EPERM || r == -EBUSY;
}

static int run(struct invocation *inv, struct err *err)
{
	struct oci_hook_options *o = inv->options;
	struct oci_hook_result result = { 0 };
	enum oci_stage stage = OCI_PRECREATE;
	struct str input = { 0 };
	int r;

	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT); /* a runtime shows it when we fail */
	o->config.pools.policy_options = o->policy_options.items;
	o->config.pools.n_policy_options = o->policy_options.n;
	o->config.namespaces = o->namespaces.items;
	o->config.n_namespaces = o->namespaces.n;
	r = read_stage(&inv->args, &stage, err);
	if (r == 0)
		r = check_options(o, stage, err);
	if (r == 0)
		r = file_read_fd(STDIN_FILENO, stage == OCI_PRECREATE ? "config" : "state",
				 MAX_HOOK_INPUT, inv->arena, &input, err);
	if (r < 0)
		return err_wrap(err, "oci-hook");
	r = oci_hook_run(&o->config, stage, input, inv->arena, &result, err);
	if (is_refusal(r)) {
		(void)fprintf(stderr, "container refused: %s\n", err->msg);
		return o->refuses_later ? output_text(input, err) : EXIT_FINDING;
	}
	if (r < 0)
		return err_wrap(err, "oci-hook");
	if (result.is_ignored)
		(void)fprintf(stderr, PRI_STR "\n", FMT_STR(result.text));
	return stage == OCI_PRECREATE ? output_text(result.adjusted, err) : EXIT_YES;
}

const struct command cmd_oci_hook = {
	.name = "oci-hook",
	.group = COMMAND_TOOL,
	.summary = "pin containers of podman and of runtimes without NRI",
	.operands = "[precreate|create|remove]",
	.about = "For the runtime to call. At precreate, which is meant when no stage is named, "
		 "the\n"
		 "container's OCI configuration goes from standard input to standard output with "
		 "its\n"
		 "CPUs in it, so that it is born there. At createRuntime (or prestart) call "
		 "create,\n"
		 "and at poststop remove, with the container's state on standard input. It gets "
		 "its\n"
		 "CPUs by the rules of the agent: management annotations the reserved ones, a "
		 "whole\n"
		 "number of CPUs as limit together with a limit of memory some of its own, all "
		 "others\n"
		 "the shared ones. The agent decides when one runs; else the hook does, with the "
		 "same\n"
		 "ledger. Exit status 1 when the container has no place: the runtime does not "
		 "start it\n"
		 "then.",
	.options = options,
	.options_size = sizeof(struct oci_hook_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
