/* A field is named once, by its full path: messages show the path, and its last step is the key. */

#include "fields.h"

#include <string.h>

#include "base/quote.h"

struct str field_key(const char *field)
{
	const char *dot = strrchr(field, '.');

	return str_from(dot ? dot + 1 : field);
}

yyjson_val *field_get(yyjson_val *object, struct str key)
{
	yyjson_val *v = doc_get(object, key);

	/* Kubernetes' decoder leaves a field that is null at its default. */
	return yyjson_is_null(v) ? NULL : v;
}

static void wrong_type(const struct field_reader *r, yyjson_val *v, const char *field,
		       const char *want)
{
	problem_error(r->p, PROBLEM_AT(r->doc, v, field), "must be %s, not %s", want, doc_type(v));
}

bool field_bool(const struct field_reader *r, yyjson_val *object, const char *field, bool otherwise)
{
	yyjson_val *v = field_get(object, field_key(field));

	if (v && !yyjson_is_bool(v))
		wrong_type(r, v, field, "true or false");
	return doc_bool(v, otherwise);
}

struct str field_str(const struct field_reader *r, yyjson_val *object, const char *field)
{
	yyjson_val *v = field_get(object, field_key(field));

	if (v && !yyjson_is_str(v))
		wrong_type(r, v, field, "a string");
	return doc_str(v);
}

int64_t field_int(const struct field_reader *r, yyjson_val *object, const char *field,
		  int64_t otherwise)
{
	yyjson_val *v = field_get(object, field_key(field));
	int64_t n = otherwise;

	if (v && !doc_int(v, &n)) {
		wrong_type(r, v, field, "a whole number");
		return otherwise;
	}
	return n;
}

yyjson_val *field_object(const struct field_reader *r, yyjson_val *object, const char *field)
{
	yyjson_val *v = field_get(object, field_key(field));

	if (v && !yyjson_is_obj(v)) {
		wrong_type(r, v, field, "an object");
		return NULL;
	}
	return v;
}

void field_unknown(const struct field_reader *r, yyjson_val *object, const char *field,
		   const char *const *known, enum problem_level level)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(object);
	yyjson_val *key;

	while ((key = yyjson_obj_iter_next(&it))) {
		const char *const *k = known;

		while (*k && !str_eq(doc_str(key), str_from(*k)))
			k++;
		if (!*k)
			problem_add(r->p, level, PROBLEM_AT(r->doc, key, field),
				    "%s has no effect on the rendered files",
				    quote(doc_str(key)).text);
	}
}
