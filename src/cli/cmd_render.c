#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "input.h"
#include "intake.h"
#include "output.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/openshift.h"
#include "write_set.h"

struct render_options {
	const char *input_dir;
	const char *output_dir;
	const char *owner_ref;
	const char *target;
	const char *cpu_manager;
	struct option_list topologies;
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
	{ OPT_ENUM, 0, "target", "WHAT",
	  "objects for OpenShift, or files for any host (default: openshift)", "openshift|host",
	  offsetof(struct render_options, target) },
	{ OPT_ENUM, 0, "owner-ref", "MODE",
	  "how objects name their profile: label, owner, not at all (default: label-name)",
	  "none|k8s|label-name", offsetof(struct render_options, owner_ref) },
	TOPOLOGY_OPTION(struct render_options, topologies),
	{ OPT_ENUM, 0, "cpu-manager", "POLICY",
	  "who hands out guaranteed CPUs: the kubelet (static) or our agent (none)", "static|none",
	  offsetof(struct render_options, cpu_manager) },
	{ OPT_FLAG, 0, "quota-keys", NULL, "write cpuquota and cpuperiod into CRI-O's drop-in",
	  NULL, offsetof(struct render_options, quota_keys) },
	SPLIT_CORES_OPTION(struct render_options, allow_split_cores),
	{ OPT_FLAG, 0, "force", NULL, "replace files in an output directory that is not empty",
	  NULL, offsetof(struct render_options, force) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold render --asset-input-dir manifests --asset-output-dir out",
	  "OpenShift's MachineConfigs and the rest, from a directory of manifests" },
	{ "pinfold render --target host --asset-input-dir profile.yaml --asset-output-dir out",
	  "files for machines without OpenShift; then out/worker/install.sh on each worker" },
	{ "pinfold render --topology 'pack:2 core:16 pu:2' --asset-input-dir m --asset-output-dir "
	  "out",
	  "also check the profiles against two sockets of 16 cores" },
	{ 0 },
};

/* OpenShift's bootstrap sets these; the flag wins. An empty value counts as none. */
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

static bool is_host(const struct render_options *o)
{
	return o->target && strcmp(o->target, "host") == 0;
}

static enum cpu_manager cpu_manager_of(const struct render_options *o)
{
	return o->cpu_manager && strcmp(o->cpu_manager, "none") == 0 ? CPU_MANAGER_NONE :
								       CPU_MANAGER_STATIC;
}

static int render_host(const struct render_options *o, struct intake *in, struct file_set *files,
		       struct err *err)
{
	const struct host_options host = {
		.quota_keys = o->quota_keys,
		.kubelet = { .cpu_manager = cpu_manager_of(o), .strict_reservation = true },
	};

	return host_render(&in->layout, &host, files, &in->problems, err);
}

static int render_openshift(const struct render_options *o, struct intake *in,
			    struct file_set *files, struct err *err)
{
	struct openshift_options openshift = {
		.quota_keys = o->quota_keys,
		.kubelet = { .cpu_manager = cpu_manager_of(o), .fill_reservations = true },
	};
	int r = owner_mode(or_environment(o->owner_ref, "OWNER_REF", "label-name"),
			   &openshift.owner, err);

	return r < 0 ? r : openshift_render(&in->layout, &openshift, files, &in->problems, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct render_options *o = inv->options;
	const char *output = or_environment(o->output_dir, "ASSET_OUTPUT_DIR", NULL);
	struct file_set files;
	struct intake in;
	int r;

	if (inv->args.n)
		return err_set(err, EINVAL, "unexpected \"%s\" (see pinfold render --help)",
			       inv->args.items[0]);
	if (!output)
		return err_set(err, EINVAL, "--asset-output-dir must be given");
	intake_init(&in, inv->arena);
	file_set_init(&files, inv->arena);
	in.layout_options.plain_hosts = is_host(o);
	in.layout_options.allow_split_cores = o->allow_split_cores;
	r = intake_topologies(&in, &o->topologies, err);
	if (r == 0)
		r = input_read_list(&in.manifests,
				    or_environment(o->input_dir, "ASSET_INPUT_DIR", "/assets"),
				    &in.problems, err);
	if (r < 0)
		return r;
	intake_resolve(&in);
	r = is_host(o) ? render_host(o, &in, &files, err) : render_openshift(o, &in, &files, err);
	if (r < 0)
		return r;
	intake_complain(&in);
	r = intake_refuse(&in, "nothing was written", err);
	return r < 0 ? r : write_set(&files, output, o->force, err);
}

const struct command cmd_render = {
	.name = "render",
	.group = COMMAND_TOOL,
	.summary = "write every file from install-config and profiles",
	.operands = "",
	.about =
		"Reads manifests (install-config, Infrastructure, MachineConfigPools,\n"
		"PerformanceProfiles, Nodes; YAML or JSON, other kinds are passed over) and "
		"writes\n"
		"what machines need: for OpenShift the objects its Node Tuning Operator would\n"
		"render, for other hosts one directory per pool with files, install.sh, Ignition,\n"
		"cloud-config and kubeadm patches. All problems are reported at once; when there\n"
		"is one, or the output directory is not empty, nothing is written.",
	.options = options,
	.options_size = sizeof(struct render_options),
	.examples = examples,
	.run = run,
};
