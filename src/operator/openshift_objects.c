/* Every profile is rendered on its own, so that a faulty one does not keep the others from being
 * applied. Rendered files are read back: they are what a user of `pinfold render` would apply. */

#include "openshift_objects.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "profile/layout.h"
#include "profile/manifests.h"
#include "render/file_set.h"
#include "render/openshift.h"
#include "snapshot.h"

static const struct {
	enum operator_kind kind;
	const char *name, *api, *resource;
} applied[] = {
	{ OPERATOR_MACHINE_CONFIGS, NAME_MACHINE_CONFIG_KIND, NAME_MACHINE_API, "machineconfigs" },
	{ OPERATOR_KUBELET_CONFIGS, NAME_KUBELET_CONFIG_KIND, NAME_MACHINE_API, "kubeletconfigs" },
	{ OPERATOR_TUNEDS, "Tuned", NAME_TUNED_API, "tuneds" },
	{ OPERATOR_RUNTIME_CLASSES, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses" },
};

static size_t row_of(enum operator_kind kind)
{
	size_t i = 0;

	while (applied[i].kind != kind)
		i++;
	return i;
}

const char *openshift_resource(enum operator_kind kind)
{
	return applied[row_of(kind)].resource;
}

const char *openshift_api(enum operator_kind kind)
{
	return applied[row_of(kind)].api;
}

/* The name of the object stands for the file in problems. */
static struct manifest manifest_of(const struct stored_object *o, struct arena *a)
{
	struct doc *doc = arena_new(a, struct doc);

	if (doc_parse((struct str){ o->text, o->n }, str_from(o->key), NULL, a, doc, NULL) < 0)
		return (struct manifest){ 0 };
	return (struct manifest){ doc, doc->root };
}

static void add_all(struct manifest_list *list, const struct object_store *store, struct arena *a)
{
	for (size_t i = 0; i < store->n; i++) {
		const struct manifest m = manifest_of(&store->items[i], a);

		if (m.doc)
			manifest_list_add(list, a, m);
	}
}

static void read_manifests(const struct operator_snapshot *s, struct manifests *ret)
{
	const struct stored_object *infrastructure =
		object_store_find(&s->stores[OPERATOR_INFRASTRUCTURES], STR(NAME_INFRASTRUCTURE));

	manifests_init(ret, s->arena);
	if (infrastructure)
		ret->infrastructure = manifest_of(infrastructure, s->arena);
	add_all(&ret->pools, &s->stores[OPERATOR_MACHINE_POOLS], s->arena);
	add_all(&ret->machine_configs, &s->stores[OPERATOR_MACHINE_CONFIGS], s->arena);
	for (size_t i = 0; i < s->n_profiles; i++)
		if (!s->profiles[i].is_deleting)
			manifest_list_add(
				&ret->profiles, s->arena,
				manifest_of(object_store_find(&s->stores[OPERATOR_PROFILES],
							      s->profiles[i].name),
					    s->arena));
}

/* Members that are null or empty objects would be owned without having an effect. */
static yyjson_mut_val *copy_clean(yyjson_mut_doc *m, yyjson_val *v)
{
	yyjson_mut_val *to;
	yyjson_val *key, *value;

	if (!yyjson_is_obj(v))
		return yyjson_val_mut_copy(m, v);
	to = yyjson_mut_obj(m);
	DOC_EACH_PAIR (v, key, value)
		if (!yyjson_is_null(value))
			doc_put(m, to, doc_str(key), copy_clean(m, value));
	return to;
}

static yyjson_mut_val *member_of(yyjson_mut_doc *m, yyjson_mut_val *object, const char *key)
{
	yyjson_mut_val *v = yyjson_mut_obj_get(object, key);

	return v ? v : doc_put_obj(m, object, str_from(key));
}

static yyjson_val *mark(yyjson_val *object, const struct operator_profile *profile, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *to = copy_clean(m, object), *meta = member_of(m, to, "metadata");

	(void)yyjson_mut_obj_remove_key(to, "status");
	doc_put_str(m, member_of(m, meta, "labels"), STR(NAME_MANAGED_BY), STR(NAME_FIELD_MANAGER));
	if (profile)
		doc_put_str(m, member_of(m, meta, "annotations"), STR(NAME_OF_PROFILE),
			    profile->name);
	return doc_freeze(to, a);
}

static void add_object(struct openshift_objects *o, yyjson_val *object,
		       const struct operator_profile *profile, struct arena *a)
{
	for (size_t i = 0; i < ARRAY_LEN(applied); i++) {
		if (!str_eq(object_kind(object), str_from(applied[i].name)))
			continue;
		o->items = arena_one_more(a, o->items, o->n, sizeof(*o->items));
		o->items[o->n++] = (struct openshift_object){ applied[i].kind, profile,
							      mark(object, profile, a) };
	}
}

static void add_problem(struct openshift_objects *o, const struct operator_profile *profile,
			const struct problem *problem, struct arena *a)
{
	o->problems = arena_one_more(a, o->problems, o->n_problems, sizeof(*o->problems));
	o->problems[o->n_problems++] = (struct openshift_problem){
		profile, str_printf(a, PRI_STR "%s" PRI_STR, FMT_STR(problem->field),
				    problem->field.n ? ": " : "", FMT_STR(problem->text))
	};
}

static const struct problem *find_error(const struct problem_list *p, struct str file)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->items[i].level == PROBLEM_ERROR &&
		    (!file.n || str_eq(p->items[i].file, file)))
			return &p->items[i];
	return NULL;
}

/* Renders a layout that has either the defaults or one profile. */
static const struct problem *render(const struct layout *layout,
				    const struct operator_profile *profile, struct arena *a,
				    struct openshift_objects *o)
{
	const struct openshift_options options = { .owner = OWNER_K8S,
						   .kubelet.fill_reservations = true };
	struct problem_list *problems = arena_new(a, struct problem_list);
	struct file_set files;
	struct err err = { 0 };

	problem_list_init(problems, a);
	file_set_init(&files, a);
	if (openshift_render(layout, &options, &files, problems, &err) < 0)
		problem_from_err(problems, &err);
	for (size_t i = 0; i < files.n && !problems->n_errors; i++) {
		struct doc_list docs;

		if (yaml_parse(files.items[i].bytes, files.items[i].path, NULL, a, &docs, &err) < 0)
			problem_from_err(problems, &err);
		else if (docs.n)
			add_object(o, docs.items[0].root, profile, a);
	}
	return find_error(problems, STR(""));
}

/* A pool that a user's MachineConfig partitions already. */
static bool is_partitioned_by_user(const struct layout *layout, struct str pool)
{
	for (size_t i = 0; i < layout->user_configs.n; i++)
		if (str_eq(layout->user_configs.items[i].role, pool))
			return true;
	return false;
}

/* On a single node that is partitioned by hand, another MachineConfig would only restart it. */
static void render_defaults(const struct layout *layout, struct arena *a,
			    struct openshift_objects *o)
{
	const bool is_single = str_eq(layout->control_plane_topology, STR(NAME_TOPOLOGY_SINGLE));
	struct layout defaults = *layout;

	defaults.n_partitions = 0;
	defaults.bootstrap = arena_array(a, struct str, layout->n_bootstrap + 1);
	defaults.n_bootstrap = 0;
	for (size_t i = 0; i < layout->n_bootstrap; i++) {
		const bool is_by_user = is_partitioned_by_user(layout, layout->bootstrap[i]);

		o->is_partitioned_by_hand |= is_single && is_by_user;
		if (!is_single || !is_by_user)
			defaults.bootstrap[defaults.n_bootstrap++] = layout->bootstrap[i];
	}
	(void)render(&defaults, NULL, a, o);
}

static const struct partition *partition_of(const struct layout *layout, struct str profile)
{
	for (size_t i = 0; i < layout->n_partitions; i++)
		if (str_eq(layout->partitions[i].profile->name, profile))
			return &layout->partitions[i];
	return NULL;
}

void openshift_objects_build(const struct operator_snapshot *s, struct openshift_objects *ret)
{
	struct arena *a = s->arena;
	struct problem_list problems;
	struct manifests manifests;
	struct layout layout;

	*ret = (struct openshift_objects){ 0 };
	problem_list_init(&problems, a);
	read_manifests(s, &manifests);
	layout_resolve(&manifests, &(struct layout_options){ 0 }, a, &layout, &problems);
	render_defaults(&layout, a, ret);
	for (size_t i = 0; i < s->n_profiles; i++) {
		const struct operator_profile *p = &s->profiles[i];
		const struct partition *part = partition_of(&layout, p->name);
		const struct problem *error = find_error(&problems, p->name);
		struct layout one = layout;

		if (p->is_deleting)
			continue;
		if (part && !error) {
			one.partitions = arena_new(a, struct partition);
			*one.partitions = *part;
			one.n_partitions = 1;
			one.n_bootstrap = 0;
			error = render(&one, p, a, ret);
		}
		if (error)
			add_problem(ret, p, error, a);
	}
}
