/* YAML by libyaml's event parser, built into the same documents as JSON. Aliases and merge keys are
 * expanded by copying, with limits, so that no reader of a document has to know about them. Rules
 * for plain scalars are those of the YAML parser in Kubernetes' tools; see yaml_scalar.c. */

#include "yaml.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/macro.h"
#include "yaml_scalar.h"

/* A value being built, and its position. yyjson links the values themselves into lists, so a node
 * embeds its value and node_of() gets from the value back to the position. */
struct node {
	yyjson_mut_val v;
	struct doc_pos pos;
	bool open; /* still being read: an alias to it would be a loop */
};

/* Against files that are small but expensive: the lookups of anchors and merged keys are linear,
 * which is fastest for the few that real files have. */
#define COMPARISONS_MAX 1000000
#define DIRECTIVES_MAX 64

struct anchor {
	struct str name;
	struct node *node;
	struct anchor *older;
};

struct yaml_reader {
	yaml_parser_t parser;
	yaml_event_t event;
	struct arena *a;    /* of the result */
	struct arena *tree; /* of the values being built: four times as large, and short-lived */
	struct str file, text;
	struct doc_limits limits;
	size_t depth, nodes, alias_nodes, compared;
	size_t nodes_before; /* the current document */
	struct anchor *anchors;
	struct err *err;
};

/* libyaml counts lines and columns from 0, in characters. */
static struct doc_pos pos_of(yaml_mark_t mark)
{
	return (struct doc_pos){ (uint32_t)mark.line + 1, (uint32_t)mark.column + 1 };
}

static int fail(struct yaml_reader *r, struct doc_pos pos, const char *what)
{
	return doc_err_at(r->err, EINVAL, r->file, pos, "%s", what);
}

/* Of the memory that the caller allows, or that the file may need. */
static int no_memory(struct yaml_reader *r)
{
	if (r->tree->failed && r->tree->limit == r->limits.tree_bytes)
		return doc_err_at(r->err, ENOMEM, r->file, (struct doc_pos){ 0 },
				  "needs more than %zu MiB of memory: divide it into several "
				  "documents",
				  r->limits.tree_bytes >> 20);
	return doc_err_at(r->err, ENOMEM, r->file, (struct doc_pos){ 0 }, "not enough memory");
}

static int fail_here(struct yaml_reader *r, const char *what)
{
	return fail(r, pos_of(r->event.start_mark), what);
}

/* Reads the next event into r->event and deletes the previous one; its strings were copied. */
static int next_event(struct yaml_reader *r)
{
	/* libyaml's own memory; deleting a zeroed event is allowed, so the first call needs no
	 * exception. */
	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return 0;
	if (r->parser.error == YAML_MEMORY_ERROR)
		return no_memory(r);
	/* A reader error (invalid UTF-8) has an offset and no line. */
	if (r->parser.error == YAML_READER_ERROR)
		return fail(r, doc_position_at(r->text, r->parser.problem_offset),
			    r->parser.problem);
	return fail(r, pos_of(r->parser.problem_mark), r->parser.problem);
}

static int new_node(struct yaml_reader *r, struct doc_pos pos, struct node **ret)
{
	struct node *n;

	/* Counted over the whole stream: many small documents cost as much as one large. */
	if (r->nodes++ >= r->limits.nodes)
		return doc_err_at(r->err, EINVAL, r->file, pos, "more than %zu values",
				  r->limits.nodes);
	n = arena_new(r->tree, struct node);
	if (!n)
		return no_memory(r);
	n->pos = pos;
	*ret = n;
	return 0;
}

/* An anchor may be defined again: the list is searched from the newest, so the last definition
 * before an alias counts. */
static int remember_anchor(struct yaml_reader *r, const yaml_char_t *name, struct node *node)
{
	struct anchor *anchor;

	if (!name)
		return 0;
	if (r->alias_nodes++ >= r->limits.alias_nodes)
		return fail_here(r, "too many anchors");
	anchor = arena_new(r->tree, struct anchor);
	if (!anchor)
		return no_memory(r);
	*anchor =
		(struct anchor){ str_dup(r->tree, str_from((const char *)name)), node, r->anchors };
	r->anchors = anchor;
	return 0;
}

static struct node *node_of(yyjson_mut_val *v)
{
	return container_of(v, struct node, v);
}

static int copy_node(struct yaml_reader *r, struct node *from, struct node **ret);

static int copy_items(struct yaml_reader *r, struct node *from, struct node *to)
{
	yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(&from->v);
	yyjson_mut_val *item;
	struct node *copy;
	int x;

	yyjson_mut_set_arr(&to->v);
	while ((item = yyjson_mut_arr_iter_next(&it))) {
		x = copy_node(r, node_of(item), &copy);
		if (x < 0)
			return x;
		yyjson_mut_arr_append(&to->v, &copy->v);
	}
	return 0;
}

static int copy_pair(struct yaml_reader *r, yyjson_mut_val *key, struct node *to)
{
	struct node *key_copy, *copy;
	int x;

	x = copy_node(r, node_of(key), &key_copy);
	if (x < 0)
		return x;
	x = copy_node(r, node_of(yyjson_mut_obj_iter_get_val(key)), &copy);
	if (x < 0)
		return x;
	yyjson_mut_obj_add(&to->v, &key_copy->v, &copy->v);
	return 0;
}

static int copy_pairs(struct yaml_reader *r, struct node *from, struct node *to)
{
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(&from->v);
	yyjson_mut_val *key;
	int x;

	yyjson_mut_set_obj(&to->v);
	while ((key = yyjson_mut_obj_iter_next(&it))) {
		x = copy_pair(r, key, to);
		if (x < 0)
			return x;
	}
	return 0;
}

static int enter(struct yaml_reader *r)
{
	if (r->depth >= r->limits.depth)
		return doc_err_at(r->err, EINVAL, r->file, pos_of(r->event.start_mark),
				  "nested deeper than %zu levels", r->limits.depth);
	r->depth++;
	return 0;
}

/* Copies the value of an alias or a merge key. The depth is checked again: the alias may be deeper
 * in the document than the anchor. */
static int copy_node(struct yaml_reader *r, struct node *from, struct node **ret)
{
	struct node *n;
	int x;

	if (r->alias_nodes++ >= r->limits.alias_nodes)
		return fail_here(r, "aliases expand to too many values");
	x = new_node(r, from->pos, &n);
	if (x < 0)
		return x;
	*ret = n;
	if (!yyjson_mut_is_ctn(&from->v)) {
		n->v = from->v;
		/* The copied value must not stay linked to the neighbours of the original. */
		n->v.next = NULL;
		return 0;
	}
	x = enter(r);
	if (x < 0)
		return x;
	x = yyjson_mut_is_arr(&from->v) ? copy_items(r, from, n) : copy_pairs(r, from, n);
	r->depth--;
	return x;
}

/* A budget of work instead of an index: hostile files end here, and real ones never pay for a hash
 * table. */
static int count_comparisons(struct yaml_reader *r, size_t comparisons)
{
	r->compared += comparisons;
	return r->compared > COMPARISONS_MAX ? fail_here(r, "too many anchors or merged keys") : 0;
}

static int read_alias(struct yaml_reader *r, struct node **ret)
{
	struct str name = str_from((const char *)r->event.data.alias.anchor);
	struct anchor *anchor = r->anchors;

	for (; anchor && !str_eq(anchor->name, name); anchor = anchor->older)
		if (count_comparisons(r, 1) < 0)
			return -EINVAL;
	if (!anchor)
		return fail_here(r, "alias to an unknown anchor");
	if (anchor->node->open)
		return fail_here(r, "alias to a value that contains it");
	return copy_node(r, anchor->node, ret);
}

/* The value of a scalar, from its tag, style and text. */
static int resolve(struct yaml_reader *r, struct yaml_scalar *ret)
{
	const char *tag = (const char *)r->event.data.scalar.tag;
	/* Copied, because the event's strings are freed with the next event. */
	struct str text = str_dup(r->tree, (struct str){ (const char *)r->event.data.scalar.value,
							 r->event.data.scalar.length });
	bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct yaml_scalar s = { .kind = YAML_STRING, .text = text };

	if (!tag && plain)
		s = yaml_scalar_resolve(text, r->tree);
	/* "!" forces a string, like quotes. */
	else if (tag && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, "!") != 0) {
		enum yaml_kind want = strcmp(tag, YAML_INT_TAG) == 0   ? YAML_NUMBER :
				      strcmp(tag, YAML_FLOAT_TAG) == 0 ? YAML_NUMBER :
				      strcmp(tag, YAML_BOOL_TAG) == 0  ? YAML_BOOL :
				      strcmp(tag, YAML_NULL_TAG) == 0  ? YAML_NULL :
									 YAML_STRING;

		s = yaml_scalar_resolve(text, r->tree);
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

static int read_scalar(struct yaml_reader *r, bool as_key, struct node **ret)
{
	struct yaml_scalar s = { 0 }; /* resolve() sets it or fails; gcc does not see that */
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
	if (as_key &&
	    s.kind == YAML_BOOL) /* as in Kubernetes' tools, "yes: 1" has the key "true" */
		s.text = s.boolean ? STR("true") : STR("false");
	/* Keys are strings in JSON: numbers keep the text of their value. */
	if (as_key || s.kind == YAML_STRING)
		yyjson_mut_set_strn(&n->v, s.text.p, s.text.n);
	else if (s.kind == YAML_NUMBER)
		yyjson_mut_set_raw(&n->v, s.text.p, s.text.n);
	else if (s.kind == YAML_BOOL)
		yyjson_mut_set_bool(&n->v, s.boolean);
	else
		yyjson_mut_set_null(&n->v);
	*ret = n;
	return remember_anchor(r, r->event.data.scalar.anchor, n);
}

static int read_value(struct yaml_reader *r, struct node **ret);

static int read_sequence(struct yaml_reader *r, struct node *n)
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

/* Adds the pairs of `from` whose keys are absent: a merged mapping never overrides. */
static int merge_one(struct yaml_reader *r, struct node *into, yyjson_mut_val *from)
{
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(from);
	yyjson_mut_val *key;
	int x;

	if (!yyjson_mut_is_obj(from))
		return fail(r, node_of(from)->pos, "only a mapping can be merged");
	while ((key = yyjson_mut_obj_iter_next(&it))) {
		/* yyjson_mut_obj_getn() below walks all keys. */
		x = count_comparisons(r, yyjson_mut_obj_size(&into->v));
		if (x < 0)
			return x;
		if (yyjson_mut_obj_getn(&into->v, yyjson_mut_get_str(key), yyjson_mut_get_len(key)))
			continue;
		x = copy_pair(r, key, into);
		if (x < 0)
			return x;
	}
	return 0;
}

static int merge(struct yaml_reader *r, struct node *into, yyjson_mut_val *from)
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

static int read_key(struct yaml_reader *r, struct node **ret)
{
	int x;

	if (r->event.type == YAML_SCALAR_EVENT)
		return read_scalar(r, true, ret);
	if (r->event.type != YAML_ALIAS_EVENT)
		return fail_here(r, "a key must be a string");
	x = read_alias(r, ret);
	if (x < 0)
		return x;
	return yyjson_mut_is_str(&(*ret)->v) ? 0 : fail_here(r, "a key must be a string");
}

static int read_mapping(struct yaml_reader *r, struct node *n)
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
			/* At the end, because explicit keys win wherever they stand in the mapping.
			 */
			return merged ? merge(r, n, merged) : 0;
		/* Only a plain "<<" merges; in quotes it is an ordinary key. */
		is_merge = r->event.type == YAML_SCALAR_EVENT &&
			   r->event.data.scalar.plain_implicit &&
			   strcmp((const char *)r->event.data.scalar.value, "<<") == 0;
		x = read_key(r, &key);
		if (x >= 0)
			x = next_event(r);
		if (x >= 0)
			x = read_value(r, &value);
		if (x < 0)
			return x;
		if (is_merge && merged)
			return fail(r, key->pos, "key \"<<\" is given twice");
		if (is_merge)
			merged = &value->v;
		else
			/* Duplicates are added here and refused in finish_document(), in one sorted
			 * pass per mapping. */
			yyjson_mut_obj_add(&n->v, &key->v, &value->v);
	}
}

static int read_collection(struct yaml_reader *r, struct node **ret)
{
	bool sequence = r->event.type == YAML_SEQUENCE_START_EVENT;
	const yaml_char_t *anchor = sequence ? r->event.data.sequence_start.anchor :
					       r->event.data.mapping_start.anchor;
	const yaml_char_t *tag = sequence ? r->event.data.sequence_start.tag :
					    r->event.data.mapping_start.tag;
	struct node *n;
	int x;

	if (tag && strcmp((const char *)tag, sequence ? YAML_SEQ_TAG : YAML_MAP_TAG) != 0)
		return fail_here(r, "unknown tag");
	x = enter(r);
	if (x < 0)
		return x;
	x = new_node(r, pos_of(r->event.start_mark), &n);
	if (x >= 0)
		x = remember_anchor(r, anchor, n);
	if (x < 0)
		return x;
	/* The anchor is known before the content is read: that is how an alias to an enclosing
	 * value is found. */
	n->open = true;
	x = sequence ? read_sequence(r, n) : read_mapping(r, n);
	n->open = false;
	r->depth--;
	*ret = n;
	return x;
}

static int read_value(struct yaml_reader *r, struct node **ret)
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

/* In the order of doc_freeze(): a value, then its children, keys before values. */
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

static int finish_document(struct yaml_reader *r, struct node *root, struct doc *ret)
{
	/* At least as many as the document has values; a key "<<" and its value are counted and
	 * dropped. */
	struct doc_pos *marks = arena_array(r->a, struct doc_pos, r->nodes - r->nodes_before);
	struct doc doc = { .root = doc_freeze(&root->v, r->a), .file = r->file, .marks = marks };

	if (!marks || !doc.root)
		return no_memory(r);
	collect_marks(&root->v, marks, &doc.n_values);
	arena_reset(r->tree);
	*ret = doc;
	return doc_check_keys(&doc, r->tree, r->err);
}

static int read_document(struct yaml_reader *r, struct doc_list *list)
{
	struct node *root = NULL;
	struct doc doc;
	int x;

	if (list->n >= r->limits.documents)
		return fail_here(r, "too many documents");
	/* Anchors end with their document. */
	r->anchors = NULL;
	arena_reset(r->tree);
	r->nodes_before = r->nodes;
	x = next_event(r);
	if (x >= 0)
		x = read_value(r, &root);
	if (x < 0)
		return x;
	assert(root);
	/* An empty document, for example after a trailing "---", is skipped, as kubectl does. */
	if (!yyjson_mut_is_null(&root->v)) {
		x = finish_document(r, root, &doc);
		if (x < 0)
			return x;
		list->items = arena_one_more(r->a, list->items, list->n, sizeof(doc));
		if (!list->items)
			return no_memory(r);
		list->items[list->n++] = doc;
	}
	return next_event(r); /* the end of the document */
}

static int read_stream(struct yaml_reader *r, struct doc_list *list)
{
	int x;

	do {
		x = next_event(r);
		if (x >= 0 && r->event.type == YAML_DOCUMENT_START_EVENT)
			x = read_document(r, list);
		if (x < 0)
			return x;
	} while (r->event.type != YAML_STREAM_END_EVENT);
	return 0;
}

/* True if a line may start here: after \n, \r, or the last byte of U+0085, U+2028 or U+2029. */
static bool is_line_start(struct str text, size_t offset)
{
	unsigned char before = offset ? (unsigned char)text.p[offset - 1] : '\n';

	return before == '\n' || before == '\r' || before >= 0x80;
}

/* libyaml compares every tag directive with all earlier ones before it returns the first event, so
 * their number must be limited before it parses. */
static int check_directives(struct yaml_reader *r)
{
	static const char directive[] = "%TAG";
	size_t n = 0, at = 0;

	while (at < r->text.n) {
		const char *hit = memmem(r->text.p + at, r->text.n - at, directive, 4);

		if (!hit)
			break;
		at = (size_t)(hit - r->text.p);
		if (is_line_start(r->text, at) && n++ >= DIRECTIVES_MAX)
			return fail(r, doc_position_at(r->text, at), "too many tag directives");
		at++;
	}
	return 0;
}

/* The tree may have what the caller's arena has left, and no more than the limit. */
static size_t tree_limit(const struct arena *a, size_t limit)
{
	size_t left = a->limit > a->used ? a->limit - a->used : 1;

	if (!a->limit)
		return limit;
	return limit && limit < left ? limit : left;
}

static int parse_yaml(struct str text, struct str file, const struct doc_limits *limits,
		      struct arena *a, struct doc_list *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena tree;
	struct yaml_reader r = {
		.a = a, .tree = &tree, .file = file, .text = text, .limits = *limits, .err = err
	};
	struct doc_list list = { 0 };
	int x;

	arena_init(&tree, tree_limit(a, limits->tree_bytes));
	x = check_directives(&r);
	if (x < 0)
		return x;
	if (!yaml_parser_initialize(&r.parser))
		return no_memory(&r);
	/* Otherwise libyaml detects UTF-16 from a byte order mark, and positions would no longer
	 * match. */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.n ? text.p : ""),
				     text.n);
	x = read_stream(&r, &list);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	/* What the caller's arena had left was not enough: it is exhausted like any other. */
	a->failed |= tree.failed && tree.limit != limits->tree_bytes;
	if (x >= 0)
		*ret = list;
	return x;
}

int yaml_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	       struct doc_list *ret, struct err *err)
{
	struct doc_limits l = doc_limits_fill(limits);
	struct str begin = str_trim(text);
	struct doc *doc;
	int x;

	if (text.n > l.size_bytes)
		return doc_err_at(err, EFBIG, file, (struct doc_pos){ 0 }, "larger than %zu bytes",
				  l.size_bytes);
	if (!str_starts(begin, STR("{")) && !str_starts(begin, STR("[")))
		return parse_yaml(text, file, &l, a, ret, err);
	/* JSON is YAML only almost (\ud83d\ude00 is one character there), so it is tried as JSON
	 * first; what merely begins like it is YAML in flow style. */
	doc = arena_new(a, struct doc);
	if (!doc || doc_parse(text, file, &l, a, doc, NULL) < 0)
		return parse_yaml(text, file, &l, a, ret, err);
	x = doc_check_keys(doc, a, err);
	if (x >= 0)
		*ret = (struct doc_list){ doc, 1 };
	return x;
}
