/* Nothing is written unless the whole input is valid: a directory that is half written could be
 * applied by the installer. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "layout_input.h"
#include "render/file_set.h"
#include "rendering.h"
#include "write_set.h"

struct render_options {
	struct rendering_options rendering;
	const char *output_dir;
	bool force;
};

static const struct option_desc options[] = {
	RENDERING_OPTIONS(struct render_options, rendering),
	{ OPT_STR, 0, "asset-output-dir", "DIR", "the output directory; must be empty or not exist",
	  NULL, offsetof(struct render_options, output_dir) },
	{ OPT_FLAG, 0, "force", NULL, "replace files in an output directory that is not empty",
	  NULL, offsetof(struct render_options, force) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold render --asset-input-dir manifests --asset-output-dir out",
	  "OpenShift's MachineConfigs and the rest, from a directory of manifests" },
	{ "pinfold render --target host --asset-input-dir profile.yaml --asset-output-dir out",
	  "files for machines without OpenShift; then out/worker/install.sh on each worker" },
	{ "pinfold render --topology 'pack:2 numa:1 core:16 pu:2' --asset-input-dir m "
	  "--asset-output-dir "
	  "out",
	  "also check the profiles against two sockets of 16 cores" },
	{ 0 },
};

static int run(struct invocation *inv, struct err *err)
{
	const struct render_options *o = inv->options;
	const char *output = rendering_or_environment(o->output_dir, "ASSET_OUTPUT_DIR", NULL);
	struct file_set files;
	struct layout_input in;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (!output)
		return err_set(err, EINVAL, "--asset-output-dir must be given");
	layout_input_init(&in, inv->arena);
	file_set_init(&files, inv->arena);
	r = rendering_run(&o->rendering, &in, &files, err);
	if (r < 0)
		return r;
	/* Warnings are printed although the files are written. */
	layout_input_print_problems(&in);
	r = layout_input_check(&in, "nothing was written", err);
	if (r >= 0)
		r = write_set(&files, output, o->force, err);
	if (r >= 0 && files.n && rendering_is_for_hosts(&o->rendering))
		command_success(inv,
				"%zu files in %s; next: run install.sh of its pool on each node",
				files.n, output);
	else if (r >= 0 && files.n)
		command_success(inv, "%zu files in %s; next: oc apply -f %s", files.n, output,
				output);
	return r;
}

const struct command cmd_render = {
	.name = "render",
	.group = COMMAND_TOOL,
	.summary = "write node files from an install-config and profiles",
	.operands = "",
	.about = "Reads manifests (install-config, Infrastructure, MachineConfigPools,\n"
		 "PerformanceProfiles, Nodes; YAML or JSON, other kinds are ignored) and writes "
		 "the node\n"
		 "configuration: for OpenShift the objects that its Node Tuning Operator renders, "
		 "for\n"
		 "other hosts one directory per machine config pool with files, install.sh, "
		 "Ignition,\n"
		 "cloud-config and kubeadm patches. All problems are reported. When there is an "
		 "error, or\n"
		 "the output directory is not empty, nothing is written.",
	.options = options,
	.options_size = sizeof(struct render_options),
	.examples = examples,
	.reports_success = true,
	.run = run,
};
