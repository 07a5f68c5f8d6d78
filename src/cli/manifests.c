#include "manifests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admission/admission.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/walk.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "kube/pod.h"

static bool is_manifest(struct str name, bool is_directory)
{
	return !str_starts(name, STR(".")) &&
	       (is_directory || str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) ||
		str_ends(name, STR(".json")));
}

int manifests_walk(const char *path, struct arena *a,
		   int (*visit)(void *data, const char *path, struct err *err), void *data,
		   struct err *err)
{
	const struct walk w = { .a = a, .is_wanted = is_manifest, .visit = visit, .data = data };

	return strcmp(path, "-") == 0 ? visit(data, path, err) : walk_files(&w, path, err);
}

struct reading {
	struct arena *a;
	struct manifest_list list;
};

static int read_documents(const char *path, struct arena *a, struct doc_list *ret, struct err *err)
{
	struct str text;
	int r;

	if (strcmp(path, "-") == 0) {
		path = "<stdin>";
		r = file_read_fd(STDIN_FILENO, path, DOC_MAX_SIZE, a, &text, err);
	} else {
		r = file_read_at(AT_FDCWD, path, DOC_MAX_SIZE, a, &text, err);
	}
	if (r < 0)
		return r;
	return yaml_parse(text, str_from(path), NULL, a, ret, err);
}

static void add(struct reading *to, const struct doc *doc, yyjson_val *object)
{
	struct manifest_list *list = &to->list;

	list->items = arena_reserve(to->a, list->items, list->n, &list->cap, sizeof(*list->items));
	list->items[list->n++] = (struct manifest){ doc, object };
}

static int add_file(void *data, const char *path, struct err *err)
{
	struct reading *to = data;
	struct doc_list docs;
	int r;

	r = read_documents(path, to->a, &docs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < docs.n; i++) {
		struct object_iter it = object_iter(docs.items[i].root);
		yyjson_val *object;

		while ((object = object_next(&it))) {
			if (!yyjson_is_obj(object))
				return doc_err(err, &docs.items[i], object,
					       "not a Kubernetes object but %s", doc_type(object));
			add(to, &docs.items[i], object);
		}
	}
	return 0;
}

int manifests_objects(const struct option_list *files, struct arena *a, struct manifest_list *ret,
		      struct err *err)
{
	struct reading to = { .a = a };
	int r = 0;

	for (size_t i = 0; i < files->n && r >= 0; i++)
		r = manifests_walk(files->items[i], a, add_file, &to, err);
	if (!files->n)
		r = add_file(&to, "-", err);
	if (r < 0)
		return r;
	*ret = to.list;
	return 0;
}

struct str manifest_place(const struct manifest *m, struct arena *a)
{
	struct doc_pos pos = doc_position(m->doc, m->object);

	return str_printf(a, PRI_STR ":%u:%u", FMT_STR(m->doc->file), pos.line, pos.column);
}

static int add_objects(struct state_manifests *m, const struct manifest_list *list, struct err *err)
{
	for (size_t i = 0; i < list->n; i++)
		if (state_manifests_add(m, list->items[i].object, err) < 0)
			return err_wrap(err, PRI_STR,
					FMT_STR(manifest_place(&list->items[i], m->arena)));
	return 0;
}

static int add_settings(const struct cluster_options *o, struct admission_settings *s,
			struct err *err)
{
	s->requires_agent = o->requires_agent;
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
	struct manifest_list list = { 0 };
	int r;

	state_manifests_init(ret, a);
	if (o->state.n) {
		r = manifests_objects(&o->state, a, &list, err);
		if (r < 0)
			return r;
	}
	r = add_objects(ret, &list, err);
	if (r < 0)
		return r;
	return add_settings(o, &ret->state.settings, err);
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

static void assume_node(struct state_manifests *m)
{
	yyjson_mut_doc *doc = doc_build(m->arena);
	yyjson_mut_val *object = begin_object(doc, "Node", STR("any"));
	yyjson_mut_val *status = doc_put_obj(doc, object, STR("status"));

	doc_put_str(doc, doc_put_obj(doc, status, STR("allocatable")), STR(NAME_SHARED_CPUS),
		    STR("1k"));
	(void)state_manifests_add(m, doc_freeze(object, m->arena), NULL);
}

static void add_type(struct strbuf *b, struct str type)
{
	if (!type.n || type_is_allowed(strbuf_str(b), type))
		return;
	if (b->n)
		strbuf_addc(b, ',');
	strbuf_add(b, type);
}

/* Types that pods of one namespace ask for, joined by commas. */
static struct str types_asked_for(const struct manifest_list *given, struct str namespace,
				  struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < given->n; i++) {
		yyjson_val *key, *value;
		struct pod pod;

		if (!pod_from_object(given->items[i].object, &pod) ||
		    !str_eq(pod_namespace(&pod), namespace))
			continue;
		DOC_EACH_PAIR (pod_annotations(&pod), key, value)
			if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)))
				add_type(&b, str_skip(doc_str(key), strlen(NAME_TARGET_PREFIX)));
		value = doc_get(doc_get(pod.meta, STR("labels")), STR(NAME_LEGACY_TARGET));
		add_type(&b, doc_str(value));
	}
	return strbuf_str(&b);
}

static void assume_namespaces(struct state_manifests *m, const struct manifest_list *given)
{
	for (size_t i = 0; i < given->n; i++) {
		yyjson_mut_doc *doc = doc_build(m->arena);
		yyjson_mut_val *object, *annotations;
		struct pod pod;

		if (!pod_from_object(given->items[i].object, &pod))
			continue;
		object = begin_object(doc, "Namespace", pod_namespace(&pod));
		annotations = doc_put_obj(doc, yyjson_mut_obj_get(object, "metadata"),
					  STR("annotations"));
		doc_put_str(doc, annotations, STR(NAME_ALLOWED),
			    types_asked_for(given, pod_namespace(&pod), m->arena));
		(void)state_manifests_add(m, doc_freeze(object, m->arena), NULL);
	}
}

static void complete(struct state_manifests *m, const struct manifest_list *given)
{
	if (!m->state.infrastructure.is_present) {
		(void)fputs("note: no Infrastructure given, assuming " NAME_PARTITIONING_KEY
			    " " NAME_PARTITIONING_ALL "\n",
			    stderr);
		assume_infrastructure(m);
	}
	if (!m->namespaces.n) {
		(void)fputs("note: no Namespace given, assuming they allow what the pods ask for\n",
			    stderr);
		assume_namespaces(m, given);
	}
	if (m->state.settings.pools && !m->n_nodes) {
		(void)fputs("note: no Node given, assuming they advertise " NAME_SHARED_CPUS "\n",
			    stderr);
		assume_node(m);
	}
}

int cluster_and_manifests(const struct cluster_options *o, const struct option_list *files,
			  struct arena *a, struct state_manifests *ret_state,
			  struct manifest_list *ret_list, struct err *err)
{
	int r;

	state_manifests_init(ret_state, a);
	r = manifests_objects(files, a, ret_list, err);
	if (r < 0 || !o)
		return r;
	r = cluster_load(o, a, ret_state, err);
	if (r >= 0)
		r = add_objects(ret_state, ret_list, err);
	if (r < 0)
		return r;
	complete(ret_state, ret_list);
	state_manifests_seal(ret_state);
	return 0;
}
