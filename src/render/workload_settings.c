/* CPUs per workload type, and optionally per node. The files of all nodes are in a directory
 * that CRI-O does not read; at boot pinfold-node-pinning.sh copies those of its node to CRI-O's
 * drop-ins. */

#include "workload_settings.h"

#include "base/arena.h"
#include "kube/names.h"
#include "profile/install_config.h"
#include "scripts.h"

#define NODES_DIR "/etc/pinfold/workload-pinning.d/"

static bool names_node(const struct workload_setting *s, struct str node)
{
	for (size_t i = 0; i < s->n_nodes; i++)
		if (str_eq(s->nodes[i], node))
			return true;
	return false;
}

size_t workload_settings_of_node(const struct install_config *install, struct str node,
				 struct workload_cpus *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < install->n_settings; i++) {
		const struct workload_setting *s = &install->settings[i];
		size_t at = 0;

		if (s->n_nodes && !names_node(s, node))
			continue;
		while (at < n && !str_eq(ret[at].type, s->type))
			at++;
		/* The order of entries does not matter: a general one never replaces a node's. */
		if (at == n)
			ret[n++] = (struct workload_cpus){ s->type, s->text };
		else if (s->n_nodes)
			ret[at].cpus = s->text;
	}
	return n;
}

/* Several entries may name a node, one for each type; its files are written for the first. */
static bool is_repeated(const struct install_config *install, size_t setting, size_t node)
{
	struct str name = install->settings[setting].nodes[node];

	for (size_t i = 0; i < setting; i++)
		if (names_node(&install->settings[i], name))
			return true;
	for (size_t i = 0; i < node; i++)
		if (str_eq(install->settings[setting].nodes[i], name))
			return true;
	return false;
}

static void add_node(struct node_config *c, const struct install_config *install, struct str node,
		     bool quota_keys, struct arena *a)
{
	struct workload_cpus *w = arena_array(a, struct workload_cpus, install->n_settings);
	size_t n = workload_settings_of_node(install, node, w);

	file_set_add(&c->files, str_printf(a, NODES_DIR PRI_STR ".conf", FMT_STR(node)), MODE_PLAIN,
		     pinning_crio(w, n, quota_keys, a));
	file_set_add(&c->files, str_printf(a, NODES_DIR PRI_STR ".json", FMT_STR(node)),
		     MODE_PRIVATE, pinning_marker(w, n, a));
}

void workload_settings_build(const struct install_config *install, bool quota_keys, struct arena *a,
			     struct node_config *ret)
{
	struct workload_cpus *w = arena_array(a, struct workload_cpus, install->n_settings);
	size_t n = workload_settings_of_node(install, STR(""), w);
	bool per_node = false;

	node_config_init(ret, a);
	if (n) {
		file_set_add(&ret->files, STR(NAME_CRIO_DIR NAME_CRIO_PINNING), MODE_PLAIN,
			     pinning_crio(w, n, quota_keys, a));
		file_set_add(&ret->files, STR(NAME_KUBELET_MARKER), MODE_PRIVATE,
			     pinning_marker(w, n, a));
	}
	for (size_t i = 0; i < install->n_settings; i++)
		for (size_t j = 0; j < install->settings[i].n_nodes; j++) {
			per_node = true;
			if (!is_repeated(install, i, j))
				add_node(ret, install, install->settings[i].nodes[j], quota_keys,
					 a);
		}
	if (!per_node)
		return;
	file_set_add(&ret->files, STR("/usr/local/bin/pinfold-node-pinning.sh"), MODE_SCRIPT,
		     STR(PINFOLD_NODE_PINNING_SH));
	node_config_add_unit(ret, "pinfold-node-pinning.service", STR(UNIT_NODE_PINNING));
}
