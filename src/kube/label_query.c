/* A query is a list of terms between commas; a comma inside parentheses separates values. */

#include "label_query.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/quote.h"

enum query_operator { QUERY_EXISTS, QUERY_MISSING, QUERY_IN, QUERY_NOT_IN };

struct query_term {
	struct str key;
	enum query_operator operator;
	struct str values; /* between commas */
};

/* The next term; false after the last. */
static bool next_term(struct str *rest, bool *ended, struct str *ret)
{
	size_t depth = 0, n = 0;

	if (*ended)
		return false;
	for (; n < rest->n; n++) {
		const char c = rest->p[n];

		if (c == ',' && depth == 0)
			break;
		depth += c == '(';
		depth -= c == ')' && depth > 0;
	}
	*ret = str_trim((struct str){ rest->p, n });
	*ended = n == rest->n;
	*rest = str_skip(*rest, n + 1);
	return true;
}

static bool is_label_char(char c)
{
	return str_is_alnum(c) || c == '.' || c == '-' || c == '_' || c == '/';
}

static bool is_label(struct str s, bool may_be_empty)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_label_char(s.p[i]))
			return false;
	return s.n > 0 || may_be_empty;
}

/* "key in (a,b)", "key notin (a,b)". */
static bool parse_set(struct str text, struct query_term *ret)
{
	static const struct {
		struct str word;
		enum query_operator operator;
	} words[] = { { STR_INIT(" notin "), QUERY_NOT_IN }, { STR_INIT(" in "), QUERY_IN } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = memmem(text.p, text.n, words[i].word.p, words[i].word.n);
		struct str values;

		if (!at)
			continue;
		values = str_trim(str_skip(text, (size_t)(at - text.p) + words[i].word.n));
		if (values.n < 2 || values.p[0] != '(' || values.p[values.n - 1] != ')')
			return false;
		*ret = (struct query_term){ str_trim((struct str){ text.p, (size_t)(at - text.p) }),
					    words[i].operator, { values.p + 1, values.n - 2 } };
		return true;
	}
	return false;
}

static bool parse_term(struct str text, struct query_term *ret)
{
	const char *equals = text.n ? memchr(text.p, '=', text.n) : NULL;
	struct query_term t = { .operator= QUERY_IN };

	if (!equals) {
		if (parse_set(text, ret))
			return true;
		t.operator= text.n && text.p[0] == '!' ? QUERY_MISSING : QUERY_EXISTS;
		t.key = str_trim(str_skip(text, t.operator== QUERY_MISSING));
	} else {
		size_t key = (size_t)(equals - text.p), value = key + 1;

		if (value < text.n && text.p[value] == '=') /* == is = */
			value++;
		if (key && text.p[key - 1] == '!') {
			t.operator= QUERY_NOT_IN;
			key--;
		}
		t.key = str_trim((struct str){ text.p, key });
		t.values = str_trim(str_skip(text, value));
	}
	*ret = t;
	return true;
}

static bool is_valid(const struct query_term *t)
{
	struct str_split split = str_split(t->values);
	struct str value;

	while (str_next(&split, ',', &value))
		if (!is_label(str_trim(value), true))
			return false;
	return is_label(t->key, false);
}

int label_query_check(struct str text, struct err *err)
{
	bool ended = text.n == 0;
	struct query_term t;
	struct str term;

	while (next_term(&text, &ended, &term))
		if (!parse_term(term, &t) || !is_valid(&t))
			return err_set(
				err, EINVAL,
				"bad label selector %s: use KEY=VALUE, KEY!=VALUE, KEY, !KEY "
				"or KEY in (VALUE,VALUE)",
				quote(term).text);
	return 0;
}

static bool is_one_of(struct str values, struct str label)
{
	struct str_split split = str_split(values);
	struct str value;

	while (str_next(&split, ',', &value))
		if (str_eq(str_trim(value), label))
			return true;
	return false;
}

bool label_query_matches(struct str text, yyjson_val *first, yyjson_val *second)
{
	bool ended = text.n == 0;
	struct query_term t;
	struct str term;

	while (next_term(&text, &ended, &term)) {
		yyjson_val *label;
		bool holds;

		if (!parse_term(term, &t))
			return false;
		label = doc_get(first, t.key);
		if (!label)
			label = doc_get(second, t.key);
		holds = t.operator== QUERY_EXISTS || t.operator== QUERY_MISSING ?
				label != NULL :
				label && is_one_of(t.values, doc_str(label));
		/* As in Kubernetes, != and notin hold for an object without the label. */
		if (t.operator== QUERY_MISSING || t.operator== QUERY_NOT_IN)
			holds = !holds;
		if (!holds)
			return false;
	}
	return true;
}
