#include "base/arena.h"
#include "base/err.h"
#include "codec/toml.h"
#include "codec/yaml.h"
#include "distro/distro.h"
#include "file_set.h"
#include "host_parts.h"
#include "kube/names.h"
#include "machine_config.h"
#include "object_build.h"

#define DROPIN "50-pinfold"

/* containerd 1.7 has NRI off. Of a plugin's table the last file read wins as a whole, so every key
 * is given. */
struct str containerd_nri(int64_t version, struct arena *a)
{
	const struct str table[] = { STR("plugins"), STR("io.containerd.nri.v1.nri") };
	struct strbuf b;

	strbuf_init(&b, a);
	if (version)
		toml_int(&b, STR("version"), version);
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

bool host_may_have_crio(const struct distro *d)
{
	return d->runtime == DISTRO_CRIO || d == distro_get(DISTRO_KUBEADM);
}

void host_add_runtimes(struct node_config *c, const struct distro *d, struct str infra_cpus,
		       struct arena *a)
{
	const bool is_v3 = d->runtime_dropin_dir &&
			   str_ends(str_from(d->runtime_dropin_dir), STR("config-v3.toml.d"));

	if (d->runtime == DISTRO_CONTAINERD && d->runtime_dropin_dir)
		node_config_add(
			c, str_printf(a, "%s/" DROPIN ".toml", d->runtime_dropin_dir).p, MODE_PLAIN,
			containerd_nri(is_v3 ? 3 : 2, a)); /* 2 is read by containerd 1.6 to 2.x */
	if (host_may_have_crio(d))
		node_config_add(c, NAME_CRIO_DIR DROPIN ".conf", MODE_PLAIN,
				crio_nri(infra_cpus, a));
}

/* MicroShift takes the options below a key of its own configuration. */
static int add_microshift(struct node_config *c, yyjson_mut_val *configuration, struct arena *a,
			  struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *kubelet;
	struct str text;
	int r;

	kubelet = yyjson_mut_val_mut_copy(m, configuration);
	yyjson_mut_obj_remove_key(kubelet, "apiVersion");
	yyjson_mut_obj_remove_key(kubelet, "kind");
	doc_put(m, root, STR("kubelet"), kubelet);
	r = object_write(root, a, &text, err);
	if (r == 0)
		node_config_add(c, "/etc/microshift/config.d/" DROPIN ".yaml", MODE_PLAIN, text);
	return r;
}

int host_add_kubelet(struct node_config *c, struct file_set *lines, const struct distro *d,
		     yyjson_mut_val *configuration, struct err *err)
{
	struct arena *a = lines->a;
	struct str text;
	int r;

	if (d == distro_get(DISTRO_MICROSHIFT))
		return add_microshift(c, configuration, a, err);
	r = object_write(configuration, a, &text, err);
	if (r < 0)
		return r;
	node_config_add(c, str_printf(a, "%s/" DROPIN ".conf", d->kubelet_dropin_dir).p, MODE_PLAIN,
			text);
	if (d->kubelet_args_file)
		file_set_add(lines, str_from(d->kubelet_args_file), MODE_PLAIN,
			     str_printf(a, "--config-dir=%s\n", d->kubelet_dropin_dir));
	else if (!d->kubelet_reads_dropins)
		/* kubeadm's unit passes this variable to the kubelet. "50-" sorts after its own
		 * drop-in "10-kubeadm.conf", which sets the variable without --config-dir. */
		node_config_add(
			c, "/etc/systemd/system/kubelet.service.d/" DROPIN ".conf", MODE_PLAIN,
			str_printf(a,
				   "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=%s "
				   "--config-dir=%s\"\n",
				   d->kubelet_config, d->kubelet_dropin_dir));
	return 0;
}
