/* Variables such as ASSET_INPUT_DIR are those of OpenShift's bootstrap, which starts `render` with
 * them instead of flags. */

#include "rendering.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "distro/distro.h"
#include "kube/names.h"
#include "layout_input.h"
#include "manifest_paths.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/openshift.h"

#define PROGRAM_MAX ((size_t)64 << 20)

const char *rendering_or_environment(const char *given, const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	if (given)
		return given;
	return value && *value ? value : otherwise;
}

bool rendering_is_for_hosts(const struct rendering_options *o)
{
	return o->target && strcmp(o->target, "host") == 0;
}

/* From the environment as well, so the option table has not checked it. */
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

static enum cpu_manager cpu_manager_of(const struct rendering_options *o)
{
	if (!o->cpu_manager)
		return CPU_MANAGER_DEFAULT;
	return strcmp(o->cpu_manager, "none") == 0 ? CPU_MANAGER_NONE : CPU_MANAGER_STATIC;
}

static int render_host(const struct rendering_options *o, struct layout_input *in,
		       struct file_set *files, struct err *err)
{
	struct host_options host = {
		.distro = distro_find(o->distro ? o->distro : "kubeadm"),
		.quota_keys = o->quota_keys,
		/* Keeps shared containers off the reserved CPUs (D23). OpenShift's operator leaves
		 * the option to the user. */
		.kubelet = { .cpu_manager = cpu_manager_of(o), .strict_reservation = true },
	};

	if (o->agent_program && host.distro == distro_get(DISTRO_TALOS))
		return err_set(err, EINVAL,
			       "--agent-program: Talos has no units; use deploy/overlays/talos");
	if (o->agent_program &&
	    file_read_at(AT_FDCWD, o->agent_program, PROGRAM_MAX, files->a, &host.program, err) < 0)
		return err_wrap(err, "--agent-program");
	return host_render(&in->layout, &host, files, &in->problems, err);
}

static int render_openshift(const struct rendering_options *o, struct layout_input *in,
			    struct file_set *files, struct err *err)
{
	const char *owner = rendering_or_environment(o->owner_ref, "OWNER_REF", "label-name");
	struct openshift_options openshift = {
		.quota_keys = o->quota_keys,
		.kubelet = { .cpu_manager = cpu_manager_of(o), .fill_reservations = true },
	};
	int r = owner_mode(owner, &openshift.owner, err);

	return r < 0 ? r : openshift_render(&in->layout, &openshift, files, &in->problems, err);
}

/* -f, and the comma-separated list of --asset-input-dir. With -f, OpenShift's variable and default
 * do not apply: they name the directories of the bootstrap, not what the user asked for. */
static struct option_list input_paths(const struct rendering_options *o, struct arena *a)
{
	const char *dirs = o->input_dir;
	struct option_list paths = { 0 };
	struct str_split split;
	struct str dir;

	if (!o->files.n)
		dirs = rendering_or_environment(dirs, "ASSET_INPUT_DIR", "/assets");
	split = str_split(str_from(dirs));
	while (dirs && str_next(&split, ',', &dir)) {
		paths.items = arena_one_more(a, paths.items, paths.n, sizeof(*paths.items));
		paths.items[paths.n++] = str_cstr(a, dir);
	}
	for (size_t i = 0; i < o->files.n; i++) {
		paths.items = arena_one_more(a, paths.items, paths.n, sizeof(*paths.items));
		paths.items[paths.n++] = o->files.items[i];
	}
	return paths;
}

/* An empty output looks like success, so the user learns why it is empty. OpenShift's bootstrap
 * renders every cluster, and one without partitioning and profiles has nothing to render. */
static int check_output(const struct rendering_options *o, struct layout_input *in,
			const struct file_set *files, struct err *err)
{
	const struct manifest *infra = &in->manifests.infrastructure;

	if (files->n || in->problems.n_errors)
		return 0;
	if (!infra->doc || rendering_is_for_hosts(o))
		return err_set(err, EINVAL,
			       "nothing to render: the input has no PerformanceProfile, and no "
			       "object says that the cluster is partitioned");
	problem_warn(&in->problems,
		     PROBLEM_AT(infra->doc, infra->object, "status." NAME_PARTITIONING_KEY),
		     "nothing to render: the cluster is not partitioned, and there is no "
		     "PerformanceProfile");
	return 0;
}

int rendering_prepare(const struct rendering_options *o, struct layout_input *in, struct err *err)
{
	if ((o->distro || o->agent_program) && !rendering_is_for_hosts(o))
		return err_set(err, EINVAL, "%s needs --target host",
			       o->distro ? "--distro" : "--agent-program");
	in->layout_options.plain_hosts = rendering_is_for_hosts(o);
	in->layout_options.allow_split_cores = o->allow_split_cores;
	return layout_input_topologies(in, &o->topologies, err);
}

int rendering_read(const struct rendering_options *o, struct layout_input *in, struct err *err)
{
	struct option_list paths = input_paths(o, in->manifests.a);

	return manifests_read(&in->manifests, &paths, &in->problems, err);
}

int rendering_render(const struct rendering_options *o, struct layout_input *in,
		     struct file_set *files, struct err *err)
{
	layout_input_resolve(in);
	return rendering_is_for_hosts(o) ? render_host(o, in, files, err) :
					   render_openshift(o, in, files, err);
}

int rendering_run(const struct rendering_options *o, struct layout_input *in,
		  struct file_set *files, struct err *err)
{
	int r = rendering_prepare(o, in, err);

	if (r == 0)
		r = rendering_read(o, in, err);
	if (r == 0)
		r = rendering_render(o, in, files, err);
	return r < 0 ? r : check_output(o, in, files, err);
}
