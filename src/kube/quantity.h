#pragma once

/* Kubernetes resource quantities ("100m", "1.5", "2Gi", "1e3"): parsed, compared, added, rounded
 * and printed as the API server does, exactly and without floating point. A value that does not
 * fit is an error, never wrapped or capped (D6). Not a general decimal type: nothing is finer
 * than a nano unit or larger than a 64-bit integer. */

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
	struct str text; /* as it was written, where the API server prints it so; otherwise empty */
};

#define QUANTITY_MILLI_MAX (INT64_MAX / 1000)

/* Parses a quantity; -EINVAL with the API server's message, or -ERANGE. Digits below nano round
 * away from zero. `ret` points into `text`. */
int quantity_parse(struct str text, struct quantity *ret, struct err *err);

/* A quantity of n whole units, printed in `format`. */
struct quantity quantity_from_int(int64_t n, enum quantity_format format);
struct quantity quantity_from_milli(int64_t milli, enum quantity_format format);

/* In whole units, rounded away from zero. */
int64_t quantity_value(const struct quantity *q);

/* In thousandths, rounded away from zero. -ERANGE beyond QUANTITY_MILLI_MAX: the cores resource
 * made from it is counted in thousandths by the API server again, which has to fit 64 bits. */
int quantity_milli(const struct quantity *q, int64_t *ret, struct err *err);

/* As API defaulting: rounded away from zero to thousandths; the text stays when nothing was
 * rounded. */
struct quantity quantity_round_up_milli(const struct quantity *q);

/* Adds to *sum, which keeps its format. -ERANGE when the result does not fit. */
int quantity_add(struct quantity *sum, const struct quantity *q, struct err *err);

int quantity_cmp(const struct quantity *a, const struct quantity *b); /* <0, 0, >0, by value */
int quantity_sign(const struct quantity *q);			      /* -1, 0, 1 */

/* The text that the API server would store, in `a` or the parsed text itself. */
struct str quantity_format(const struct quantity *q, struct arena *a);
