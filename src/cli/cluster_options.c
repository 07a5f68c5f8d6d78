/* The cluster of an offline command: objects from files, or objects that are assumed so that a
 * single manifest already gives a useful result. The webhook never assumes anything. */

#include "cluster_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle/manifest_load.h"
#include "kube/names.h"
#include "kube/pod.h"

static int add_objects(struct state_manifests *m, const struct manifest_list *list, struct err *err)
{
	for (size_t i = 0; i < list->n; i++)
		if (state_manifests_add(m, list->items[i].object, err) < 0)
			return err_wrap(err, PRI_STR,
					FMT_STR(manifest_position(&list->items[i], m->arena)));
	return 0;
}

static int add_settings(const struct cluster_options *o, struct admission_settings *s,
			struct err *err)
{
	s->requires_agent = o->requires_agent;
	s->exempt = o->exempt.items;
	s->n_exempt = o->exempt.n;
	s->legacy = o->dialect && strcmp(o->dialect, "legacy-2021") == 0;
	if (o->node_mode && strcmp(o->node_mode, "taint") == 0)
		s->nodes = NODE_MODE_TAINT;
	return o->feature_gates ? settings_parse_gates(str_from(o->feature_gates), s, err) : 0;
}

int cluster_settings(const struct cluster_options *o, struct admission_settings *ret,
		     struct err *err)
{
	struct admission_settings s = { 0 };
	int r = add_settings(o, &s, err);

	if (r >= 0)
		*ret = s;
	return r;
}

int cluster_load(const struct cluster_options *o, struct arena *a, struct state_manifests *ret,
		 struct err *err)
{
	struct manifest_files files;
	struct manifest_list objects;
	int r;

	state_manifests_init(ret, a);
	r = manifest_load(&o->state, a, NULL, &files, err);
	if (r < 0)
		return r;
	objects = manifest_files_objects(&files, a);
	r = add_objects(ret, &objects, err);
	return r < 0 ? r : add_settings(o, &ret->state.settings, err);
}

static yyjson_mut_val *begin_object(yyjson_mut_doc *doc, const char *kind, struct str name)
{
	yyjson_mut_val *object = yyjson_mut_obj(doc);

	doc_put_str(doc, object, STR("kind"), str_from(kind));
	doc_put_str(doc, doc_put_obj(doc, object, STR("metadata")), STR("name"), name);
	return object;
}

static void assume_infrastructure(struct state_manifests *m)
{
	yyjson_mut_doc *doc = doc_build(m->arena);
	yyjson_mut_val *object =
		begin_object(doc, NAME_INFRASTRUCTURE_KIND, STR(NAME_INFRASTRUCTURE));
	yyjson_mut_val *status = doc_put_obj(doc, object, STR("status"));

	doc_put_str(doc, status, STR(NAME_TOPOLOGY_KEY), STR("HighlyAvailable"));
	doc_put_str(doc, status, STR(NAME_PARTITIONING_KEY), STR(NAME_PARTITIONING_ALL));
	(void)state_manifests_add(m, doc_freeze(object, m->arena), NULL);
}

/* A namespace, and a workload type that one of its pods opts in to, or "". */
struct request {
	struct str namespace, type;
};

struct requests {
	struct arena *a;
	struct request *items;
	size_t n, cap;
};

static void add_request(struct requests *l, struct str namespace, struct str type)
{
	l->items = arena_reserve(l->a, l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = (struct request){ namespace, type };
}

static void add_pod(struct requests *l, const struct pod *pod)
{
	const struct str namespace = pod_namespace(pod);
	yyjson_val *key, *value;

	add_request(l, namespace, STR(""));
	DOC_EACH_PAIR (pod_annotations(pod), key, value)
		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)))
			add_request(l, namespace,
				    str_skip(doc_str(key), strlen(NAME_TARGET_PREFIX)));
	value = doc_get(doc_get(pod->meta, STR("labels")), STR(NAME_LEGACY_TARGET));
	add_request(l, namespace, doc_str(value));
	/* A pod that was skipped has lost its annotation; `explain` restores it. */
	if (pod_annotation(pod, STR(NAME_WARNING)).n)
		add_request(l, namespace, STR(NAME_TYPE_MANAGEMENT));
}

static int by_namespace(const void *a, const void *b)
{
	const struct request *x = a, *y = b;
	int r = str_cmp(x->namespace, y->namespace);

	return r ? r : str_cmp(x->type, y->type);
}

static void assume_namespace(struct state_manifests *m, struct str name, struct str types)
{
	yyjson_mut_doc *doc = doc_build(m->arena);
	yyjson_mut_val *object = begin_object(doc, "Namespace", name);

	doc_put_str(doc,
		    doc_put_obj(doc, yyjson_mut_obj_get(object, "metadata"), STR("annotations")),
		    STR(NAME_ALLOWED), types);
	(void)state_manifests_add(m, doc_freeze(object, m->arena), NULL);
}

static struct requests requests_of(const struct manifest_list *given, struct arena *a)
{
	struct requests l = { .a = a };
	struct pod pod;

	for (size_t i = 0; i < given->n; i++)
		if (pod_from_object(given->items[i].object, &pod))
			add_pod(&l, &pod);
	return l;
}

/* One node that advertises the cores of every requested type, and the shared pool. */
static void assume_node(struct state_manifests *m, const struct manifest_list *given)
{
	const struct requests l = requests_of(given, m->arena);
	yyjson_mut_doc *doc = doc_build(m->arena);
	yyjson_mut_val *object = begin_object(doc, "Node", STR("any"));
	yyjson_mut_val *status = doc_put_obj(doc, object, STR("status"));
	yyjson_mut_val *allocatable = doc_put_obj(doc, status, STR("allocatable"));

	/* The amount does not matter: admission checks only whether a node has the resource. */
	doc_put_str(doc, allocatable, STR(NAME_SHARED_CPUS), STR("1k"));
	for (size_t i = 0; i < l.n; i++) {
		struct str cores =
			str_printf(m->arena, PRI_STR NAME_CORES_SUFFIX, FMT_STR(l.items[i].type));

		if (l.items[i].type.n && !yyjson_mut_obj_getn(allocatable, cores.p, cores.n))
			doc_put_str(doc, allocatable, cores, STR("1k"));
	}
	(void)state_manifests_add(m, doc_freeze(object, m->arena), NULL);
}

/* Every namespace of a pod, with the types that its pods opt in to. Sorted, because a cluster has
 * thousands of pods. */
static void assume_namespaces(struct state_manifests *m, const struct manifest_list *given)
{
	struct requests l = requests_of(given, m->arena);
	struct strbuf types;

	if (l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_namespace);
	for (size_t i = 0; i < l.n; i++) {
		const struct request *r = &l.items[i];
		const bool is_first = i == 0 || !str_eq(r->namespace, r[-1].namespace);

		if (is_first)
			strbuf_init(&types, m->arena);
		if (r->type.n && (is_first || !str_eq(r->type, r[-1].type)))
			strbuf_printf(&types, "%s" PRI_STR, types.n ? "," : "", FMT_STR(r->type));
		if (i + 1 == l.n || !str_eq(r->namespace, r[1].namespace))
			assume_namespace(m, r->namespace, strbuf_str(&types));
	}
}

static const char *const assumptions[] = {
	[ASSUMED_INFRASTRUCTURE] =
		(NAME_PARTITIONING_KEY " is " NAME_PARTITIONING_ALL " (no Infrastructure given)"),
	[ASSUMED_NAMESPACES] = ("all namespaces allow the requested workload types (no Namespace "
				"given)"),
	[ASSUMED_NODES] = "all nodes advertise the resources (no Node given)",
};
_Static_assert(ARRAY_LEN(assumptions) == ASSUMPTION__COUNT, "every assumption has a text");

const char *assumption_text(enum assumption which)
{
	return assumptions[which];
}

void assumptions_print(unsigned assumed)
{
	for (unsigned i = 0; i < ASSUMPTION__COUNT; i++)
		if (assumed & 1u << i)
			(void)fprintf(stderr, "note: assumed: %s\n", assumptions[i]);
}

unsigned cluster_assume_missing(struct state_manifests *m, const struct manifest_list *given)
{
	unsigned assumed = 0;

	if (!m->state.infrastructure.is_present) {
		assumed |= 1u << ASSUMED_INFRASTRUCTURE;
		assume_infrastructure(m);
	}
	/* With one Namespace given, the input counts as complete. */
	if (!m->namespaces.n) {
		assumed |= 1u << ASSUMED_NAMESPACES;
		assume_namespaces(m, given);
	}
	if (!m->n_nodes) {
		assumed |= 1u << ASSUMED_NODES;
		assume_node(m, given);
	}
	return assumed;
}

int cluster_and_manifests(const struct cluster_options *o, const struct option_list *files,
			  struct arena *a, struct cluster_input *ret, struct err *err)
{
	static const char *const standard_input[] = { "-" };
	const struct option_list none_given = { (const char **)standard_input, 1 };
	struct manifest_files loaded;
	int r;

	*ret = (struct cluster_input){ 0 };
	state_manifests_init(&ret->state, a);
	r = manifest_load(files->n ? files : &none_given, a, NULL, &loaded, err);
	if (r < 0)
		return r;
	ret->list = manifest_files_objects(&loaded, a);
	if (!o)
		return 0;
	r = cluster_load(o, a, &ret->state, err);
	if (r >= 0)
		r = add_objects(&ret->state, &ret->list, err);
	if (r < 0)
		return r;
	/* The state is valid only after it is sealed, and nothing can be added then. */
	ret->assumed = cluster_assume_missing(&ret->state, &ret->list);
	state_manifests_seal(&ret->state);
	return 0;
}
