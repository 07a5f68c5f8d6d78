#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/problems.h"
#include "command.h"
#include "input.h"
#include "output.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/openshift.h"
#include "write_set.h"

struct render_options {
	const char *input_dir;
	const char *output_dir;
	const char *owner_ref;
	const char *target;
	const char *cpu_manager;
	bool quota_keys;
	bool allow_split_cores;
	bool force;
};

static const struct option_desc options[] = {
	{ OPT_STR, 0, "asset-input-dir", "DIR[,DIR]",
	  "manifests: install-config, Infrastructure, pools, profiles (default: /assets)", NULL,
	  offsetof(struct render_options, input_dir) },
	{ OPT_STR, 0, "asset-output-dir", "DIR", "where the files go; must be empty or missing",
	  NULL, offsetof(struct render_options, output_dir) },
	{ OPT_ENUM, 0, "owner-ref", "MODE",
	  "how objects name their profile: by label, by Kubernetes owner, not (default: "
	  "label-name)",
	  "label-name|k8s|none", offsetof(struct render_options, owner_ref) },
	{ OPT_ENUM, 0, "target", "WHAT",
	  "objects for OpenShift, or files for any host (default: openshift)", "openshift|host",
	  offsetof(struct render_options, target) },
	{ OPT_ENUM, 0, "cpu-manager", "POLICY",
	  "who hands out guaranteed CPUs: the kubelet (static) or Pinfold's agent (none)",
	  "static|none", offsetof(struct render_options, cpu_manager) },
	{ OPT_FLAG, 0, "quota-keys", NULL, "write cpuquota and cpuperiod into CRI-O's drop-in",
	  NULL, offsetof(struct render_options, quota_keys) },
	{ OPT_FLAG, 0, "allow-split-cores", NULL, "only warn of SMT siblings in different sets",
	  NULL, offsetof(struct render_options, allow_split_cores) },
	{ OPT_FLAG, 0, "force", NULL, "replace files in an output directory that is not empty",
	  NULL, offsetof(struct render_options, force) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold render --asset-input-dir manifests --asset-output-dir out",
	  "OpenShift's MachineConfigs and the rest, from a directory of manifests" },
	{ 0 },
};

/* OpenShift's bootstrap sets these; the flag wins. An empty directory counts as none given. */
static const char *or_environment(const char *given, const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	if (given)
		return given;
	return value && *value ? value : otherwise;
}

static int owner_mode(const char *name, enum owner_mode *ret, struct err *err)
{
	if (strcmp(name, "label-name") == 0)
		*ret = OWNER_LABEL_NAME;
	else if (strcmp(name, "k8s") == 0)
		*ret = OWNER_K8S;
	else if (strcmp(name, "none") == 0)
		*ret = OWNER_NONE;
	else
		return err_set(err, EINVAL, "unsupported owner reference: \"%s\"", name);
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct render_options *o = inv->options;
	const char *input = or_environment(o->input_dir, "ASSET_INPUT_DIR", "/assets");
	const char *output = or_environment(o->output_dir, "ASSET_OUTPUT_DIR", NULL);
	struct openshift_options openshift = { .quota_keys = o->quota_keys };
	struct layout_options layout_options = { .allow_split_cores = o->allow_split_cores };
	struct manifests ms;
	struct problems problems;
	struct file_set files;
	struct layout layout;
	int r;

	r = owner_mode(or_environment(o->owner_ref, "OWNER_REF", "label-name"), &openshift.owner,
		       err);
	if (r < 0)
		return r;
	if (!output)
		return err_set(err, EINVAL, "--asset-output-dir must be given");
	manifests_init(&ms, inv->arena);
	problems_init(&problems, inv->arena);
	file_set_init(&files, inv->arena);
	r = input_read_list(&ms, input, &problems, err);
	if (r < 0)
		return r;
	layout_resolve(&ms, &layout_options, inv->arena, &layout, &problems);
	r = openshift_render(&layout, &openshift, &files, &problems, err);
	if (r < 0)
		return r;
	(void)fputs(str_cstr(inv->arena, problems_format(&problems, inv->arena)), stderr);
	if (problems.n_errors)
		return err_set(err, EINVAL, "%zu problems; nothing was written", problems.n_errors);
	return write_set(&files, output, o->force, err);
}

const struct command cmd_render = {
	.name = "render",
	.group = COMMAND_TOOL,
	.summary = "write every file from install-config and profiles",
	.operands = "",
	.about = "Reads manifests and writes what machines need.",
	.options = options,
	.options_size = sizeof(struct render_options),
	.examples = examples,
	.run = run,
};
