#include "writes.h"

#include "base/arena.h"

struct operator_write *operator_writes_add(struct operator_writes *w)
{
	w->items = arena_one_more(w->arena, w->items, w->n, sizeof(*w->items));
	w->items[w->n] = (struct operator_write){ .kind = OPERATOR_KIND__COUNT };
	return &w->items[w->n++];
}

struct operator_write *operator_writes_merge(struct operator_writes *w, struct str path,
					     yyjson_mut_val *body, enum operator_kind kind,
					     struct str object)
{
	struct operator_write *write = operator_writes_add(w);

	write->request = (struct api_request){ .method = "PATCH",
					       .path = path,
					       .content_type = API_PATCH_MERGE };
	/* Fails only when memory is exhausted. */
	(void)doc_write(body, false, w->arena, &write->request.body, NULL);
	write->kind = kind;
	write->object = object;
	return write;
}
