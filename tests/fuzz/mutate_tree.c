/* Documents: JSON, lines of JSON, and YAML. One value or key of a document is removed, repeated,
 * wrapped, changed or replaced by another one of the same document, while the document is copied.
 */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "mutate.h"

enum tree_op {
	TREE_REMOVE,
	TREE_REPEAT,
	TREE_WRAP,
	TREE_BYTES,
	TREE_KNOWN,
	TREE_OTHER, /* the more likely ones */
	TREE_OTHER_TOO,
	TREE__COUNT,
};

struct tree_edit {
	struct arena *a;
	yyjson_mut_doc *m;
	struct dice *dice;
	enum tree_op op;
	yyjson_val *target, *other; /* values or keys of the document */
};

/* JSON texts that readers of numbers, CPU lists, quantities, labels and annotations treat
 * differently. */
static const struct str known[] = {
	STR_INIT("null"),
	STR_INIT("true"),
	STR_INIT("0"),
	STR_INIT("-1"),
	STR_INIT("1.5"),
	STR_INIT("9223372036854775808"),
	STR_INIT("1e999"),
	STR_INIT("{}"),
	STR_INIT("[]"),
	STR_INIT("\"\""),
	STR_INIT("\"0-3,8\""),
	STR_INIT("\"0-8191\""),
	STR_INIT("\"3-1\""),
	STR_INIT("\"100m\""),
	STR_INIT("\"1Gi\""),
	STR_INIT("\"-0\""),
	STR_INIT("\"a\\nb\\u0000\""),
	STR_INIT("\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\""),
	STR_INIT("\"target.workload.openshift.io/management\""),
	STR_INIT("\"node-role.kubernetes.io/worker\""),
};

static yyjson_mut_val *known_value(struct tree_edit *e)
{
	const struct str s = known[dice_roll(e->dice, ARRAY_LEN(known))];

	return yyjson_mut_rawn(e->m, s.p, s.n);
}

/* The text with bytes changed; what is not UTF-8 afterwards cannot be written and is left to byte
 * mutation. */
static struct str changed_text(struct tree_edit *e, struct str text)
{
	const size_t max = text.n + 16;
	char *copy = arena_alloc(e->a, max, 1);

	if (text.n > 0)
		memcpy(copy, text.p, text.n);
	return (struct str){ copy, LLVMFuzzerMutate((uint8_t *)copy, text.n, max) };
}

static yyjson_mut_val *changed_value(struct tree_edit *e, yyjson_val *v)
{
	yyjson_mut_val *list;

	switch (e->op) {
	case TREE_OTHER:
	case TREE_OTHER_TOO:
		return yyjson_val_mut_copy(e->m, e->other);
	case TREE_WRAP:
		list = yyjson_mut_arr(e->m);
		(void)yyjson_mut_arr_append(list, yyjson_val_mut_copy(e->m, v));
		return list;
	case TREE_BYTES:
		if (yyjson_is_str(v))
			return doc_new_str(e->m, changed_text(e, doc_str(v)));
		return known_value(e);
	case TREE_REPEAT:
		return yyjson_val_mut_copy(e->m, v);
	default:
		return known_value(e);
	}
}

static struct str changed_key(struct tree_edit *e, struct str key)
{
	return e->op == TREE_BYTES || !yyjson_is_str(e->other) ? changed_text(e, key) :
								 doc_str(e->other);
}

static yyjson_mut_val *copy_value(struct tree_edit *e, yyjson_val *v);

static yyjson_mut_val *copy_items(struct tree_edit *e, yyjson_val *v)
{
	yyjson_mut_val *list = yyjson_mut_arr(e->m);
	yyjson_val *item;

	DOC_EACH_ITEM (v, item) {
		if (item == e->target && e->op == TREE_REMOVE)
			continue;
		(void)yyjson_mut_arr_append(list, copy_value(e, item));
		if (item == e->target && e->op == TREE_REPEAT)
			(void)yyjson_mut_arr_append(list, copy_value(e, item));
	}
	return list;
}

static yyjson_mut_val *copy_pairs(struct tree_edit *e, yyjson_val *v)
{
	yyjson_mut_val *object = yyjson_mut_obj(e->m);
	yyjson_val *key, *value;

	DOC_EACH_PAIR (v, key, value) {
		const bool is_key = key == e->target, is_hit = is_key || value == e->target;
		const struct str name = doc_str(key);

		if (is_hit && e->op == TREE_REMOVE)
			continue;
		(void)doc_put(e->m, object, is_key ? changed_key(e, name) : name,
			      copy_value(e, value));
		if (is_hit && e->op == TREE_REPEAT)
			(void)doc_put(e->m, object, name, copy_value(e, value));
	}
	return object;
}

/* As deep as doc_parse() and yaml_parse() allow. */
static yyjson_mut_val *copy_value(struct tree_edit *e, yyjson_val *v)
{
	if (v == e->target)
		return changed_value(e, v);
	if (yyjson_is_arr(v))
		return copy_items(e, v);
	if (yyjson_is_obj(v))
		return copy_pairs(e, v);
	return yyjson_val_mut_copy(e->m, v);
}

static yyjson_mut_val *edit_document(const struct doc *doc, struct arena *a, struct dice *d)
{
	struct tree_edit e = {
		.a = a,
		.m = doc_build(a),
		.dice = d,
		.op = (enum tree_op)dice_roll(d, TREE__COUNT),
		.target = doc->root + dice_roll(d, doc->n_values),
		.other = doc->root + dice_roll(d, doc->n_values),
	};

	return copy_value(&e, doc->root);
}

/* The text as the new input, or other bytes when there is none or it is too long. */
static size_t take(struct str text, uint8_t *data, size_t size, size_t max)
{
	if (!text.n || text.n > max)
		return LLVMFuzzerMutate(data, size, max);
	memcpy(data, text.p, text.n);
	return text.n;
}

static bool edit_json(struct str text, struct arena *a, struct dice *d, struct str *ret)
{
	struct doc doc;

	return doc_parse(text, STR(""), NULL, a, &doc, NULL) == 0 &&
	       doc_write(edit_document(&doc, a, d), false, a, ret, NULL) == 0;
}

static struct str line_at(struct str all, size_t offset)
{
	const char *end = memchr(all.p + offset, '\n', all.n - offset);
	const char *start = offset ? memrchr(all.p, '\n', offset) : NULL;

	start = start ? start + 1 : all.p;
	return (struct str){ start, (size_t)((end ? end : all.p + all.n) - start) };
}

size_t mutate_json(uint8_t *data, size_t size, size_t max, struct dice *d)
{
	const struct str all = { (const char *)data, size };
	CLEANUP(arena_done) struct arena a;
	struct str text, line;
	struct strbuf out;

	arena_init(&a, 0);
	if (edit_json(all, &a, d, &text))
		return take(text, data, size, max);
	line = line_at(all, dice_roll(d, size));
	if (!edit_json(line, &a, d, &text))
		return LLVMFuzzerMutate(data, size, max);
	strbuf_init(&out, &a);
	strbuf_add(&out, (struct str){ all.p, (size_t)(line.p - all.p) });
	strbuf_add(&out, text);
	strbuf_add(&out, str_skip(all, (size_t)(line.p - all.p) + line.n));
	return take(strbuf_str(&out), data, size, max);
}

size_t mutate_yaml(uint8_t *data, size_t size, size_t max, struct dice *d)
{
	CLEANUP(arena_done) struct arena a;
	struct doc_list docs;
	struct strbuf out;
	struct str text;
	size_t chosen;

	arena_init(&a, 0);
	if (yaml_parse((struct str){ (const char *)data, size }, STR(""), NULL, &a, &docs, NULL) <
		    0 ||
	    !docs.n)
		return LLVMFuzzerMutate(data, size, max);
	chosen = dice_roll(d, docs.n);
	strbuf_init(&out, &a);
	for (size_t i = 0; i < docs.n; i++) {
		const int r = i == chosen ? yaml_write(edit_document(&docs.items[i], &a, d), &a,
						       &text, NULL) :
					    yaml_write_val(docs.items[i].root, &a, &text, NULL);

		if (i > 0)
			strbuf_add(&out, STR("---\n"));
		if (r == 0)
			strbuf_add(&out, text);
	}
	return take(strbuf_str(&out), data, size, max);
}
