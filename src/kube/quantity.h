#pragma once

/* Kubernetes resource quantities ("100m", "1.5", "2Gi", "1e3"): parsed, compared, added, rounded
 * and printed the way the API server does it, exactly and without floating point. What does not
 * fit is an error, never a wrapped or capped number. It is not a general decimal type: nothing is
 * finer than a nano unit, nothing larger than a 64-bit integer. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

/* How a quantity was written, and therefore how results derived from it are printed. */
enum quantity_format {
	QUANTITY_DECIMAL_SI,	   /* n u m k M G T P E */
	QUANTITY_DECIMAL_EXPONENT, /* e3 */
	QUANTITY_BINARY_SI,	   /* Ki Mi Gi Ti Pi Ei */
	QUANTITY_FORMAT__COUNT
};

struct quantity {
	__int128 nano; /* the value in units of 10^-9 */
	enum quantity_format format;
	struct str text; /* as it was written, where the API server would print just that */
};

#define QUANTITY_MILLI_MAX (INT64_MAX / 1000)

/* Parses a quantity; -EINVAL with the API server's sentence, or -ERANGE. Digits beyond nano round
 * away from zero. `ret` points into `text`. */
int quantity_parse(struct str text, struct quantity *ret, struct err *err);

/* A quantity of n whole units that nobody wrote, to be printed in `format`. */
struct quantity quantity_from_int(int64_t n, enum quantity_format format);
struct quantity quantity_from_milli(int64_t milli, enum quantity_format format);

/* In whole units, rounded away from zero. */
int64_t quantity_value(const struct quantity *q);

/* In thousandths, rounded away from zero. -ERANGE beyond QUANTITY_MILLI_MAX: the API server counts
 * the cores resource made from it in thousandths again, and that has to fit 64 bits. */
int quantity_milli(const struct quantity *q, int64_t *ret, struct err *err);

/* What API defaulting does to every quantity: nothing finer than a thousandth, rounded away from
 * zero; the text survives when nothing had to be rounded. */
struct quantity quantity_round_up_milli(const struct quantity *q);

/* Adds to *sum, which keeps its format. -ERANGE when the result does not fit. */
int quantity_add(struct quantity *sum, const struct quantity *q, struct err *err);

int quantity_cmp(const struct quantity *a, const struct quantity *b); /* <0, 0, >0, by value */
int quantity_sign(const struct quantity *q);			      /* -1, 0, 1 */

/* The text the API server would store. It lives in `a`, or is the parsed text itself. */
struct str quantity_format(const struct quantity *q, struct arena *a);
