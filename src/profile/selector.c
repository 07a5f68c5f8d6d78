/* Kubernetes' LabelSelector. Only the four operators that it has; `values` of other types than
 * strings match nothing. */

#include "selector.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"

static bool value_in(yyjson_val *values, struct str value)
{
	yyjson_val *item;

	DOC_EACH_ITEM (values, item) {
		if (str_eq(doc_str(item), value))
			return true;
	}
	return false;
}

static int expression_matches(yyjson_val *expression, yyjson_val *labels, struct err *err)
{
	struct str op = doc_str(doc_get(expression, STR("operator")));
	yyjson_val *label = doc_get(labels, doc_str(doc_get(expression, STR("key"))));
	yyjson_val *values = doc_get(expression, STR("values"));

	if (str_eq(op, STR("In")))
		return label && value_in(values, doc_str(label));
	if (str_eq(op, STR("NotIn")))
		return !label || !value_in(values, doc_str(label));
	if (str_eq(op, STR("Exists")))
		return label != NULL;
	if (str_eq(op, STR("DoesNotExist")))
		return label == NULL;
	return err_set(
		err, EINVAL,
		"unknown selector operator %s: valid ones are In, NotIn, Exists, DoesNotExist",
		quote(op).text);
}

bool labels_contain(yyjson_val *labels, yyjson_val *wanted)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (wanted, key, value) {
		yyjson_val *label = doc_get(labels, doc_str(key));

		if (!label || !str_eq(doc_str(label), doc_str(value)))
			return false;
	}
	return true;
}

int selector_matches(yyjson_val *selector, yyjson_val *labels, struct err *err)
{
	yyjson_val *expression;

	if (!yyjson_is_obj(selector) ||
	    !labels_contain(labels, doc_get(selector, STR("matchLabels"))))
		return 0;
	DOC_EACH_ITEM (doc_get(selector, STR("matchExpressions")), expression) {
		int r = expression_matches(expression, labels, err);

		if (r <= 0)
			return r;
	}
	return 1;
}

struct str labels_format(yyjson_val *labels, struct arena *a)
{
	struct str *pairs = arena_array(a, struct str, yyjson_obj_size(labels) + 1);
	yyjson_val *key, *value;
	struct strbuf b;
	size_t n = 0;

	DOC_EACH_PAIR (labels, key, value) {
		pairs[n++] = str_printf(a, PRI_STR "=" PRI_STR, FMT_STR(doc_str(key)),
					FMT_STR(doc_str(value)));
	}
	qsort(pairs, n, sizeof(*pairs), str_order);
	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_addc(&b, ',');
		strbuf_add(&b, pairs[i]);
	}
	return strbuf_str(&b);
}
