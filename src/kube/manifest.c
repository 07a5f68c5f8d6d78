/* From bytes to objects: parse the documents of one file, then flatten Lists, so that callers see
 * the same sequence whether a cluster was dumped as one List or as many files. */

#include "manifest.h"

#include "base/arena.h"
#include "codec/yaml.h"
#include "pod.h"

/* The YAML parser records the exact position of every value, the JSON parser is much faster. Above
 * this size speed matters more: only dumps of a cluster are so large. */
#define EXACT_POSITIONS_MAX_BYTES ((size_t)1 << 20)

void manifest_list_add(struct manifest_list *list, struct arena *a, struct manifest m)
{
	/* The readers' arenas have no limit, so this cannot fail: an allocation returns or aborts
	 * (D21). */
	list->items = arena_reserve(a, list->items, list->n, &list->cap, sizeof(m));
	list->items[list->n++] = m;
}

void manifest_list_add_docs(struct manifest_list *list, struct arena *a,
			    const struct doc_list *docs)
{
	for (size_t i = 0; i < docs->n; i++) {
		struct object_iter it = object_iter(docs->items[i].root);
		yyjson_val *object;

		while ((object = object_next(&it)))
			manifest_list_add(list, a, (struct manifest){ &docs->items[i], object });
	}
}

static int parse_documents(struct str text, struct str name, struct arena *a, struct doc_list *ret,
			   struct err *err)
{
	const struct doc_limits limits = { .size_bytes = MANIFEST_MAX_BYTES,
					   .nodes = MANIFEST_MAX_NODES,
					   .documents = MANIFEST_MAX_DOCUMENTS,
					   .tree_bytes = MANIFEST_MAX_TREE_BYTES };
	struct doc *doc;

	if (text.n > EXACT_POSITIONS_MAX_BYTES && str_starts(str_trim(text), STR("{"))) {
		doc = arena_new(a, struct doc);
		/* What this parser rejects is YAML, or several JSON documents, or an error that
		 * the other parser reports with its position. */
		if (doc_parse(text, name, &limits, a, doc, NULL) >= 0 &&
		    doc_check_keys(doc, a, NULL) >= 0) {
			*ret = (struct doc_list){ doc, 1 };
			return 0;
		}
	}
	return yaml_parse(text, name, &limits, a, ret, err);
}

int manifest_parse(struct str text, struct str name, struct arena *a, struct doc_list *ret,
		   struct err *err)
{
	struct doc_list docs;
	int r = parse_documents(text, name, a, &docs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < docs.n; i++) {
		struct object_iter it = object_iter(docs.items[i].root);
		yyjson_val *object;

		while ((object = object_next(&it)))
			if (!yyjson_is_obj(object))
				return doc_err(err, &docs.items[i], object,
					       "not a Kubernetes object but %s", doc_type(object));
	}
	*ret = docs;
	return 0;
}

struct str manifest_position(const struct manifest *m, struct arena *a)
{
	struct doc_pos pos = doc_position(m->doc, m->object);

	return str_printf(a, PRI_STR ":%u:%u", FMT_STR(m->doc->file), pos.line, pos.column);
}
