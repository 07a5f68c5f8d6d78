#include "writes.h"

#include "base/arena.h"
#include "kube/names.h"

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

struct api_request operator_replace_request(const struct object_ref *ref, bool exists,
					    struct str body, struct arena *a)
{
	if (exists)
		return (struct api_request){ .method = "PUT",
					     .path = object_path(ref, a),
					     .content_type = API_JSON,
					     .body = body };
	return (struct api_request){ .method = "PATCH",
				     .path = object_apply_path(ref, STR(NAME_FIELD_MANAGER), a),
				     .content_type = API_PATCH_APPLY,
				     .body = body };
}
