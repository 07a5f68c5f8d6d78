/* Workload annotations: what their JSON may say, and which of them a pod keeps. Values are decoded
 * as Go does it, so that both the accepted values and the messages are OpenShift's. */

#include "annotation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "decision.h"
#include "kube/names.h"
#include "kube/patch.h"

/* Deeper than any valid value; a bound for hostile ones. */
static const struct doc_limits one_object = { .depth = 8 };

/* The type of a value in messages of Go's encoding/json. */
static const char *go_type(yyjson_val *v)
{
	switch (yyjson_get_type(v)) {
	case YYJSON_TYPE_STR:
		return "string";
	case YYJSON_TYPE_BOOL:
		return "bool";
	case YYJSON_TYPE_ARR:
		return "array";
	case YYJSON_TYPE_OBJ:
		return "object";
	default:
		return "number";
	}
}

static int unreadable_effect(struct str value, struct str why, struct arena *a, struct str *ret)
{
	struct str quoted = print_quoted(value, a);

	*ret = str_printf(a,
			  "failed to get workload annotation effect: failed to parse " PRI_STR
			  " annotation value: " PRI_STR,
			  FMT_STR(quoted), FMT_STR(why));
	return -EINVAL;
}

/* A map as Go prints it with %q: sorted, the last of repeated keys. */
static struct str print_go_map(struct str *pairs, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("map["));
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_addc(&b, ' ');
		strbuf_add(&b, print_quoted(pairs[2 * i], a));
		strbuf_addc(&b, ':');
		strbuf_add(&b, print_quoted(pairs[2 * i + 1], a));
	}
	strbuf_addc(&b, ']');
	return strbuf_str(&b);
}

struct go_map {
	struct str *pairs; /* key, value, key, value... */
	size_t n;
};

static void go_map_put(struct go_map *m, struct str key, struct str value)
{
	size_t i = 0;

	while (i < m->n && !str_eq(m->pairs[2 * i], key))
		i++;
	m->pairs[2 * i] = key;
	m->pairs[2 * i + 1] = value;
	if (i == m->n)
		m->n++;
}

/* An object with more than one key is refused, so further keys need not be compared. */
#define EFFECT_MAX_KEYS 64

static int effect_read_map(struct str value, yyjson_val *root, struct arena *a, struct go_map *ret,
			   struct str *ret_problem)
{
	size_t n = yyjson_obj_size(root);
	yyjson_val *key, *v;

	/* In Go null decodes into an empty map, which then has no key "effect". */
	if (!yyjson_is_obj(root) && !yyjson_is_null(root))
		return unreadable_effect(
			value,
			str_printf(a,
				   "json: cannot unmarshal %s into Go value of type "
				   "map[string]string",
				   go_type(root)),
			a, ret_problem);
	ret->pairs =
		arena_array(a, struct str, 2 * (n < EFFECT_MAX_KEYS ? n + 1 : EFFECT_MAX_KEYS));
	ret->n = 0;
	DOC_EACH_PAIR (root, key, v) {
		/* In the order of the text, as Go finds the first value of a wrong type. */
		if (!yyjson_is_str(v) && !yyjson_is_null(v))
			return unreadable_effect(
				value,
				str_printf(a,
					   "json: cannot unmarshal %s into Go value of "
					   "type string",
					   go_type(v)),
				a, ret_problem);
		if (ret->pairs && ret->n < EFFECT_MAX_KEYS - 1)
			go_map_put(ret, doc_str(key), doc_str(v));
	}
	if (ret->n)
		qsort(ret->pairs, ret->n, 2 * sizeof(struct str), str_order);
	return 0;
}

static int effect_check_map(const struct go_map *m, struct arena *a, struct str *ret_problem)
{
	struct str text;

	if (m->n == 1 && str_eq(m->pairs[0], STR(NAME_EFFECT_KEY))) {
		if (str_eq(m->pairs[1], STR(NAME_EFFECT_PREFERRED)))
			return 0;
		*ret_problem = STR("only \"" NAME_EFFECT_PREFERRED "\" effect is supported");
		return -EINVAL;
	}
	text = print_go_map(m->pairs, m->n, a);
	*ret_problem = str_printf(
		a,
		"failed to get workload annotation effect: the workload annotation value " PRI_STR
		" %s",
		FMT_STR(text),
		m->n > 1 ? "has more than one key" : "does not have \"" NAME_EFFECT_KEY "\" key");
	return -EINVAL;
}

/* "1:5: message" without the position, which Go's decoder does not print. */
static struct str without_position(const char *msg, struct arena *a)
{
	const char *text = strstr(msg, ": ");

	return str_dup(a, str_from(text ? text + 2 : msg));
}

int effect_check(struct str value, struct arena *a, struct str *ret_problem)
{
	struct err err = { 0 };
	struct go_map map;
	struct doc doc;
	int r;

	if (str_eq(value, STR(NAME_TARGET_VALUE)))
		return 0; /* the spelling that admission writes */
	if (!str_trim(value).n)
		return unreadable_effect(value, STR("unexpected end of JSON input"), a,
					 ret_problem);
	r = doc_parse(value, STR(""), &one_object, a, &doc, &err);
	if (r < 0)
		return unreadable_effect(value, without_position(err.msg, a), a, ret_problem);
	r = effect_read_map(value, doc.root, a, &map, ret_problem);
	if (r < 0)
		return r;
	return effect_check_map(&map, a, ret_problem);
}

/* Go's decoder matches the names of struct fields without regard to case. */
static bool key_is(struct str key, const char *name)
{
	return key.n == strlen(name) && strncasecmp(key.p, name, key.n) == 0;
}

static int wrong_type(struct err *err, yyjson_val *v, const char *field, const char *type)
{
	struct str text = doc_text(v);

	if (doc_is_number(v))
		return err_set(err, EINVAL,
			       "json: cannot unmarshal number %.*s into Go struct field "
			       "resourceAnnotation.%s of type %s",
			       (int)(text.n < 40 ? text.n : 40), text.p, field, type);
	return err_set(
		err, EINVAL,
		"json: cannot unmarshal %s into Go struct field resourceAnnotation.%s of type %s",
		go_type(v), field, type);
}

/* null leaves a field unchanged, as in Go. */
static int set_field(struct container_cpu *cpu, struct str key, yyjson_val *v, struct err *err)
{
	if (key_is(key, NAME_CPUSHARES_KEY)) {
		if (!yyjson_is_null(v) &&
		    (!doc_is_number(v) || !str_to_u64(doc_text(v), UINT64_MAX, &cpu->shares)))
			return wrong_type(err, v, NAME_CPUSHARES_KEY, "uint64");
		return 0;
	}
	if (key_is(key, NAME_CPULIMIT_KEY)) {
		if (!yyjson_is_null(v) && !(doc_is_number(v) && doc_int(v, &cpu->limit_milli)))
			return wrong_type(err, v, NAME_CPULIMIT_KEY, "int64");
		return 0;
	}
	return err_set(err, EINVAL, "json: unknown field \"%.*s\"", (int)(key.n < 80 ? key.n : 80),
		       key.p);
}

int container_cpu_parse(struct str value, struct arena *a, struct container_cpu *ret,
			struct err *err)
{
	static const struct doc_limits limits = { .depth = 8, .first_only = true };
	struct container_cpu cpu = { 0 };
	yyjson_val *key, *v;
	struct doc doc;

	if (!str_trim(value).n)
		return err_set(err, EINVAL, "EOF");
	if (doc_parse(value, STR(""), &limits, a, &doc, err) < 0)
		return err ? -err->code : -EINVAL;
	if (!yyjson_is_obj(doc.root) && !yyjson_is_null(doc.root))
		return err_set(err, EINVAL,
			       "json: cannot unmarshal %s into Go value of type resourceAnnotation",
			       go_type(doc.root));
	DOC_EACH_PAIR (doc.root, key, v) {
		int r = set_field(&cpu, doc_str(key), v, err);

		if (r < 0)
			return r;
	}
	*ret = cpu;
	return 0;
}

struct str container_cpu_format(const struct container_cpu *cpu, struct arena *a)
{
	bool is_negative = cpu->limit_milli < 0;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("{\"" NAME_CPUSHARES_KEY "\":"));
	strbuf_add_u64(&b, cpu->shares);
	if (cpu->limit_milli) {
		strbuf_add(&b, STR(",\"" NAME_CPULIMIT_KEY "\":"));
		if (is_negative)
			strbuf_addc(&b, '-');
		strbuf_add_u64(&b, is_negative ? -(uint64_t)cpu->limit_milli :
						 (uint64_t)cpu->limit_milli);
	}
	strbuf_addc(&b, '}');
	return strbuf_str(&b);
}

/* Not str_printf(): these names are built for every container of every pod. */
static struct str joined(struct str x, struct str y, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, x);
	strbuf_add(&b, y);
	return strbuf_str(&b);
}

struct str resources_key(struct str container, struct arena *a)
{
	return joined(STR(NAME_RESOURCES_PREFIX), container, a);
}

struct str target_key(struct str type, struct arena *a)
{
	return joined(STR(NAME_TARGET_PREFIX), type, a);
}

struct str cores_resource(struct str type, struct arena *a)
{
	return joined(type, STR(NAME_CORES_SUFFIX), a);
}

static bool match_own_key(struct str key, bool legacy, struct own_annotation *ret)
{
	/* Everything that this table matches is removed from a pod that is not converted. A key of
	 * a user must not match by accident, so names without a suffix are compared whole. */
	static const struct {
		struct str prefix;
		enum own_kind kind;
		bool is_legacy, is_whole;
	} kinds[] = {
		{ STR_INIT(NAME_TARGET_PREFIX), OWN_TARGET, false, false },
		{ STR_INIT(NAME_RESOURCES_PREFIX), OWN_RESOURCES, false, false },
		{ STR_INIT(NAME_STAMP), OWN_STAMP, false, true },
		{ STR_INIT(NAME_WARNING), OWN_WARNING, false, true },
		{ STR_INIT(NAME_LEGACY_CPU_PREFIX), OWN_LEGACY_CPU, true, false },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!str_starts(key, kinds[i].prefix) || (kinds[i].is_legacy && !legacy) ||
		    (kinds[i].is_whole && key.n != kinds[i].prefix.n))
			continue;
		*ret = (struct own_annotation){
			.key = key,
			.name = str_skip(key, kinds[i].prefix.n),
			.kind = kinds[i].kind,
		};
		return true;
	}
	return false;
}

/* Sorting loses the order of the pod's annotations. No caller depends on it: more than one target
 * is an error, or any of them may count. */
static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct own_annotation *)a)->key,
		       ((const struct own_annotation *)b)->key);
}

/* Up to this number a linear search is faster than sorting. */
#define LINEAR_SEARCH_MAX 16

void annotations_scan(struct annotations *ann, yyjson_val *map, bool legacy, struct arena *a)
{
	yyjson_val *key, *value;
	size_t n = yyjson_obj_size(map);

	*ann = (struct annotations){ .a = a, .map = map };
	if (!n)
		return;
	/* For all annotations of the pod, because counting ours first costs a second pass. */
	ann->own = arena_alloc(a, n * sizeof(*ann->own), 16);
	if (!ann->own) {
		ann->failed = true;
		return;
	}
	DOC_EACH_PAIR (map, key, value) {
		struct own_annotation *own = &ann->own[ann->n_own];

		if (!match_own_key(doc_str(key), legacy, own))
			continue;
		own->value = doc_str(value);
		ann->n_own++;
	}
	if (ann->n_own > LINEAR_SEARCH_MAX)
		qsort(ann->own, ann->n_own, sizeof(*ann->own), by_key);
}

struct own_annotation *annotations_find(const struct annotations *ann, struct str key)
{
	struct own_annotation wanted = { .key = key };

	if (ann->n_own > LINEAR_SEARCH_MAX)
		return bsearch(&wanted, ann->own, ann->n_own, sizeof(*ann->own), by_key);
	for (size_t i = 0; i < ann->n_own; i++)
		if (str_eq(ann->own[i].key, key))
			return &ann->own[i];
	return NULL;
}

void annotations_keep(struct own_annotation *own)
{
	own->is_kept = true;
}

void annotations_set(struct annotations *ann, struct str key, struct str value)
{
	if (ann->n_sets == ann->cap_sets) {
		size_t cap = ann->cap_sets ? ann->cap_sets * 2 : 8;
		struct annotation_set *sets = arena_realloc(
			ann->a, ann->sets, ann->cap_sets * sizeof(*sets), cap * sizeof(*sets));

		if (!sets) {
			ann->failed = true;
			return;
		}
		ann->sets = sets;
		ann->cap_sets = cap;
	}
	ann->sets[ann->n_sets++] = (struct annotation_set){ key, value };
}

/* The pod has no annotations: one operation adds the map with all entries. */
static void add_annotation_map(const struct annotations *ann, yyjson_val *meta, struct patch *p)
{
	yyjson_mut_val *map = yyjson_mut_obj(p->doc), *outer;

	for (size_t i = 0; i < ann->n_sets; i++)
		doc_put_str(p->doc, map, ann->sets[i].key, ann->sets[i].value);
	if (yyjson_is_obj(meta)) {
		/* A patch cannot add a member to an object that is missing or null, so the object
		 * comes with it. */
		patch_put(p, STR("/metadata/annotations"), ann->map != NULL, map);
		return;
	}
	outer = yyjson_mut_obj(p->doc);
	doc_put(p->doc, outer, STR("annotations"), map);
	patch_put(p, STR("/metadata"), meta != NULL, outer);
}

void annotations_flush(struct annotations *ann, yyjson_val *meta, struct patch *p)
{
	static const struct str base = STR_INIT("/metadata/annotations");

	if (!yyjson_is_obj(ann->map)) {
		if (ann->n_sets)
			add_annotation_map(ann, meta, p);
		return;
	}
	/* First what is set: it marks annotations as kept, which the loop below would remove. */
	for (size_t i = 0; i < ann->n_sets; i++) {
		const struct annotation_set *set = &ann->sets[i];
		struct own_annotation *own = annotations_find(ann, set->key);

		if (own)
			own->is_kept = true;
		if (own && str_eq(own->value, set->value))
			continue; /* no operation without effect */
		patch_put(p, patch_path(p->arena, base, set->key),
			  doc_get(ann->map, set->key) != NULL, doc_new_str(p->doc, set->value));
	}
	for (size_t i = 0; i < ann->n_own; i++)
		/* As OpenShift, which overwrites an old warning and never removes it. */
		if (!ann->own[i].is_kept && ann->own[i].kind != OWN_WARNING)
			patch_remove(p, patch_path(p->arena, base, ann->own[i].key));
}
