/* MachineConfigs of the Machine Config Operator: an Ignition config inside a Kubernetes object. The
 * many empty members are what Go's encoder leaves in
 * (docs/reference/openshift-render.md#empty-members). */

#include "machine_config.h"

#include "base/arena.h"
#include "codec/base64.h"
#include "kube/names.h"
#include "object_build.h"

#define IGNITION_VERSION "3.2.0" /* what the Node Tuning Operator writes; every MCO reads it */

void node_config_init(struct node_config *c, struct arena *a)
{
	/* Only profiles set the kernel type. */
	*c = (struct node_config){ .kernel_type = "" };
	file_set_init(&c->files, a);
}

void node_config_add(struct node_config *c, const char *path, unsigned mode, struct str bytes)
{
	file_set_add(&c->files, str_from(path), mode, bytes);
}

void node_config_add_unit(struct node_config *c, const char *name, struct str contents)
{
	c->units =
		arena_reserve(c->files.a, c->units, c->n_units, &c->cap_units, sizeof(*c->units));
	c->units[c->n_units++] =
		(struct systemd_unit){ str_dup(c->files.a, str_from(name)), contents, true };
}

struct str data_url(struct str bytes, struct arena *a)
{
	return str_printf(a, "data:text/plain;charset=utf-8;base64," PRI_STR,
			  FMT_STR(base64_encode(bytes, a)));
}

static void add_files(yyjson_mut_doc *m, yyjson_mut_val *ignition, const struct file_set *files,
		      struct arena *a)
{
	yyjson_mut_val *storage = doc_put_obj(m, ignition, STR("storage"));
	yyjson_mut_val *list = doc_put_arr(m, storage, STR("files"));

	for (size_t i = 0; i < files->n; i++) {
		yyjson_mut_val *file = yyjson_mut_arr_add_obj(m, list);
		yyjson_mut_val *contents = doc_put_obj(m, file, STR("contents"));

		doc_put_str(m, contents, STR("source"), data_url(files->items[i].bytes, a));
		doc_put_obj(m, contents, STR("verification"));
		doc_put_obj(m, file, STR("group"));
		doc_put_int(m, file, STR("mode"), files->items[i].mode); /* 0644 as 420 */
		doc_put_str(m, file, STR("path"), files->items[i].path);
		doc_put_obj(m, file, STR("user"));
	}
}

static void add_units(yyjson_mut_doc *m, yyjson_mut_val *ignition, const struct node_config *config)
{
	yyjson_mut_val *systemd, *list;

	if (!config->n_units)
		return;
	systemd = doc_put_obj(m, ignition, STR("systemd"));
	list = doc_put_arr(m, systemd, STR("units"));
	for (size_t i = 0; i < config->n_units; i++) {
		yyjson_mut_val *unit = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, unit, STR("contents"), config->units[i].contents);
		if (config->units[i].enabled)
			doc_put_bool(m, unit, STR("enabled"), true);
		doc_put_str(m, unit, STR("name"), config->units[i].name);
	}
}

static void add_ignition(yyjson_mut_doc *m, yyjson_mut_val *spec, const struct node_config *config,
			 struct arena *a)
{
	yyjson_mut_val *root = doc_put_obj(m, spec, STR("config"));
	yyjson_mut_val *ignition = doc_put_obj(m, root, STR("ignition"));
	yyjson_mut_val *replace;

	replace = doc_put_obj(m, doc_put_obj(m, ignition, STR("config")), STR("replace"));
	doc_put_obj(m, replace, STR("verification"));
	doc_put_obj(m, ignition, STR("proxy"));
	doc_put_obj(m, doc_put_obj(m, ignition, STR("security")), STR("tls"));
	doc_put_obj(m, ignition, STR("timeouts"));
	doc_put_str(m, ignition, STR("version"), STR(IGNITION_VERSION));
	doc_put_obj(m, root, STR("passwd"));
	add_files(m, root, &config->files, a);
	add_units(m, root, config);
}

yyjson_mut_val *machine_config_build(yyjson_mut_doc *m, struct str name,
				     const struct node_config *config, struct arena *a)
{
	yyjson_mut_val *object = object_new(m, NAME_MACHINE_API, NAME_MACHINE_CONFIG_KIND, name);
	yyjson_mut_val *spec = doc_put_obj(m, object, STR("spec"));

	doc_put_str(m, spec, STR("baseOSExtensionsContainerImage"), STR(""));
	add_ignition(m, spec, config, a);
	doc_put(m, spec, STR("extensions"), yyjson_mut_null(m));
	doc_put_bool(m, spec, STR("fips"), false);
	/* TuneD computes them on the node, and the operator writes them as 50-nto-<pool>. */
	doc_put(m, spec, STR("kernelArguments"), yyjson_mut_null(m));
	doc_put_str(m, spec, STR("kernelType"), str_from(config->kernel_type));
	doc_put_str(m, spec, STR("osImageURL"), STR(""));
	return object;
}
