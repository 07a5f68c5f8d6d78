/* The hook of runtimes that have no NRI. Standard output belongs to the runtime (it reads the
 * configuration from there), so messages go to standard error only. */

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
#include "pools_options.h"

#define MAX_HOOK_INPUT ((size_t)4 << 20) /* far above any config.json; a bound for the arena */

struct oci_hook_options {
	struct oci_hook_config config;
	struct option_list policy_options, types, namespaces;
	const char *dialect;
	bool refuses_later;
};

#define AT(field) offsetof(struct oci_hook_options, config.field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR",
	  "directory of the agent's socket and the ledger (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR",
	  "mount point of the cgroup hierarchy (default: /sys/fs/cgroup)", NULL, AT(cgroup_root) },
	{ OPT_FLAG, 0, "allow-unpinned", NULL,
	  "start containers without CPU settings when the agent's socket exists and the agent does "
	  "not respond (default: refuse them)",
	  NULL, AT(allows_unpinned) },
	{ OPT_GROUP, 0, NULL, NULL, "Stage precreate", NULL, 0 },
	{ OPT_STR, 0, "id", "ID", "the container's id (default: taken from linux.cgroupsPath)",
	  NULL, AT(id) },
	{ OPT_FLAG, 0, "refuse-later", NULL,
	  "pass a refused container on, for stage create to refuse: podman shows the reason of "
	  "that stage only",
	  NULL, offsetof(struct oci_hook_options, refuses_later) },
	{ OPT_GROUP, 0, NULL, NULL, "While no agent runs", NULL, 0 },
	POOLS_OPTIONS(struct oci_hook_options, config.pools, policy_options, types),
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(topology) },
	{ OPT_ENUM, 0, "dialect", "NAME",
	  "legacy-2021 also accepts annotations and files of the 2021 enhancement",
	  "current|legacy-2021", offsetof(struct oci_hook_options, dialect) },
	{ OPT_STRS, 0, "allow-namespace", "NAMESPACE[=TYPE,...]",
	  "a namespace whose pods may use the management pool, or these workload types (default: "
	  "the permissions that the agent knew last)",
	  NULL, offsetof(struct oci_hook_options, namespaces) },
	{ 0 },
};

static const struct oci_hook_options defaults = {
	.config = {
		.pools = POOLS_DEFAULTS,
		.run_dir = AGENT_RUN_DIR,
		.cgroup_root = "/sys/fs/cgroup",
		.topology = "host",
		.proc = "/proc",
	},
};

static const struct command_example examples[] = {
	{ "pinfold oci-hook <config.json >adjusted.json",
	  "what podman does at precreate: the container starts on its CPUs" },
	{ "pinfold oci-hook create <state.json", "what a runtime does at createRuntime" },
	{ "pinfold oci-hook remove <state.json", "and at poststop" },
	{ "podman --hooks-dir /usr/local/share/pinfold/oci-hook run --cpus 2 --memory 1g IMAGE",
	  "a container with two exclusive CPUs" },
	{ 0 },
};

static int read_stage(const struct option_list *args, enum oci_stage *ret, struct err *err)
{
	static const struct {
		const char *name;
		enum oci_stage stage;
	} stages[] = {
		{ "precreate", OCI_PRECREATE },	 { "create", OCI_CREATE },
		{ "createRuntime", OCI_CREATE }, { "prestart", OCI_CREATE },
		{ "remove", OCI_REMOVE },	 { "poststop", OCI_REMOVE },
	};
	const char *name = args->n == 0 ? "precreate" : args->items[0];

	for (size_t i = 0; i < ARRAY_LEN(stages) && args->n <= 1; i++)
		if (strcmp(stages[i].name, name) == 0) {
			*ret = stages[i].stage;
			return 0;
		}
	return err_set(err, EINVAL,
		       "name one stage: precreate, create or remove (see pinfold oci-hook --help)");
}

/* One call of the hook. */
struct hook_call {
	enum oci_stage stage;
	struct str input; /* the container's configuration (precreate) or its state */
	struct oci_hook_result result;
	bool is_refused;
};

static int prepare(struct invocation *inv, struct hook_call *ret, struct err *err)
{
	struct oci_hook_options *o = inv->options;
	int r;

	/* Runtimes show standard error only when the hook fails. */
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	o->config.pools.policy_options = o->policy_options.items;
	o->config.pools.n_policy_options = o->policy_options.n;
	o->config.is_legacy = o->dialect && strcmp(o->dialect, "legacy-2021") == 0;
	o->config.pools.legacy_marker = o->config.is_legacy ? NAME_LEGACY_MARKER : NULL;
	o->config.pools.types = o->types.items;
	o->config.pools.n_types = o->types.n;
	o->config.allowed = (struct permission_flags){ o->namespaces.items, o->namespaces.n };
	r = permission_flags_check(&o->config.allowed, err);
	if (r == 0)
		r = read_stage(&inv->args, &ret->stage, err);
	if (r < 0)
		return r;
	if (ret->stage != OCI_PRECREATE && (o->config.id || o->refuses_later))
		return err_set(err, EINVAL, "--id and --refuse-later go with precreate only");
	return file_read_fd(STDIN_FILENO, ret->stage == OCI_PRECREATE ? "config" : "state",
			    MAX_HOOK_INPUT, inv->arena, &ret->input, err);
}

/* A refusal is a result, not a failure: its reason goes to standard error for the runtime. */
static int run_hook(struct invocation *inv, struct hook_call *call, struct err *err)
{
	const struct oci_hook_options *o = inv->options;
	const int r =
		oci_hook_run(&o->config, call->stage, call->input, inv->arena, &call->result, err);

	/* Every other error is a failure of the hook itself, with exit status 2. */
	call->is_refused = r == -ENOSPC || r == -EDOM || r == -EPERM || r == -EBUSY;
	if (!call->is_refused)
		return r;
	(void)fprintf(stderr, "container refused: %s\n", err->msg);
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct oci_hook_options *o = inv->options;
	struct hook_call call = { 0 };
	int r;

	r = prepare(inv, &call, err);
	if (r == 0)
		r = run_hook(inv, &call, err);
	if (r < 0)
		return err_wrap(err, "oci-hook"); /* the runtime prints it among its own messages */
	/* The runtime continues with the configuration on standard output, also with the unchanged
	 * one. */
	if (call.is_refused)
		return o->refuses_later ? output_text(call.input, err) : EXIT_FINDING;
	if (call.result.is_ignored)
		(void)fprintf(stderr, PRI_STR "\n", FMT_STR(call.result.text));
	return call.stage == OCI_PRECREATE ? output_text(call.result.adjusted, err) : EXIT_YES;
}

const struct command cmd_oci_hook = {
	.name = "oci-hook",
	.group = COMMAND_TOOL,
	.summary = "pin containers of podman and of runtimes without NRI",
	.operands = "[precreate|create|remove]",
	.about = "Called by the runtime. At precreate, the default stage, the hook reads the "
		 "container's\n"
		 "OCI configuration from standard input and writes it with its CPU settings to "
		 "standard\n"
		 "output, so that the container starts on its CPUs. At createRuntime (or prestart) "
		 "call\n"
		 "create, and at poststop remove, with the container's state on standard input.\n\n"
		 "The rules are the agent's: management annotations mean the management pool, a "
		 "limit\n"
		 "of whole CPUs together with a memory limit means exclusive CPUs, everything else "
		 "the\n"
		 "shared pool. The agent decides; while none runs, the hook decides with the same "
		 "ledger.\n"
		 "Exit status 1 means that the container is refused; the runtime does not start "
		 "it.",
	.options = options,
	.options_size = sizeof(struct oci_hook_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
