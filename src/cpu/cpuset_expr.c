/* Expressions over CPU lists, evaluated from left to right without precedence. Operators stand
 * between blanks, because "-" is also part of a range such as 2-5. */

#include "cpuset_expr.h"

#include <errno.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cpuset.h"

typedef void (*operator_fn)(struct cpuset *s, const struct cpuset *other);

static const struct {
	char sign;
	operator_fn apply;
} operators[] = {
	{ '+', cpuset_union },
	{ '-', cpuset_minus },
	{ '&', cpuset_intersect },
	{ '^', cpuset_xor },
};

static operator_fn operator_find(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(operators); i++)
		if (word.n == 1 && word.p[0] == operators[i].sign)
			return operators[i].apply;
	return NULL;
}

/* The next word of *rest, empty at its end. */
static struct str next_word(struct str *rest)
{
	struct str word = str_trim(*rest);
	size_t n = 0;

	while (n < word.n && word.p[n] != ' ' && word.p[n] != '\t')
		n++;
	*rest = str_skip(word, n);
	return (struct str){ word.p, n };
}

static int operand_parse(struct str word, struct cpuset *ret, struct err *err)
{
	if (operator_find(word))
		return err_set(err, EINVAL, "expected a CPU list, not operator %s",
			       quote(word).text);
	return cpuset_parse(word, ret, err);
}

int cpuset_expr_eval(struct str expr, struct cpuset *ret, struct err *err)
{
	struct cpuset value, other;
	struct str word;
	int r;

	r = operand_parse(next_word(&expr), &value, err);
	while (r >= 0 && (word = next_word(&expr)).n) {
		operator_fn apply = operator_find(word);
		struct str operand = next_word(&expr);

		if (!apply)
			return err_set(err, EINVAL, "expected one of + - & ^ before %s",
				       quote(word).text);
		if (!operand.n)
			return err_set(err, EINVAL, "no CPU list after operator %s",
				       quote(word).text);
		r = operand_parse(operand, &other, err);
		if (r >= 0)
			apply(&value, &other);
	}
	if (r < 0)
		return r;
	*ret = value;
	return 0;
}
