#include "plan_bundle.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "bundle/manifest_load.h"
#include "bundle_input.h"
#include "cpu/topology.h"
#include "kube/pod.h"
#include "layout_input.h"
#include "render/file_set.h"

/* The machine of the bundle, unless the user described another one: of a single node only, because
 * a pool may have machines of other kinds. */
static int add_topology(const struct rendering_options *o, const char *path,
			struct layout_input *in, struct err *err)
{
	struct arena *a = in->manifests.a;
	struct pool_topology *one = arena_new(a, struct pool_topology);
	struct topology *topology = arena_new(a, struct topology);
	struct saved_bundle b;
	struct str *names;
	size_t n;
	int r;

	if (o->topologies.n)
		return 0;
	r = bundle_load(path, a, &b, err);
	if (r < 0)
		return r;
	saved_bundle_nodes(&b, a, &names, &n);
	/* Without a topology, sizes are not checked: a bundle of a cluster has none. */
	if (n != 1 || bundle_node_topology(&b, names[0], a, topology, NULL) < 0)
		return 0;
	one->topology = topology;
	in->layout_options.topologies = one;
	in->layout_options.n_topologies = 1;
	return 0;
}

static bool is_same(yyjson_val *x, yyjson_val *y)
{
	return str_eq(object_kind(x), object_kind(y)) && str_eq(object_name(x), object_name(y)) &&
	       str_eq(doc_str(doc_find(x, "/metadata/namespace")),
		      doc_str(doc_find(y, "/metadata/namespace")));
}

static bool has_object(const struct manifest_list *list, yyjson_val *object)
{
	for (size_t i = 0; i < list->n; i++)
		if (is_same(list->items[i].object, object))
			return true;
	return false;
}

static void add_others(struct layout_input *in, const struct manifest_list *objects)
{
	const struct manifest_list given = in->manifests.all;
	struct manifest_list others = { 0 };

	for (size_t i = 0; i < objects->n; i++)
		if (!has_object(&given, objects->items[i].object))
			manifest_list_add(&others, in->manifests.a, objects->items[i]);
	manifests_add(&in->manifests, &others, &in->problems);
}

static int render_present(const struct rendering_options *o, const char *path,
			  const struct manifest_list *objects, struct arena *a,
			  struct file_set *ret, struct err *err)
{
	struct layout_input *in = arena_new(a, struct layout_input);
	int r;

	layout_input_init(in, a);
	r = rendering_prepare(o, in, err);
	if (r == 0)
		r = add_topology(o, path, in, err);
	if (r < 0)
		return r;
	manifests_add(&in->manifests, objects, &in->problems);
	r = rendering_render(o, in, ret, err);
	if (r == 0 && in->problems.n_errors) {
		layout_input_print_problems(in);
		r = layout_input_check(in, "the profiles of the bundle cannot be rendered", err);
	}
	return r;
}

int plan_bundle(const struct rendering_options *o, const char *path, struct layout_input *in,
		struct file_set *ret_before, struct file_set *ret_after, struct err *err)
{
	struct arena *a = in->manifests.a;
	struct manifest_files loaded;
	struct manifest_list objects;
	int r;

	if (!o->files.n && !o->input_dir)
		return err_set(err, EINVAL, "--bundle needs the new profile: give it with -f");
	r = manifest_load(&(struct option_list){ &path, 1 }, a, NULL, &loaded, err);
	if (r < 0)
		return r;
	objects = manifest_files_objects(&loaded, a);
	r = render_present(o, path, &objects, a, ret_before, err);
	if (r == 0)
		r = rendering_prepare(o, in, err);
	if (r == 0)
		r = add_topology(o, path, in, err);
	if (r == 0)
		r = rendering_read(o, in, err);
	if (r < 0)
		return r;
	add_others(in, &objects);
	return rendering_render(o, in, ret_after, err);
}
