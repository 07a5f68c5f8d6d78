#pragma once

/* What every proof begins with. CBMC tries all values of the variables that are not set; memory
 * that is read or written out of bounds, a null pointer, a signed overflow and a shift beyond the
 * width fail the proof without being asked for. */

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/quote.h"
#include "base/str.h"

#define ASSUME(condition) __CPROVER_assume(condition)
#define PROVE(condition) __CPROVER_assert(condition, #condition)

size_t nondet_size(void); /* any value: CBMC knows the prefix */

/* Any text of up to `max` bytes, in a block of just its size. */
static inline struct str any_text(size_t max)
{
	const size_t n = nondet_size();
	char *p;

	ASSUME(n <= max);
	p = malloc(n);
	ASSUME(p != NULL);
	return (struct str){ p, n };
}

/* The same in an array, where a read after the text is found only by what is proved about it: much
 * faster for functions that move bytes. */
#define ANY_TEXT_IN(bytes) ((struct str){ (bytes), nondet_size() % (sizeof(bytes) + 1) })

/* Whether a view lies inside another. */
static inline bool is_inside(struct str part, struct str whole)
{
	return !part.n || (__CPROVER_same_object(part.p, whole.p) && part.p >= whole.p &&
			   part.p + part.n <= whole.p + whole.n);
}

/* --- instead of functions whose text does not matter here --- */

int err_record(struct err *err, int code, const char *fmt, ...)
{
	(void)fmt;
	if (err)
		err->code = code;
	return -code;
}

struct quoted quote(struct str text)
{
	(void)text;
	return (struct quoted){ 0 };
}

/* --- functions of the C library that CBMC does not know --- */

void *memchr(const void *bytes, int c, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		if (p[i] == (unsigned char)c)
			return (void *)(p + i);
	return NULL;
}

void *memmem(const void *bytes, size_t n, const void *part, size_t part_n)
{
	const char *p = bytes;

	for (size_t i = 0; i + part_n <= n; i++)
		if (memcmp(p + i, part, part_n) == 0)
			return (void *)(p + i);
	return NULL;
}
