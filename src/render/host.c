/* The same partition for machines without OpenShift: what its operators, MachineConfigs and TuneD
 * do there is done here by drop-ins for systemd, the kubelet and the runtimes. No file of a
 * distribution is replaced, so that removing the drop-ins restores the machine. */

#include "host.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle.h"
#include "codec/problems.h"
#include "distro/distro.h"
#include "file_set.h"
#include "host_parts.h"
#include "kernel_args.h"
#include "kube/names.h"
#include "machine_config.h"
#include "node_files.h"
#include "object_build.h"
#include "pinning.h"
#include "profile/layout.h"
#include "scripts.h"
#include "tuned.h"
#include "workload_settings.h"

/* Services stay on the reserved CPUs: by affinity from the start, by cgroup because a
 * service can change its affinity. kubepods.slice is left out: the runtime and the agent set the
 * CPUs of containers. */
static void add_systemd(struct node_config *c, const struct partition *part, struct arena *a)
{
	static const struct {
		const char *unit, *section;
	} units[] = {
		{ "system.slice", "Slice" },
		{ "user.slice", "Slice" },
		{ "init.scope", "Scope" },
	};
	struct str cpus = cpuset_format(&part->cpus[PROFILE_RESERVED], a);

	node_config_add(c, "/etc/systemd/system.conf.d/50-pinfold.conf", MODE_PLAIN,
			str_printf(a, "[Manager]\nCPUAffinity=" PRI_STR "\n", FMT_STR(cpus)));
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		struct str path =
			str_printf(a, "/etc/systemd/system/%s.d/50-pinfold.conf", units[i].unit);

		node_config_add(c, path.p, MODE_PLAIN,
				str_printf(a, "[%s]\nAllowedCPUs=" PRI_STR "\n", units[i].section,
					   FMT_STR(cpus)));
	}
}

/* Work the kernel queues for no CPU in particular keeps off the isolated ones. */
static void add_tmpfiles(struct node_config *c, const struct partition *part, struct arena *a)
{
	struct cpuset set = kernel_args_housekeeping(part), isolated = kernel_args_isolated(part);

	if (cpuset_is_empty(&isolated))
		return;
	node_config_add(c, "/etc/tmpfiles.d/pinfold.conf", MODE_PLAIN,
			str_printf(a,
				   "w /sys/devices/virtual/workqueue/cpumask - - - - " PRI_STR "\n",
				   FMT_STR(cpuset_format_words(&set, a))));
}

static void add_kernel_args(struct node_config *c, const struct kernel_args *args, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < args->n; i++)
		strbuf_printf(&b, PRI_STR "\n", FMT_STR(args->items[i]));
	node_config_add(c, "/etc/pinfold/kernel-args", MODE_PLAIN, strbuf_str(&b));
	node_config_add(c, "/usr/local/sbin/pinfold-kernel-args", 0755,
			STR(PINFOLD_KERNEL_ARGS_SH));
}

struct host_rendering {
	const struct layout *layout;
	const struct host_options *options;
	struct file_set *files;
	struct problem_list *p;
};

/* What is configured for the machine as a whole. Nodes of kind share one that is not theirs. */
static void add_machine(struct node_config *config, const struct partition *part,
			const struct kernel_args *args, struct arena *a)
{
	add_systemd(config, part, a);
	add_tmpfiles(config, part, a);
	node_config_add(config, "/etc/tuned/pinfold/tuned.conf", MODE_PLAIN,
			tuned_host_conf(part, a));
	add_kernel_args(config, args, a);
}

/* kubeadm's name of a patch: the target, a suffix for the order, the type. */
static int add_kubeadm_patch(struct file_set *files, struct str dir, yyjson_mut_val *kubelet,
			     struct err *err)
{
	struct str text;
	int r = object_write(kubelet, files->a, &text, err);

	if (r == 0)
		file_set_add(files,
			     str_printf(files->a,
					PRI_STR "/kubeadm/kubeletconfiguration0+merge.yaml",
					FMT_STR(dir)),
			     MODE_PLAIN, text);
	return r;
}

/* The tree has the agent, when its program was given. Ignition and cloud-config have not: user data
 * is too small for a program. */
static int render_forms(struct host_rendering *h, struct str dir, const struct node_config *config,
			const struct kernel_args *args, struct err *err)
{
	struct file_set *files = h->files;
	struct node_config tree = *config;
	int r;

	if (h->options->program.n) {
		node_config_init(&tree, files->a);
		file_set_copy(&tree.files, &config->files);
		for (size_t i = 0; i < config->n_units; i++) {
			node_config_add_unit(&tree, config->units[i].name.p,
					     config->units[i].contents);
			tree.units[i].enabled = config->units[i].enabled;
		}
		host_add_agent(&tree, h->options->distro, h->options->program, files->a);
	}
	bundle_add_tree(files, dir, &tree, args);
	r = bundle_add_ignition(files, dir, config, args, err);
	return r < 0 ? r : bundle_add_cloud_config(files, dir, config, err);
}

int host_machine_build(const struct partition *part, bool pinned,
		       const struct host_options *options, struct arena *a,
		       struct host_machine *ret, struct problem_list *p, struct err *err)
{
	const struct distro *d = options->distro;
	const struct node_files_options nodes = { .pinned = pinned,
						  .quota_keys = options->quota_keys,
						  .plain_host = true,
						  .no_crio = !host_may_have_crio(d) };
	int r;

	*ret = (struct host_machine){ 0 };
	file_set_init(&ret->lines, a);
	kernel_args_check(part, a, p);
	kubelet_note_pools(part, &options->kubelet, p);
	kernel_args_build(part, a, &ret->args);
	ret->kubelet = kubelet_configuration(doc_build(a), part, &options->kubelet, a, p);
	if (d == distro_get(DISTRO_TALOS))
		return 0;
	node_files_build(part, &nodes, a, &ret->config);
	host_add_runtimes(&ret->config, d, part->text[PROFILE_RESERVED], a);
	r = host_add_kubelet(&ret->config, &ret->lines, d, ret->kubelet, err);
	if (r < 0)
		return r;
	if (d == distro_get(DISTRO_KIND))
		ret->args = (struct kernel_args){ 0 };
	else
		add_machine(&ret->config, part, &ret->args, a);
	return 0;
}

static int render_pool(struct host_rendering *h, const struct partition *part, struct err *err)
{
	const struct distro *d = h->options->distro;
	const struct str dir = part->pool->name;
	struct host_machine m;
	int r;

	r = host_machine_build(part, h->layout->pinned, h->options, h->files->a, &m, h->p, err);
	if (r < 0)
		return r;
	if (d == distro_get(DISTRO_TALOS))
		return talos_render(h->files, part, m.kubelet, &m.args, err);
	for (size_t i = 0; i < m.lines.n; i++)
		file_set_add(h->files,
			     str_printf(h->files->a, PRI_STR "/append" PRI_STR, FMT_STR(dir),
					FMT_STR(m.lines.items[i].path)),
			     MODE_PLAIN, m.lines.items[i].bytes);
	if (d == distro_get(DISTRO_KUBEADM) || d == distro_get(DISTRO_KIND))
		r = add_kubeadm_patch(h->files, dir, m.kubelet, err);
	return r < 0 ? r : render_forms(h, dir, &m.config, &m.args, err);
}

/* A pool of a partitioned cluster that no profile is for: its nodes must advertise the resource to
 * join (D7), and their management pods may use all CPUs. There are no kernel arguments. */
static int render_default(struct host_rendering *h, struct str pool, struct err *err)
{
	const struct install_config *install = &h->layout->install;
	const struct kernel_args none = { NULL, 0 };
	struct node_config config, settings;
	struct arena *a = h->files->a;

	/* A machine configuration has no place for these files. */
	if (h->options->distro == distro_get(DISTRO_TALOS))
		return 0;
	node_files_bootstrap(&(struct default_files){ true, host_may_have_crio(h->options->distro) ?
								    NAME_CRIO_DEFAULT :
								    NULL },
			     h->options->quota_keys, a, &config);
	host_add_runtimes(&config, h->options->distro, STR(""), a);
	if (install->n_settings) {
		workload_settings_build(install, h->options->quota_keys, a, &settings);
		file_set_copy(&config.files, &settings.files);
		for (size_t i = 0; i < settings.n_units; i++)
			node_config_add_unit(&config, settings.units[i].name.p,
					     settings.units[i].contents);
	}
	return render_forms(h, pool, &config, &none, err);
}

int host_render(const struct layout *layout, const struct host_options *options,
		struct file_set *files, struct problem_list *p, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch; /* of one pool: a cluster may have many */
	struct file_set pool;
	struct host_rendering h = { layout, options, &pool, p };
	int r = 0;

	arena_init(&scratch, 0);
	for (size_t i = 0; i < layout->n_partitions && r == 0; i++) {
		arena_reset(&scratch);
		file_set_init(&pool, &scratch);
		r = render_pool(&h, &layout->partitions[i], err);
		file_set_copy(files, &pool);
	}
	for (size_t i = 0; i < layout->n_bootstrap && r == 0; i++) {
		/* The directory of a profile is complete: nothing merges two, as MachineConfigs are
		 * merged. */
		if (layout_find(layout, layout->bootstrap[i]))
			continue;
		arena_reset(&scratch);
		file_set_init(&pool, &scratch);
		r = render_default(&h, layout->bootstrap[i], err);
		file_set_copy(files, &pool);
	}
	return r;
}
