/* Quantities in 128-bit integers of nano units: wide enough for every value that Kubernetes keeps
 * in 64 bits, and exact, so that a converted request is the same number that the scheduler
 * compares. */

#include "quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

#define NANO_PER_UNIT 1000000000
#define NANO_PER_MILLI 1000000
#define NANO_DIGITS 9
#define NANO_MAX ((__int128)INT64_MAX * NANO_PER_UNIT)

#define ERR_FORMAT                                                                                 \
	"quantities must match the regular expression "                                            \
	"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define ERR_NUMERIC "unable to parse numeric part of quantity"
#define ERR_SUFFIX "unable to parse quantity's suffix"

/* A quantity's text, split as the API server splits it. */
struct parts {
	bool negative;
	struct str whole;    /* digits before the point, without leading zeros */
	struct str fraction; /* digits after it */
	struct str suffix;
};

struct scale {
	enum quantity_format format;
	int64_t exponent; /* of 10, or of 2 for QUANTITY_BINARY_SI */
};

static const struct {
	struct str suffix;
	struct scale scale;
} suffixes[] = {
	{ STR_INIT(""), { QUANTITY_DECIMAL_SI, 0 } },
	{ STR_INIT("m"), { QUANTITY_DECIMAL_SI, -3 } },
	{ STR_INIT("k"), { QUANTITY_DECIMAL_SI, 3 } },
	{ STR_INIT("M"), { QUANTITY_DECIMAL_SI, 6 } },
	{ STR_INIT("G"), { QUANTITY_DECIMAL_SI, 9 } },
	{ STR_INIT("T"), { QUANTITY_DECIMAL_SI, 12 } },
	{ STR_INIT("P"), { QUANTITY_DECIMAL_SI, 15 } },
	{ STR_INIT("E"), { QUANTITY_DECIMAL_SI, 18 } },
	{ STR_INIT("u"), { QUANTITY_DECIMAL_SI, -6 } },
	{ STR_INIT("n"), { QUANTITY_DECIMAL_SI, -9 } },
	{ STR_INIT("Ki"), { QUANTITY_BINARY_SI, 10 } },
	{ STR_INIT("Mi"), { QUANTITY_BINARY_SI, 20 } },
	{ STR_INIT("Gi"), { QUANTITY_BINARY_SI, 30 } },
	{ STR_INIT("Ti"), { QUANTITY_BINARY_SI, 40 } },
	{ STR_INIT("Pi"), { QUANTITY_BINARY_SI, 50 } },
	{ STR_INIT("Ei"), { QUANTITY_BINARY_SI, 60 } },
};

static struct str cut_digits(struct str *rest)
{
	struct str digits = { rest->p, 0 };

	while (digits.n < rest->n && str_is_digit(rest->p[digits.n]))
		digits.n++;
	*rest = str_skip(*rest, digits.n);
	return digits;
}

static bool cut_sign(struct str *rest)
{
	bool negative = str_starts(*rest, STR("-"));

	if (negative || str_starts(*rest, STR("+")))
		*rest = str_skip(*rest, 1);
	return negative;
}

static size_t suffix_letters(struct str s)
{
	size_t n = 0;

	while (n < s.n && memchr("eEinumkKMGTP", s.p[n], 12))
		n++;
	return n;
}

/* False when a rest does not match the grammar. */
static bool parts_cut(struct str text, struct parts *ret)
{
	struct parts parts = { 0 };
	struct str rest = text;

	parts.negative = cut_sign(&rest);
	/* Leading zeros do not count as digits in is_kept_decimal(). */
	while (str_starts(rest, STR("0")))
		rest = str_skip(rest, 1);
	parts.whole = cut_digits(&rest);
	if (str_starts(rest, STR("."))) {
		rest = str_skip(rest, 1);
		parts.fraction = cut_digits(&rest);
	}
	parts.suffix = rest;
	rest = str_skip(rest, suffix_letters(rest));
	/* The API server's grammar takes any letters, a sign and digits as a suffix, and rejects
	 * unknown ones later with another message; both messages are kept. */
	cut_sign(&rest);
	cut_digits(&rest);
	*ret = parts;
	return rest.n == 0;
}

static bool has_digit(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (str_is_digit(text.p[i]))
			return true;
	return false;
}

/* "e" or "E" and a number that fits 64 bits, as Go's ParseInt accepts it. */
static bool exponent_parse(struct str suffix, struct scale *ret)
{
	struct str digits = str_skip(suffix, 1);
	bool negative = cut_sign(&digits);
	uint64_t n;

	if (!str_starts(suffix, STR("e")) && !str_starts(suffix, STR("E")))
		return false;
	if (!str_to_u64(digits, (uint64_t)INT64_MAX + negative, &n))
		return false;
	/* A larger exponent gives the same result for any text: zero, or out of range. */
	if (n > INT64_MAX / 2)
		n = INT64_MAX / 2;
	*ret = (struct scale){ QUANTITY_DECIMAL_EXPONENT, negative ? -(int64_t)n : (int64_t)n };
	return true;
}

static bool scale_parse(struct str suffix, struct scale *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (str_eq(suffix, suffixes[i].suffix)) {
			*ret = suffixes[i].scale;
			return true;
		}
	}
	return exponent_parse(suffix, ret);
}

/* A number that is built from its last digit to its first. */
struct digits {
	unsigned __int128 nano;
	int64_t place;	    /* power of ten of the next digit, in nano units */
	bool has_remainder; /* a non-zero digit below one nano unit was dropped */
	bool is_too_big;    /* a non-zero digit above 10^27 was dropped */
};

static void digits_push(struct digits *d, unsigned digit)
{
	static const uint64_t tens[] = { 1, 10, 100, 1000, 10000, 100000, 1000000 };
	unsigned __int128 unit = digit;
	int64_t place = d->place++;

	if (!digit)
		return;
	/* NANO_MAX is about 9.2 x 10^27: a digit above that place cannot fit. Whether a digit at
	 * that place fits is compared at the end. */
	if (place < 0 || place > 27) {
		d->has_remainder |= place < 0;
		d->is_too_big |= place > 27;
		return;
	}
	for (; place >= 6; place -= 6)
		unit *= tens[6];
	d->nano += unit * tens[place];
}

/* Long multiplication by 2^shift: only the carry is kept, so no text is too long and nothing is
 * lost. 9 x 2^60 plus the carry still fits 64 bits. */
static uint64_t digits_push_all(struct digits *d, struct str text, int64_t shift, uint64_t carry)
{
	for (size_t i = text.n; i-- > 0;) {
		uint64_t product = ((uint64_t)(text.p[i] - '0') << shift) + carry;

		digits_push(d, (unsigned)(product % 10));
		carry = product / 10;
	}
	return carry;
}

static bool nano_from(const struct parts *parts, const struct scale *scale, __int128 *ret)
{
	bool is_binary = scale->format == QUANTITY_BINARY_SI;
	int64_t shift = is_binary ? scale->exponent : 0;
	struct digits d = { .place = (is_binary ? 0 : scale->exponent) + NANO_DIGITS };
	uint64_t carry;

	d.place -= (int64_t)parts->fraction.n;
	carry = digits_push_all(&d, parts->fraction, shift, 0);
	carry = digits_push_all(&d, parts->whole, shift, carry);
	for (; carry; carry /= 10)
		digits_push(&d, (unsigned)(carry % 10));

	/* The API server rounds up, so that a request is never rounded to zero. */
	d.nano += d.has_remainder;
	if (d.is_too_big || d.nano > (unsigned __int128)NANO_MAX)
		return false;
	*ret = parts->negative ? -(__int128)d.nano : (__int128)d.nano;
	return true;
}

/* Decimal text that the API server prints as it was written (its fast path): at most 18 digits,
 * none below nano, a power of ten divisible by three, no leading zero, not three trailing zeros.
 * */
static bool is_kept_decimal(const struct parts *p, int64_t exponent)
{
	int64_t scale = exponent - (int64_t)p->fraction.n;
	size_t n = p->whole.n + p->fraction.n;
	char digits[18];

	if (!p->whole.n || n > sizeof(digits) || scale < -NANO_DIGITS || scale % 3 != 0)
		return false;
	memcpy(digits, p->whole.p, p->whole.n);
	if (p->fraction.n)
		memcpy(digits + p->whole.n, p->fraction.p, p->fraction.n);
	return !str_ends((struct str){ digits, n }, STR("000"));
}

/* The same for binary text: no fraction, roughly 15 significant digits, not a multiple of 8. */
static bool is_kept_binary(const struct parts *p, int64_t exponent)
{
	int64_t left = 15 - (int64_t)p->whole.n - exponent * 3 / 10 - 1;
	uint64_t n;

	return !p->fraction.n && left >= 0 && str_to_u64(p->whole, UINT64_MAX, &n) && n % 8 != 0;
}

int quantity_parse(struct str text, struct quantity *ret, struct err *err)
{
	struct quantity q = { 0 };
	struct parts parts;
	struct scale scale;
	bool is_kept;

	if (!text.n || !parts_cut(text, &parts))
		return err_set(err, EINVAL, ERR_FORMAT);
	if (!scale_parse(parts.suffix, &scale))
		return err_set(err, EINVAL, ERR_SUFFIX);
	/* Kubernetes reads "m" or "-" as zero (D6). */
	if (!has_digit(text))
		return err_set(err, EINVAL, ERR_NUMERIC);
	if (!nano_from(&parts, &scale, &q.nano))
		return err_set(err, ERANGE, "quantity %s is out of range", quote(text).text);

	is_kept = scale.format == QUANTITY_BINARY_SI ? is_kept_binary(&parts, scale.exponent) :
						       is_kept_decimal(&parts, scale.exponent);
	if (is_kept)
		q.text = text;
	/* As in the API server: a fraction of one unit has no binary suffix. */
	q.format = scale.format;
	if (q.format == QUANTITY_BINARY_SI && q.nano && q.nano < NANO_PER_UNIT &&
	    q.nano > -NANO_PER_UNIT)
		q.format = QUANTITY_DECIMAL_SI;
	*ret = q;
	return 0;
}

struct quantity quantity_from_int(int64_t n, enum quantity_format format)
{
	return (struct quantity){ .nano = (__int128)n * NANO_PER_UNIT, .format = format };
}

struct quantity quantity_from_milli(int64_t milli, enum quantity_format format)
{
	return (struct quantity){ .nano = (__int128)milli * NANO_PER_MILLI, .format = format };
}

static __int128 divide_up(__int128 n, int64_t by)
{
	__int128 rest = n % by;

	return n / by + (rest > 0) - (rest < 0);
}

int64_t quantity_value(const struct quantity *q)
{
	return (int64_t)divide_up(q->nano, NANO_PER_UNIT);
}

int quantity_milli(const struct quantity *q, int64_t *ret, struct err *err)
{
	__int128 milli = divide_up(q->nano, NANO_PER_MILLI);

	if (milli > QUANTITY_MILLI_MAX || milli < -QUANTITY_MILLI_MAX)
		return err_set(err, ERANGE, "quantity of %" PRId64 " units is out of range",
			       quantity_value(q));
	*ret = (int64_t)milli;
	return 0;
}

struct quantity quantity_round_up_milli(const struct quantity *q)
{
	struct quantity rounded = *q;

	rounded.nano = divide_up(q->nano, NANO_PER_MILLI) * NANO_PER_MILLI;
	/* The text no longer says the value. */
	if (rounded.nano != q->nano)
		rounded.text = STR("");
	return rounded;
}

int quantity_add(struct quantity *sum, const struct quantity *q, struct err *err)
{
	__int128 nano = sum->nano + q->nano;

	if (nano > NANO_MAX || nano < -NANO_MAX)
		return err_set(err, ERANGE, "sum of quantities is out of range");
	sum->nano = nano;
	sum->text = STR("");
	return 0;
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
	return (a->nano > b->nano) - (a->nano < b->nano);
}

int quantity_sign(const struct quantity *q)
{
	return (q->nano > 0) - (q->nano < 0);
}

static void add_mantissa(struct strbuf *b, __int128 n)
{
	const uint64_t half = UINT64_C(1000000000000000000);
	unsigned __int128 abs = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;

	if (n < 0)
		strbuf_addc(b, '-');
	if (abs < half)
		strbuf_add_u64(b, (uint64_t)abs);
	else
		strbuf_printf(b, "%" PRIu64 "%018" PRIu64, (uint64_t)(abs / half),
			      (uint64_t)(abs % half));
}

static void add_decimal(struct strbuf *b, const struct quantity *q)
{
	static const char *const names[] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
	__int128 n = q->nano;
	int power = -NANO_DIGITS;

	/* Suffixes exist for every third power of ten only. The mantissa keeps the other zeros:
	 * 1500m, not 1.5. */
	for (; n % 1000 == 0 && power < 18; n /= 1000)
		power += 3;
	add_mantissa(b, n);
	if (q->format != QUANTITY_DECIMAL_EXPONENT)
		strbuf_add(b, str_from(names[(power + NANO_DIGITS) / 3]));
	else if (power)
		strbuf_printf(b, "e%d", power);
}

static void add_binary(struct strbuf *b, int64_t value)
{
	static const char *const names[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	size_t i = 0;

	/* Bounded by the suffixes: for zero the loop would not end. */
	for (; i + 1 < ARRAY_LEN(names) && value % 1024 == 0; value /= 1024)
		i++;
	strbuf_printf(b, "%" PRId64 "%s", value, names[i]);
}

/* Values below 1Ki or with a fraction are printed in decimal, which is exact. */
static bool is_printed_binary(const struct quantity *q)
{
	const __int128 kibi = (__int128)1024 * NANO_PER_UNIT;

	return q->format == QUANTITY_BINARY_SI && q->nano % NANO_PER_UNIT == 0 &&
	       (q->nano >= kibi || q->nano <= -kibi);
}

struct str quantity_format(const struct quantity *q, struct arena *a)
{
	struct strbuf b;

	if (q->text.n)
		return q->text;
	if (!q->nano)
		return STR("0");
	strbuf_init(&b, a);
	if (is_printed_binary(q))
		add_binary(&b, quantity_value(q));
	else
		add_decimal(&b, q);
	return strbuf_str(&b);
}
