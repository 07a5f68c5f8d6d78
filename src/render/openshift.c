/* One file for each object, under the names that OpenShift's bootstrap expects, because pinfold can
 * be called in place of the operator's `render`. Members without effect are written as well
 * (docs/reference/openshift-render.md#empty-members), so that a diff with the operator's output
 * shows only real differences. */

#include "openshift.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "file_set.h"
#include "kernel_args.h"
#include "kube/names.h"
#include "machine_config.h"
#include "node_files.h"
#include "profile/layout.h"
#include "tuned.h"
#include "workload_settings.h"

struct rendering {
	const struct layout *layout;
	const struct openshift_options *options;
	struct file_set *files; /* of one pool, like the rest */
	struct arena *a;
	yyjson_mut_doc *m;
	struct problem_list *p;
};

static int add_object(struct rendering *r, struct str file, yyjson_mut_val *object, struct err *err)
{
	struct str text;
	int ret = object_write(object, r->a, &text, err);

	if (ret < 0)
		return err_wrap(err, PRI_STR, FMT_STR(file));
	file_set_add(r->files, file, MODE_PLAIN, text);
	return 0;
}

/* The installer's own file name. Only what an install-config says; the installer adds the rest. */
static int render_infrastructure(struct rendering *r, struct err *err)
{
	const struct install_config *install = &r->layout->install;
	yyjson_mut_val *object, *spec, *status;

	if (!r->layout->makes_infrastructure)
		return 0;
	object = object_new(r->m, NAME_CONFIG_API, NAME_INFRASTRUCTURE_KIND,
			    STR(NAME_INFRASTRUCTURE));
	spec = doc_put_obj(r->m, object, STR("spec"));
	doc_put_str(r->m, doc_put_obj(r->m, spec, STR("cloudConfig")), STR("name"), STR(""));
	status = doc_put_obj(r->m, object, STR("status"));
	if (install->cluster_name.n && install->base_domain.n) {
		doc_put_str(r->m, status, STR("apiServerURL"),
			    str_printf(r->a, "https://api." PRI_STR "." PRI_STR ":6443",
				       FMT_STR(install->cluster_name),
				       FMT_STR(install->base_domain)));
		doc_put_str(r->m, status, STR("apiServerInternalURI"),
			    str_printf(r->a, "https://api-int." PRI_STR "." PRI_STR ":6443",
				       FMT_STR(install->cluster_name),
				       FMT_STR(install->base_domain)));
	}
	doc_put_str(r->m, status, STR(NAME_TOPOLOGY_KEY), r->layout->control_plane_topology);
	doc_put_str(r->m, status, STR(NAME_PARTITIONING_KEY),
		    install_config_wants_partitioning(install) ? STR(NAME_PARTITIONING_ALL) :
								 STR(NAME_PARTITIONING_NONE));
	doc_put_str(r->m, status, STR(NAME_TOPOLOGY_INFRA_KEY), r->layout->infrastructure_topology);
	return add_object(r, STR("cluster-infrastructure-02-config.yml"), object, err);
}

/* Adds a MachineConfig for all nodes of a pool. Its number orders it among the pool's
 * MachineConfigs: of two with the same file the later one wins
 * (docs/reference/openshift-render.md#machineconfig-order). */
static int add_pool_config(struct rendering *r, struct str pool, const char *number,
			   const char *what, const struct node_config *config, struct err *err)
{
	struct str name = str_printf(r->a, "%s-" PRI_STR "-%s", number, FMT_STR(pool), what);
	struct str file = str_printf(r->a, "%s_" PRI_STR "_workload_pinning_machineconfig.yaml",
				     number, FMT_STR(name));
	yyjson_mut_val *object = machine_config_build(r->m, name, config, r->a);

	doc_put_str(r->m, object_labels(r->m, object), STR(NAME_MACHINE_ROLE), pool);
	return add_object(r, file, object, err);
}

/* The files that a pool has without a profile. workloadSettings of the 2021 design come after the
 * bootstrap files and before the profiles, whose MachineConfigs are numbered 50. */
static int render_bootstrap(struct rendering *r, struct str pool, struct err *err)
{
	struct default_files files = user_configs_defaults(&r->layout->user_configs, pool, r->a);
	struct node_config config;
	int ret;

	node_files_bootstrap(&files, r->options->quota_keys, r->a, &config);
	ret = add_pool_config(r, pool, "01", "cpu-partitioning", &config, err);
	if (ret < 0 || !r->layout->install.n_settings)
		return ret;
	workload_settings_build(&r->layout->install, r->options->quota_keys, r->a, &config);
	return add_pool_config(r, pool, "02", "workload-partitioning", &config, err);
}

static int render_machine_config(struct rendering *r, const struct partition *part, struct str file,
				 struct err *err)
{
	const struct node_files_options o = { .pinned = r->layout->pinned,
					      .quota_keys = r->options->quota_keys };
	struct node_config config;
	yyjson_mut_val *object;

	node_files_build(part, &o, r->a, &config);
	object = machine_config_build(
		r->m, str_printf(r->a, "50-performance-" PRI_STR, FMT_STR(part->profile->name)),
		&config, r->a);
	profile_machine_labels(r->m, object_labels(r->m, object), part);
	object_set_owner(r->m, object, r->options->owner, part->profile);
	return add_object(r, file, object, err);
}

static int render_kubelet_config(struct rendering *r, const struct partition *part, struct str file,
				 struct err *err)
{
	yyjson_mut_val *object, *spec, *config, *labels;

	object = object_new(r->m, NAME_MACHINE_API, NAME_KUBELET_CONFIG_KIND,
			    str_printf(r->a, "performance-" PRI_STR, FMT_STR(part->profile->name)));
	object_set_owner(r->m, object, r->options->owner, part->profile);
	spec = doc_put_obj(r->m, object, STR("spec"));
	config = kubelet_configuration(r->m, part, &r->options->kubelet, r->a, r->p);
	kubelet_note_pools(part, &r->options->kubelet, r->p);
	kubelet_add_zero_values(r->m, config, r->a);
	doc_put(r->m, spec, STR("kubeletConfig"), config);
	labels = doc_put_obj(r->m, doc_put_obj(r->m, spec, STR("machineConfigPoolSelector")),
			     STR("matchLabels"));
	/* A profile may select pools itself; otherwise all labels of its pool select that one. */
	object_copy_pairs(r->m, labels,
			  part->profile->pool_selector ? part->profile->pool_selector :
							 part->pool->labels);
	doc_put(r->m, doc_put_obj(r->m, object, STR("status")), STR("conditions"),
		yyjson_mut_null(r->m));
	return add_object(r, file, object, err);
}

static int render_tuned(struct rendering *r, const struct partition *part, struct str file,
			struct err *err)
{
	yyjson_mut_val *object = tuned_object(r->m, part, r->a);

	object_set_owner(r->m, object, r->options->owner, part->profile);
	return add_object(r, file, object, err);
}

/* The handler is that of 99-runtimes.conf. CRI-O's CPU annotations are allowed for it only, so pods
 * that use them name this class. */
static int render_runtime_class(struct rendering *r, const struct partition *part, struct str file,
				struct err *err)
{
	yyjson_mut_val *object, *scheduling;

	object = object_new(r->m, "node.k8s.io/v1", "RuntimeClass",
			    str_printf(r->a, "performance-" PRI_STR, FMT_STR(part->profile->name)));
	object_set_owner(r->m, object, r->options->owner, part->profile);
	doc_put_str(r->m, object, STR("handler"), STR("high-performance"));
	scheduling = doc_put_obj(r->m, object, STR("scheduling"));
	object_copy_pairs(r->m, doc_put_obj(r->m, scheduling, STR("nodeSelector")),
			  part->profile->node_selector);
	return add_object(r, file, object, err);
}

static int render_profile(struct rendering *r, const struct partition *part, struct err *err)
{
	static const struct {
		const char *suffix;
		int (*render)(struct rendering *r, const struct partition *part, struct str file,
			      struct err *err);
	} objects[] = {
		{ "machineconfig", render_machine_config },
		{ "kubeletconfig", render_kubelet_config },
		{ "tuned", render_tuned },
		{ "runtimeclass", render_runtime_class },
	};
	int ret = 0;

	if (r->options->owner == OWNER_K8S && !part->profile->uid.n)
		problem_error(r->p,
			      PROBLEM_AT(part->profile->at.doc,
					 doc_get(part->profile->at.object, STR("metadata")),
					 "metadata.uid"),
			      "required for --owner-ref k8s"); /* the garbage collector needs it */
	kernel_args_check(part, r->a, r->p);
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]) && ret == 0; i++)
		ret = objects[i].render(r, part,
					str_printf(r->a, PRI_STR "_%s.yaml",
						   FMT_STR(part->profile->name), objects[i].suffix),
					err);
	return ret;
}

/* The arena holds the objects of one pool at a time, because a cluster may have many; the caller
 * copies the files before the next pool. */
static void begin_pool(struct rendering *r)
{
	arena_reset(r->a);
	file_set_init(r->files, r->a);
	r->m = doc_build(r->a);
}

int openshift_render(const struct layout *layout, const struct openshift_options *options,
		     struct file_set *files, struct problem_list *p, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch;
	struct file_set pool;
	struct rendering r = { layout, options, &pool, &scratch, NULL, p };
	int ret;

	arena_init(&scratch, 0);
	begin_pool(&r);
	ret = render_infrastructure(&r, err);
	file_set_copy(files, &pool);
	for (size_t i = 0; i < layout->n_bootstrap && ret == 0; i++) {
		begin_pool(&r);
		ret = render_bootstrap(&r, layout->bootstrap[i], err);
		file_set_copy(files, &pool);
	}
	for (size_t i = 0; i < layout->n_partitions && ret == 0; i++) {
		begin_pool(&r);
		ret = render_profile(&r, &layout->partitions[i], err);
		file_set_copy(files, &pool);
	}
	return ret;
}
