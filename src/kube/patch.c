/* JSON Patch as a list of operations in one yyjson document. The order of the operations counts:
 * each is applied to the result of those before it, so a path must exist by then. */

#include "patch.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

bool patch_init(struct patch *p, struct arena *a)
{
	*p = (struct patch){ .arena = a, .doc = doc_build(a) };
	p->ops = yyjson_mut_arr(p->doc);
	return p->ops != NULL;
}

bool patch_is_empty(const struct patch *p)
{
	return yyjson_mut_arr_size(p->ops) == 0;
}

struct str patch_path(struct arena *a, struct str base, struct str key)
{
	size_t n = base.n, cap = base.n + 1 + 2 * key.n; /* escaping may double every character */
	char *path = arena_alloc(a, cap, 1);

	if (!path)
		return STR("");
	if (n)
		memcpy(path, base.p, n);
	path[n++] = '/';
	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];
		bool is_special = c == '~' || c == '/';

		/* RFC 6901 section 3: "~" is "~0", "/" is "~1" */
		path[n++] = is_special ? '~' : c;
		if (is_special)
			path[n++] = c == '~' ? '0' : '1';
	}
	/* Gives back what escaping did not need; shrinking the newest block does not move it. */
	(void)arena_realloc(a, path, cap, n);
	return (struct str){ path, n };
}

struct str patch_path_index(struct arena *a, struct str base, size_t index)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, base);
	strbuf_addc(&b, '/');
	strbuf_add_u64(&b, index);
	return strbuf_str(&b);
}

static void add_op(struct patch *p, struct str op, struct str path, yyjson_mut_val *value)
{
	yyjson_mut_val *o = yyjson_mut_arr_add_obj(p->doc, p->ops);

	yyjson_mut_obj_add_strn(p->doc, o, "op", op.p, op.n);
	yyjson_mut_obj_add_strn(p->doc, o, "path", path.n ? path.p : "", path.n);
	if (value)
		yyjson_mut_obj_add_val(p->doc, o, "value", value);
}

void patch_add(struct patch *p, struct str path, yyjson_mut_val *value)
{
	add_op(p, STR("add"), path, value);
}

void patch_add_str(struct patch *p, struct str path, struct str value)
{
	patch_add(p, path, doc_new_str(p->doc, value));
}

void patch_replace(struct patch *p, struct str path, yyjson_mut_val *value)
{
	add_op(p, STR("replace"), path, value);
}

void patch_remove(struct patch *p, struct str path)
{
	add_op(p, STR("remove"), path, NULL);
}

void patch_test(struct patch *p, struct str path, struct str value)
{
	yyjson_mut_val *op = yyjson_mut_obj(p->doc);

	doc_put_str(p->doc, op, STR("op"), STR("test"));
	doc_put_str(p->doc, op, STR("path"), path);
	doc_put_str(p->doc, op, STR("value"), value);
	yyjson_mut_arr_append(p->ops, op);
}

void patch_put(struct patch *p, struct str path, bool exists, yyjson_mut_val *value)
{
	add_op(p, exists ? STR("replace") : STR("add"), path, value);
}

int patch_write(const struct patch *p, struct arena *a, struct str *ret, struct err *err)
{
	return doc_write(p->ops, false, a, ret, err);
}

int patch_apply(const struct patch *p, yyjson_val *v, struct arena *a, yyjson_val **ret,
		struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *before = m ? yyjson_val_mut_copy(m, v) : NULL;
	yyjson_patch_err why = { 0 };
	yyjson_mut_val *after;
	yyjson_val *frozen;

	if (!before)
		return err_set(err, ENOMEM, "not enough memory to apply a patch");
	after = yyjson_mut_patch(m, before, p->ops, &why);
	if (!after)
		return err_set(err, EINVAL, "patch operation %zu: %s", why.idx, why.msg);
	frozen = doc_freeze(after, a);
	if (!frozen)
		return err_set(err, ENOMEM, "not enough memory to apply a patch");
	*ret = frozen;
	return 0;
}
