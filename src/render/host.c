/* The same partition for machines without OpenShift: what its operators, MachineConfigs and TuneD
 * do there is done here by drop-ins for systemd, the kubelet and the runtimes. No file of a
 * distribution is replaced, so that removing the drop-ins restores the machine. */

#include "host.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle.h"
#include "codec/problems.h"
#include "codec/toml.h"
#include "file_set.h"
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

#define KUBELET_DROPIN_DIR "/etc/kubernetes/kubelet.conf.d"

/* The runtime talks to the agent over NRI; containerd 1.7 has it off. Of a plugin's table the last
 * file read wins as a whole, so every key is given. */
static struct str containerd_nri(struct arena *a)
{
	const struct str table[] = { STR("plugins"), STR("io.containerd.nri.v1.nri") };
	struct strbuf b;

	strbuf_init(&b, a);
	toml_int(&b, STR("version"), 2); /* read by containerd 1.6 to 2.x */
	toml_table(&b, table, 2);
	toml_bool(&b, STR("disable"), false);
	toml_bool(&b, STR("disable_connections"), false);
	toml_str(&b, STR("plugin_config_path"), STR("/etc/nri/conf.d"));
	toml_str(&b, STR("plugin_path"), STR("/opt/nri/plugins"));
	toml_str(&b, STR("plugin_registration_timeout"), STR("5s"));
	toml_str(&b, STR("plugin_request_timeout"), STR("2s"));
	toml_str(&b, STR("socket_path"), STR("/var/run/nri/nri.sock"));
	return strbuf_str(&b);
}

static struct str crio_nri(struct str infra_cpus, struct arena *a)
{
	const struct str runtime[] = { STR("crio"), STR("runtime") };
	const struct str nri[] = { STR("crio"), STR("nri") };
	struct strbuf b;

	strbuf_init(&b, a);
	if (infra_cpus.n) {
		toml_table(&b, runtime, 2);
		toml_str(&b, STR("infra_ctr_cpuset"), infra_cpus);
	}
	toml_table(&b, nri, 2);
	toml_bool(&b, STR("enable_nri"), true);
	return strbuf_str(&b);
}

/* For both runtimes, because a profile does not say which one its machines have. */
static void add_runtimes(struct node_config *c, struct str infra_cpus, struct arena *a)
{
	node_config_add(c, "/etc/containerd/conf.d/50-pinfold.toml", MODE_PLAIN, containerd_nri(a));
	node_config_add(c, NAME_CRIO_DIR "50-pinfold.conf", MODE_PLAIN, crio_nri(infra_cpus, a));
}

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

static void add_kubelet(struct node_config *c, struct str configuration)
{
	node_config_add(c, KUBELET_DROPIN_DIR "/50-pinfold.conf", MODE_PLAIN, configuration);
	/* kubeadm's unit passes this variable to the kubelet. "50-" sorts after its own drop-in
	 * "10-kubeadm.conf", which sets the variable without --config-dir. */
	node_config_add(
		c, "/etc/systemd/system/kubelet.service.d/50-pinfold.conf", MODE_PLAIN,
		STR("[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/"
		    "config.yaml "
		    "--config-dir=" KUBELET_DROPIN_DIR "\"\n"));
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

static int render_bundle(struct file_set *files, struct str dir, const struct node_config *config,
			 const struct kernel_args *args, struct err *err)
{
	int r;

	bundle_add_tree(files, dir, config, args);
	r = bundle_add_ignition(files, dir, config, args, err);
	return r < 0 ? r : bundle_add_cloud_config(files, dir, config, err);
}

struct host_rendering {
	const struct layout *layout;
	const struct host_options *options;
	struct file_set *files;
	struct problem_list *p;
};

static int render_pool(struct host_rendering *h, const struct partition *part, struct err *err)
{
	const struct node_files_options nodes = { h->layout->pinned, h->options->quota_keys, true };
	const struct kubelet_options *kubelet = &h->options->kubelet;
	struct arena *a = h->files->a;
	yyjson_mut_doc *m = doc_build(a);
	struct node_config config;
	struct kernel_args args;
	struct str text;
	int r;

	kernel_args_check(part, a, h->p);
	kubelet_note_pools(part, kubelet, h->p);
	kernel_args_build(part, a, &args);
	node_files_build(part, &nodes, a, &config);
	add_runtimes(&config, part->text[PROFILE_RESERVED], a);
	r = object_write(kubelet_configuration(m, part, kubelet, a, h->p), a, &text, err);
	if (r < 0)
		return r;
	add_kubelet(&config, text);
	add_systemd(&config, part, a);
	add_tmpfiles(&config, part, a);
	node_config_add(&config, "/etc/tuned/pinfold/tuned.conf", MODE_PLAIN,
			tuned_host_conf(part, a));
	add_kernel_args(&config, &args, a);
	/* kubeadm's name of a patch: the target, a suffix for the order, the type. */
	file_set_add(h->files,
		     str_printf(a, PRI_STR "/kubeadm/kubeletconfiguration0+merge.yaml",
				FMT_STR(part->pool->name)),
		     MODE_PLAIN, text);
	return render_bundle(h->files, part->pool->name, &config, &args, err);
}

/* A pool of a partitioned cluster that no profile is for: its nodes must advertise the resource to
 * join (D7), and their management pods may use all CPUs. There are no kernel arguments. */
static int render_default(struct host_rendering *h, struct str pool, struct err *err)
{
	const struct install_config *install = &h->layout->install;
	const struct kernel_args none = { NULL, 0 };
	struct node_config config, settings;
	struct arena *a = h->files->a;

	node_files_bootstrap(&(struct default_files){ true, NAME_CRIO_DEFAULT },
			     h->options->quota_keys, a, &config);
	add_runtimes(&config, STR(""), a);
	if (install->n_settings) {
		workload_settings_build(install, h->options->quota_keys, a, &settings);
		file_set_copy(&config.files, &settings.files);
		for (size_t i = 0; i < settings.n_units; i++)
			node_config_add_unit(&config, settings.units[i].name.p,
					     settings.units[i].contents);
	}
	return render_bundle(h->files, pool, &config, &none, err);
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
