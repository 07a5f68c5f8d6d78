#include "yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "yaml_scalar.h"

/* A value under construction and where it stands. yyjson links values by pointers into
 * themselves, so the value comes first and its position rides along. */
struct node {
	yyjson_mut_val v;
	struct doc_pos pos;
	bool open; /* still being read: an alias to it would be a loop */
};

struct anchor {
	struct str name;
	struct node *node;
	struct anchor *older;
};

struct reader {
	yaml_parser_t parser;
	yaml_event_t event;
	struct arena *a;
	struct str file;
	struct doc_limits limits;
	size_t depth, nodes, alias_nodes;
	struct anchor *anchors;
	struct err *err;
};

static struct doc_pos pos_of(yaml_mark_t mark)
{
	return (struct doc_pos){ (uint32_t)mark.line + 1, (uint32_t)mark.column + 1 };
}

static int fail(struct reader *r, struct doc_pos pos, const char *what)
{
	return err_set(r->err, EINVAL, PRI_STR ":%u:%u: %s", FMT_STR(r->file), pos.line, pos.column,
		       what);
}

static int fail_here(struct reader *r, const char *what)
{
	return fail(r, pos_of(r->event.start_mark), what);
}

/* Reads the next event into r->event. The one before is deleted; its strings were copied. */
static int next_event(struct reader *r)
{
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	if (r->parser.error == YAML_MEMORY_ERROR)
		return err_set(r->err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(r->file));
	if (r->parser.error == YAML_READER_ERROR)
		return err_set(r->err, EINVAL, PRI_STR ": byte %zu: %s", FMT_STR(r->file),
			       r->parser.problem_offset, r->parser.problem);
	return fail(r, pos_of(r->parser.problem_mark), r->parser.problem);
}

static int new_node(struct reader *r, struct doc_pos pos, struct node **ret)
{
	struct node *n;

	if (r->nodes++ >= r->limits.nodes)
		return fail(r, pos, "too many values");
	n = arena_new(r->a, struct node);
	if (!n)
		return err_set(r->err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(r->file));
	n->pos = pos;
	*ret = n;
	return 0;
}

static int remember_anchor(struct reader *r, const yaml_char_t *name, struct node *node)
{
	struct anchor *anchor;

	if (!name)
		return 0;
	anchor = arena_new(r->a, struct anchor);
	if (!anchor)
		return err_set(r->err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(r->file));
	*anchor = (struct anchor){ str_dup(r->a, str_from((const char *)name)), node, r->anchors };
	r->anchors = anchor;
	return 0;
}

static struct node *node_of(yyjson_mut_val *v)
{
	return container_of(v, struct node, v);
}

/* Copies a value that an alias or a merge key repeats. Recursion is bounded by the depth that
 * reading the original was bounded by; the number of copies by the alias budget. */
static int copy_node(struct reader *r, struct node *from, struct node **ret)
{
	yyjson_mut_val *child, *key;
	struct node *n, *copy, *key_copy;
	int x;

	if (r->alias_nodes++ >= r->limits.alias_nodes)
		return fail_here(r, "aliases expand to too many values");
	x = new_node(r, from->pos, &n);
	if (x < 0)
		return x;
	if (!yyjson_mut_is_ctn(&from->v)) {
		n->v = from->v;
		n->v.next = NULL;
	}
	if (yyjson_mut_is_arr(&from->v)) {
		yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(&from->v);

		yyjson_mut_set_arr(&n->v);
		while ((child = yyjson_mut_arr_iter_next(&it))) {
			x = copy_node(r, node_of(child), &copy);
			if (x < 0)
				return x;
			yyjson_mut_arr_append(&n->v, &copy->v);
		}
	} else if (yyjson_mut_is_obj(&from->v)) {
		yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(&from->v);

		yyjson_mut_set_obj(&n->v);
		while ((key = yyjson_mut_obj_iter_next(&it))) {
			x = copy_node(r, node_of(key), &key_copy);
			if (x == 0)
				x = copy_node(r, node_of(yyjson_mut_obj_iter_get_val(key)), &copy);
			if (x < 0)
				return x;
			yyjson_mut_obj_add(&n->v, &key_copy->v, &copy->v);
		}
	}
	*ret = n;
	return 0;
}

static int read_alias(struct reader *r, struct node **ret)
{
	struct str name = str_from((const char *)r->event.data.alias.anchor);
	struct anchor *anchor = r->anchors;

	while (anchor && !str_eq(anchor->name, name))
		anchor = anchor->older;
	if (!anchor)
		return fail_here(r, "alias to an unknown anchor");
	if (anchor->node->open)
		return fail_here(r, "alias to a value that contains it");
	return copy_node(r, anchor->node, ret);
}

/* What a scalar means, given its tag and style. */
static int resolve(struct reader *r, struct yaml_scalar *ret)
{
	const char *tag = (const char *)r->event.data.scalar.tag;
	struct str text = str_dup(r->a, (struct str){ (const char *)r->event.data.scalar.value,
						      r->event.data.scalar.length });
	bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct yaml_scalar s = { .kind = YAML_STRING, .text = text };

	if (!tag && plain)
		s = yaml_scalar_resolve(text, r->a);
	else if (tag && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, "!") != 0) {
		enum yaml_kind want = strcmp(tag, YAML_INT_TAG) == 0   ? YAML_NUMBER :
				      strcmp(tag, YAML_FLOAT_TAG) == 0 ? YAML_NUMBER :
				      strcmp(tag, YAML_BOOL_TAG) == 0  ? YAML_BOOL :
				      strcmp(tag, YAML_NULL_TAG) == 0  ? YAML_NULL :
									 YAML_STRING;

		s = yaml_scalar_resolve(text, r->a);
		if (want == YAML_STRING)
			return fail_here(r, "unknown tag");
		if (s.kind != want)
			return fail_here(r, "value does not fit its tag");
	}
	if (s.kind == YAML_NOT_FINITE)
		return fail_here(r, "not a finite number");
	*ret = s;
	return 0;
}

static int read_scalar(struct reader *r, bool as_key, struct node **ret)
{
	struct yaml_scalar s;
	struct node *n;
	int x;

	x = resolve(r, &s);
	if (x < 0)
		return x;
	x = new_node(r, pos_of(r->event.start_mark), &n);
	if (x < 0)
		return x;
	if (as_key && s.kind == YAML_NULL)
		return fail_here(r, "a key may not be null");
	if (as_key && s.kind == YAML_BOOL) /* as Kubernetes' tools do: yes: 1 has the key "true" */
		s.text = s.truth ? STR("true") : STR("false");
	if (as_key || s.kind == YAML_STRING)
		yyjson_mut_set_strn(&n->v, s.text.p, s.text.n);
	else if (s.kind == YAML_NUMBER)
		yyjson_mut_set_raw(&n->v, s.text.p, s.text.n);
	else if (s.kind == YAML_BOOL)
		yyjson_mut_set_bool(&n->v, s.truth);
	else
		yyjson_mut_set_null(&n->v);
	*ret = n;
	return remember_anchor(r, r->event.data.scalar.anchor, n);
}

static int read_value(struct reader *r, struct node **ret);

static int read_sequence(struct reader *r, struct node *n)
{
	struct node *item;
	int x;

	yyjson_mut_set_arr(&n->v);
	for (;;) {
		x = next_event(r);
		if (x < 0)
			return x;
		if (r->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		x = read_value(r, &item);
		if (x < 0)
			return x;
		yyjson_mut_arr_append(&n->v, &item->v);
	}
}

static bool is_merge_key(const yaml_event_t *e)
{
	return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       strcmp((const char *)e->data.scalar.value, "<<") == 0;
}

/* Adds the pairs of `from` whose keys are not there yet: a merged mapping never overrides. */
static int merge_one(struct reader *r, struct node *into, yyjson_mut_val *from)
{
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(from);
	yyjson_mut_val *key;
	struct node *key_copy, *copy;
	int x;

	if (!yyjson_mut_is_obj(from))
		return fail_here(r, "only a mapping can be merged");
	while ((key = yyjson_mut_obj_iter_next(&it))) {
		if (yyjson_mut_obj_getn(&into->v, yyjson_mut_get_str(key), yyjson_mut_get_len(key)))
			continue;
		x = copy_node(r, node_of(key), &key_copy);
		if (x == 0)
			x = copy_node(r, node_of(yyjson_mut_obj_iter_get_val(key)), &copy);
		if (x < 0)
			return x;
		yyjson_mut_obj_add(&into->v, &key_copy->v, &copy->v);
	}
	return 0;
}

static int merge(struct reader *r, struct node *into, yyjson_mut_val *from)
{
	yyjson_mut_arr_iter it;
	yyjson_mut_val *item;
	int x;

	if (!yyjson_mut_is_arr(from))
		return merge_one(r, into, from);
	it = yyjson_mut_arr_iter_with(from);
	while ((item = yyjson_mut_arr_iter_next(&it))) {
		x = merge_one(r, into, item);
		if (x < 0)
			return x;
	}
	return 0;
}

static int read_key(struct reader *r, struct node **ret)
{
	if (r->event.type == YAML_SCALAR_EVENT)
		return read_scalar(r, true, ret);
	if (r->event.type != YAML_ALIAS_EVENT)
		return fail_here(r, "a key must be a plain value");
	if (read_alias(r, ret) < 0)
		return -EINVAL;
	return yyjson_mut_is_str(&(*ret)->v) ? 0 : fail_here(r, "a key must be a plain value");
}

static int read_mapping(struct reader *r, struct node *n)
{
	yyjson_mut_val *merged = NULL;
	struct node *key, *value;
	int x;

	yyjson_mut_set_obj(&n->v);
	for (;;) {
		bool is_merge;

		x = next_event(r);
		if (x < 0)
			return x;
		if (r->event.type == YAML_MAPPING_END_EVENT)
			return merged ? merge(r, n, merged) : 0;
		is_merge = is_merge_key(&r->event);
		x = read_key(r, &key);
		if (x == 0)
			x = next_event(r);
		if (x == 0)
			x = read_value(r, &value);
		if (x < 0)
			return x;
		if (is_merge && merged)
			return fail(r, key->pos, "key \"<<\" is given twice");
		if (is_merge)
			merged = &value->v;
		else
			yyjson_mut_obj_add(&n->v, &key->v, &value->v);
	}
}

static bool is_core_tag(const yaml_char_t *tag, const char *core)
{
	return !tag || strcmp((const char *)tag, core) == 0;
}

static int read_collection(struct reader *r, struct node **ret)
{
	bool sequence = r->event.type == YAML_SEQUENCE_START_EVENT;
	const yaml_char_t *anchor = sequence ? r->event.data.sequence_start.anchor :
					       r->event.data.mapping_start.anchor;
	const yaml_char_t *tag = sequence ? r->event.data.sequence_start.tag :
					    r->event.data.mapping_start.tag;
	struct node *n;
	int x;

	if (!is_core_tag(tag, sequence ? YAML_SEQ_TAG : YAML_MAP_TAG))
		return fail_here(r, "unknown tag");
	if (r->depth >= r->limits.depth)
		return fail_here(r, "nested too deeply");
	x = new_node(r, pos_of(r->event.start_mark), &n);
	if (x == 0)
		x = remember_anchor(r, anchor, n);
	if (x < 0)
		return x;
	r->depth++;
	n->open = true;
	x = sequence ? read_sequence(r, n) : read_mapping(r, n);
	n->open = false;
	r->depth--;
	*ret = n;
	return x;
}

static int read_value(struct reader *r, struct node **ret)
{
	switch (r->event.type) {
	case YAML_SCALAR_EVENT:
		return read_scalar(r, false, ret);
	case YAML_ALIAS_EVENT:
		return read_alias(r, ret);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return read_collection(r, ret);
	default:
		return fail_here(r, "unexpected end of the document");
	}
}

/* yyjson freezes a tree in this same order: a value, then its children, keys before values. */
static void collect_marks(yyjson_mut_val *v, struct doc_pos *marks, size_t *n)
{
	yyjson_mut_val *child;

	marks[(*n)++] = node_of(v)->pos;
	if (yyjson_mut_is_arr(v)) {
		yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(v);

		while ((child = yyjson_mut_arr_iter_next(&it)))
			collect_marks(child, marks, n);
	} else if (yyjson_mut_is_obj(v)) {
		yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(v);

		while ((child = yyjson_mut_obj_iter_next(&it))) {
			collect_marks(child, marks, n);
			collect_marks(yyjson_mut_obj_iter_get_val(child), marks, n);
		}
	}
}

static int finish_document(struct reader *r, struct node *root, struct doc *ret)
{
	struct doc_pos *marks = arena_array(r->a, struct doc_pos, r->nodes);
	struct doc doc = { .root = doc_freeze(&root->v, r->a), .file = r->file, .marks = marks };

	if (!marks || !doc.root)
		return err_set(r->err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(r->file));
	collect_marks(&root->v, marks, &doc.n_values);
	*ret = doc;
	return doc_check_keys(&doc, r->a, r->err);
}

static int list_add(struct reader *r, struct doc_list *list, const struct doc *doc)
{
	struct doc *items = arena_realloc(r->a, list->items, list->n * sizeof(*items),
					  (list->n + 1) * sizeof(*items));

	if (!items)
		return err_set(r->err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(r->file));
	items[list->n++] = *doc;
	list->items = items;
	return 0;
}

static int read_document(struct reader *r, struct doc_list *list)
{
	struct node *root;
	struct doc doc;
	int x;

	r->anchors = NULL;
	x = next_event(r);
	if (x == 0)
		x = read_value(r, &root);
	if (x < 0)
		return x;
	if (!yyjson_mut_is_null(&root->v)) {
		x = finish_document(r, root, &doc);
		if (x == 0)
			x = list_add(r, list, &doc);
		if (x < 0)
			return x;
	}
	return next_event(r); /* the end of the document */
}

static int read_stream(struct reader *r, struct doc_list *list)
{
	int x;

	do {
		x = next_event(r);
		if (x == 0 && r->event.type == YAML_DOCUMENT_START_EVENT)
			x = read_document(r, list);
		if (x < 0)
			return x;
	} while (r->event.type != YAML_STREAM_END_EVENT);
	return 0;
}

static int parse_yaml(struct str text, struct str file, const struct doc_limits *limits,
		      struct arena *a, struct doc_list *ret, struct err *err)
{
	struct reader r = { .a = a, .file = file, .limits = *limits, .err = err };
	struct doc_list list = { 0 };
	int x;

	if (!yaml_parser_initialize(&r.parser))
		return err_set(err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(file));
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.n ? text.p : ""),
				     text.n);
	x = read_stream(&r, &list);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (x == 0)
		*ret = list;
	return x;
}

static int parse_json(struct str text, struct str file, const struct doc_limits *limits,
		      struct arena *a, struct doc_list *ret, struct err *err)
{
	struct doc *doc = arena_new(a, struct doc);
	int x;

	if (!doc)
		return err_set(err, ENOMEM, PRI_STR ": not enough memory", FMT_STR(file));
	x = doc_parse(text, file, limits, a, doc, err);
	if (x == 0)
		x = doc_check_keys(doc, a, err);
	if (x == 0)
		*ret = (struct doc_list){ doc, 1 };
	return x;
}

int yaml_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	       struct doc_list *ret, struct err *err)
{
	struct doc_limits l = doc_limits_fill(limits);
	struct str begin = str_trim(text);

	if (text.n > l.size_bytes)
		return err_set(err, EFBIG, PRI_STR ": larger than %zu bytes", FMT_STR(file),
			       l.size_bytes);
	/* JSON is YAML only almost (\ud83d\ude00 is one character there), so it is tried as JSON
	 * first; what merely begins like it is a YAML flow mapping. */
	if (str_starts(begin, STR("{")) && parse_json(text, file, &l, a, ret, NULL) == 0)
		return 0;
	return parse_yaml(text, file, &l, a, ret, err);
}
