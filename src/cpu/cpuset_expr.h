#pragma once

/* CPU list arithmetic, the expression of `pinfold cpuset`:
 *
 *	EXPR := LIST { OP LIST }	OP := "+" | "-" | "&" | "^"
 *
 * from left to right, without precedence. Operators need blanks around them, which distinguishes
 * "2-3" from "2 - 3". There are no parentheses and no names. */

#include "base/str.h"

struct cpuset;
struct err;

/* "0-7,16-23 - 2,3" gives 0-1,4-7,16-23. A blank expression is the empty set. */
int cpuset_expr_eval(struct str expr, struct cpuset *ret, struct err *err);
