/* A scanner over JSON text without a stack: what is skipped only needs its brackets counted, so the
 * depth of the text does not matter. */

#include "json_scan.h"

static void skip_blanks(struct str *rest)
{
	while (rest->n && (rest->p[0] == ' ' || rest->p[0] == '\t' || rest->p[0] == '\n' ||
			   rest->p[0] == '\r'))
		*rest = str_skip(*rest, 1);
}

static bool take(struct str *rest, char c)
{
	skip_blanks(rest);
	if (!rest->n || rest->p[0] != c)
		return false;
	*rest = str_skip(*rest, 1);
	return true;
}

static bool take_string(struct str *rest, struct str *ret, bool *ret_escaped)
{
	size_t i = 0;

	*ret_escaped = false;
	if (!take(rest, '"'))
		return false;
	for (; i < rest->n && rest->p[i] != '"'; i++)
		if (rest->p[i] == '\\') {
			*ret_escaped = true;
			i++;
		}
	if (i >= rest->n)
		return false; /* cut off */
	*ret = (struct str){ rest->p, i };
	*rest = str_skip(*rest, i + 1);
	return true;
}

/* Up to the comma or bracket that follows the value. */
static bool skip_value(struct str *rest)
{
	size_t depth = 0;
	struct str text;
	bool escaped;

	for (;;) {
		skip_blanks(rest);
		if (!rest->n)
			return false;
		switch (rest->p[0]) {
		case '"':
			if (!take_string(rest, &text, &escaped))
				return false;
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (!depth)
				return true;
			depth--;
			break;
		case ',':
			if (!depth)
				return true;
			break;
		}
		*rest = str_skip(*rest, 1);
	}
}

/* Leaves *rest at the value of the key. */
static bool enter_member(struct str *rest, struct str key)
{
	struct str name;
	bool escaped;

	if (!take(rest, '{'))
		return false;
	do {
		if (!take_string(rest, &name, &escaped) || !take(rest, ':'))
			return false;
		if (!escaped && str_eq(name, key))
			return true;
		if (!skip_value(rest))
			return false;
	} while (take(rest, ','));
	return false;
}

bool json_scan_str(struct str text, const struct str *keys, size_t n_keys, struct str *ret)
{
	bool escaped;

	for (size_t i = 0; i < n_keys; i++)
		if (!enter_member(&text, keys[i]))
			return false;
	return take_string(&text, ret, &escaped) && !escaped;
}
