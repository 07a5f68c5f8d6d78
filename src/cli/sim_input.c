/* Manifests, options and bundles, and the variants that --compare asks for. */

#include "sim_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "base/sorted.h"
#include "bundle/bundle_load.h"
#include "bundle/manifest_load.h"
#include "bundle_input.h"
#include "cpu/topology_read.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "profile/selector.h"

/* --- reading --- */

/* "[POOL=]COUNT x FROM". */
static int parse_nodes(const char *text, struct sim_node_option *ret, struct arena *a,
		       struct err *err)
{
	struct str rest = str_from(text), count;
	struct str_split at = str_split(rest);
	struct topology *t = arena_new(a, struct topology);
	const char *equals = strchr(text, '='), *blank = strchr(text, ' ');
	uint64_t n;

	ret->pool = STR("worker");
	if (equals && (!blank || equals < blank)) {
		(void)str_next(&at, '=', &ret->pool);
		rest = at.rest;
	}
	at = str_split(rest);
	(void)str_next(&at, ' ', &count);
	rest = str_trim(at.rest);
	if (!ret->pool.n || !str_to_u64(count, SIM_COUNT_MAX, &n) || !n ||
	    !str_starts(rest, STR("x ")))
		return err_set(err, EINVAL,
			       "--nodes %s: want [POOL=]COUNT x TOPOLOGY, at most %d nodes", text,
			       SIM_COUNT_MAX);
	ret->count = (uint32_t)n;
	ret->topology = t;
	if (topology_read(str_cstr(a, str_trim(str_skip(rest, 1))), a, t, err) < 0)
		return err_wrap(err, "--nodes %s", text);
	return 0;
}

static int read_topologies(struct sim_input *in, struct err *err)
{
	const struct option_list *list = &in->o->topologies;

	in->shapes = arena_array(in->a, struct sim_node_option, in->o->nodes.n + 1);
	for (; in->n_shapes < in->o->nodes.n; in->n_shapes++) {
		int r = parse_nodes(in->o->nodes.items[in->n_shapes], &in->shapes[in->n_shapes],
				    in->a, err);

		if (r < 0)
			return r;
	}
	in->topologies = arena_array(in->a, const struct topology *, list->n + 1);
	for (; in->n_topologies < list->n; in->n_topologies++) {
		struct topology *t = arena_new(in->a, struct topology);
		int r = topology_read(list->items[in->n_topologies], in->a, t, err);

		if (r < 0)
			return err_wrap(err, "--topology");
		in->topologies[in->n_topologies] = t;
	}
	return 0;
}

bool sim_has_kind(yyjson_val *object, const char *kind)
{
	return str_eq(object_kind(object), str_from(kind));
}

static int by_name(const void *x, const void *y)
{
	const struct sim_name *a = x, *b = y;
	const int r = str_cmp(a->name, b->name);

	return r ? r : (a->number > b->number) - (a->number < b->number);
}

void sim_names_sort(struct sim_name *names, size_t n)
{
	if (n)
		qsort(names, n, sizeof(*names), by_name);
}

static int compare_name(const void *item, const void *name)
{
	const struct sim_name *named = item;
	const struct str *key = name;

	return str_cmp(named->name, *key);
}

const struct sim_name *sim_names_find(const struct sim_name *names, size_t n, struct str name)
{
	const size_t at = sorted_position(names, n, sizeof(*names), &name, compare_name);

	return at < n && str_eq(names[at].name, name) ? &names[at] : NULL;
}

static void collect(const struct manifest_list *list, const char *kind, struct arena *a,
		    yyjson_val ***ret, size_t *ret_n)
{
	size_t cap = 0;

	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < list->n; i++)
		if (sim_has_kind(list->items[i].object, kind)) {
			*ret = arena_reserve(a, *ret, *ret_n, &cap, sizeof(yyjson_val *));
			(*ret)[(*ret_n)++] = list->items[i].object;
		}
}

static bool has_stored_pods(const struct manifest_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (sim_has_kind(list->items[i].object, "Pod") &&
		    doc_str(doc_find(list->items[i].object, "/spec/nodeName")).n)
			return true;
	return false;
}

static int read_bundle(struct sim_input *in, const char *path, struct err *err)
{
	struct saved_bundle b;
	struct str *nodes;
	size_t n;
	int r = bundle_load(path, in->a, &b, err);

	if (r < 0)
		return r;
	saved_bundle_nodes(&b, in->a, &nodes, &n);
	for (size_t i = 0; i < n; i++) {
		struct topology *t = arena_new(in->a, struct topology);

		r = bundle_node_topology(&b, nodes[i], in->a, t, err);
		if (r == -ENOENT)
			continue; /* it could not be collected */
		if (r < 0)
			return r;
		in->machines = arena_reserve(in->a, in->machines, in->n_machines, &in->cap_machines,
					     sizeof(*in->machines));
		in->machines[in->n_machines] =
			(struct sim_name){ nodes[i], NULL, (uint32_t)in->n_machines, t };
		in->n_machines++;
	}
	return 0;
}

/* The objects of bundles are among the manifests already. */
static int read_bundles(struct sim_input *in, struct err *err)
{
	for (size_t i = 0; i < in->o->files.n; i++) {
		const char *path = in->o->files.items[i];
		int r = strcmp(path, "-") != 0 && bundle_at(path) ? read_bundle(in, path, err) : 0;

		if (r < 0)
			return r;
	}
	sim_names_sort(in->machines, in->n_machines);
	return 0;
}

int sim_input_read(struct sim_input *in, const struct sim_options *o, struct arena *a,
		   struct err *err)
{
	struct manifest_files files = { 0 };
	yyjson_val **partitions;
	int r;

	*in = (struct sim_input){ .o = o, .a = a };
	r = o->files.n ? manifest_load(&o->files, a, NULL, &files, err) : 0;
	if (r < 0)
		return r;
	in->list = manifest_files_objects(&files, a);
	collect(&in->list, NAME_PROFILE_KIND, a, &in->profiles, &in->n_profiles);
	collect(&in->list, NAME_PARTITION_KIND, a, &partitions, &in->n_partitions);
	in->partitions = arena_array(a, struct sim_name, in->n_partitions + 1);
	for (size_t i = 0; i < in->n_partitions; i++)
		in->partitions[i] = (struct sim_name){ object_name(partitions[i]), partitions[i],
						       (uint32_t)i, NULL };
	sim_names_sort(in->partitions, in->n_partitions);
	in->has_stored_pods = has_stored_pods(&in->list);
	r = read_bundles(in, err);
	if (r < 0)
		return r;
	if (o->pods > SIM_COUNT_MAX || o->churn > SIM_COUNT_MAX)
		return err_set(err, EINVAL, "--pods, --churn: at most %d", SIM_COUNT_MAX);
	if (o->workload && !o->pods)
		return err_set(err, EINVAL, "--workload requires --pods");
	if (o->pods && !o->workload)
		return err_set(err, EINVAL, "--pods requires --workload");
	return read_topologies(in, err);
}

/* --- variants --- */

struct sim_variant sim_input_variant(const struct sim_input *in)
{
	struct sim_variant v = { .profiles = in->profiles, .n_profiles = in->n_profiles };

	v.has_policy = in->o->policy &&
		       hint_policy_parse(str_from(in->o->policy), &v.policy, NULL) == 0;
	return v;
}

/* The profile that another one takes the place of: the one with its name, or with its selector. */
static size_t find_replaced(const struct sim_variant *v, yyjson_val *profile, struct arena *a)
{
	const struct str selector = labels_format(doc_find(profile, "/spec/nodeSelector"), a);
	size_t i = 0;

	while (i < v->n_profiles && !str_eq(object_name(v->profiles[i]), object_name(profile)))
		i++;
	if (i < v->n_profiles)
		return i;
	for (i = 0; i < v->n_profiles; i++)
		if (str_eq(labels_format(doc_find(v->profiles[i], "/spec/nodeSelector"), a),
			   selector))
			break;
	return i;
}

static int replace_profiles(const struct sim_input *in, const char *path, struct sim_variant *v,
			    struct err *err)
{
	const struct option_list paths = { &path, 1 };
	struct manifest_files files;
	struct manifest_list list;
	yyjson_val **others, **all;
	size_t n;
	int r = manifest_load(&paths, in->a, NULL, &files, err);

	if (r < 0)
		return r;
	list = manifest_files_objects(&files, in->a);
	collect(&list, NAME_PROFILE_KIND, in->a, &others, &n);
	if (!n)
		return err_set(err, EINVAL, "--compare %s: no " NAME_PROFILE_KIND " in it", path);
	all = arena_array(in->a, yyjson_val *, v->n_profiles + n);
	if (v->n_profiles)
		memcpy(all, v->profiles, v->n_profiles * sizeof(yyjson_val *));
	v->profiles = all;
	for (size_t i = 0; i < n; i++) {
		const size_t at = find_replaced(v, others[i], in->a);

		v->profiles[at] = others[i];
		v->n_profiles += at == v->n_profiles;
	}
	return 0;
}

int sim_input_compare(const struct sim_input *in, const char *text, struct sim_variant *ret,
		      struct err *err)
{
	const struct str policy = STR("topology-policy=");

	*ret = sim_input_variant(in);
	ret->name = str_from(text);
	if (!str_starts(ret->name, policy))
		return replace_profiles(in, text, ret, err);
	ret->has_policy = true;
	if (hint_policy_parse(str_skip(ret->name, policy.n), &ret->policy, err) < 0)
		return err_wrap(err, "--compare");
	return 0;
}
