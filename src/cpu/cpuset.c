/* CPU sets as bit arrays of a fixed size, and the texts they are read from and written to. A fixed
 * size needs no allocation, so no operation on sets can fail. */

#include "cpuset.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/quote.h"

static uint64_t bits_from(unsigned bit)
{
	return ~UINT64_C(0) << bit;
}

/* Both shifts stay below 64, where C defines them: the range is inclusive, so a whole word is bits
 * 0 to 63. */
static uint64_t bits_to(unsigned bit)
{
	return ~UINT64_C(0) >> (63 - bit);
}

void cpuset_add_range(struct cpuset *s, unsigned first, unsigned last)
{
	unsigned i = first / 64, end = last / 64;

	assert(first <= last && last < CPUSET_MAX);
	if (i == end) {
		s->w[i] |= bits_from(first % 64) & bits_to(last % 64);
		return;
	}
	s->w[i] |= bits_from(first % 64);
	while (++i < end)
		s->w[i] = ~UINT64_C(0);
	s->w[end] |= bits_to(last % 64);
}

/* Loops without exits in between, so that the compiler turns them into vector instructions. */
void cpuset_union(struct cpuset *s, const struct cpuset *with)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		s->w[i] |= with->w[i];
}

void cpuset_intersect(struct cpuset *s, const struct cpuset *with)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		s->w[i] &= with->w[i];
}

void cpuset_minus(struct cpuset *s, const struct cpuset *without)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		s->w[i] &= ~without->w[i];
}

void cpuset_xor(struct cpuset *s, const struct cpuset *with)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		s->w[i] ^= with->w[i];
}

bool cpuset_is_empty(const struct cpuset *s)
{
	return cpuset_first(s) == CPUSET_NONE;
}

bool cpuset_is_subset(const struct cpuset *s, const struct cpuset *of)
{
	uint64_t outside = 0;

	for (size_t i = 0; i < CPUSET_WORDS; i++)
		outside |= s->w[i] & ~of->w[i];
	return !outside;
}

bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b)
{
	uint64_t common = 0;

	for (size_t i = 0; i < CPUSET_WORDS; i++)
		common |= a->w[i] & b->w[i];
	return common;
}

/* Every bit belongs to a CPU and there is no padding, so equal sets have equal bytes. */
bool cpuset_eq(const struct cpuset *a, const struct cpuset *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

unsigned cpuset_count(const struct cpuset *s)
{
	unsigned n = 0;

	/* Most sets end early, and without the popcnt instruction an empty word costs as much. */
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		if (s->w[i])
			n += (unsigned)__builtin_popcountll(s->w[i]);
	return n;
}

unsigned cpuset_first(const struct cpuset *s)
{
	return cpuset_next(s, 0);
}

unsigned cpuset_last(const struct cpuset *s)
{
	for (unsigned i = CPUSET_WORDS; i-- > 0;)
		if (s->w[i])
			return i * 64 + 63 - (unsigned)__builtin_clzll(s->w[i]);
	return CPUSET_NONE;
}

unsigned cpuset_next(const struct cpuset *s, unsigned from)
{
	uint64_t word;

	if (from >= CPUSET_MAX)
		return CPUSET_NONE;
	word = s->w[from / 64] & bits_from(from % 64);
	for (unsigned i = from / 64;; word = s->w[i]) {
		if (word)
			return i * 64 + (unsigned)__builtin_ctzll(word);
		if (++i == CPUSET_WORDS)
			return CPUSET_NONE;
	}
}

/* Saturates far above CPUSET_MAX: such a number is out of range in any case. Signs are accepted
 * because Go's Atoi, which the kubelet uses, accepts them. */
static bool number_parse(struct str s, bool lenient, int64_t *ret)
{
	bool negative = lenient && str_starts(s, STR("-"));
	int64_t value = 0;

	if (negative || (lenient && str_starts(s, STR("+"))))
		s = str_skip(s, 1);
	for (size_t i = 0; i < s.n; i++) {
		if (!str_is_digit(s.p[i]))
			return false;
		value = value * 10 + (s.p[i] - '0');
		if (value > INT32_MAX)
			value = INT32_MAX;
	}
	*ret = negative ? -value : value;
	return s.n > 0;
}

static int item_parse(struct str item, bool lenient, struct cpuset *s, struct err *err)
{
	const char *dash = item.n ? memchr(item.p, '-', item.n) : NULL;
	struct str left = { item.p, dash ? (size_t)(dash - item.p) : item.n };
	struct str right = dash ? str_skip(item, left.n + 1) : left;
	int64_t first, last;

	if (!number_parse(left, lenient, &first) || !number_parse(right, lenient, &last))
		return err_set(err, EINVAL, "bad item %s: not a CPU number or range",
			       quote(item).text);
	if (first >= CPUSET_MAX || last >= CPUSET_MAX)
		return err_set(err, ERANGE, "CPU %s is out of range: the last is %d",
			       quote(first >= CPUSET_MAX ? left : right).text, CPUSET_MAX - 1);
	if (first > last)
		return err_set(err, EINVAL, "bad range %s: %" PRId64 " is above %" PRId64,
			       quote(item).text, first, last);
	cpuset_add_range(s, (unsigned)first, (unsigned)last);
	return 0;
}

static int list_parse(struct str list, bool lenient, struct cpuset *ret, struct err *err)
{
	struct str_split items = str_split(list);
	struct cpuset s = { 0 };
	struct str item;
	int r;

	/* An empty list is the empty set, while an empty item between commas is an error. */
	while (list.n && str_next(&items, ',', &item)) {
		if (!item.n)
			return err_set(err, EINVAL, "empty item in CPU list %s", quote(list).text);
		r = item_parse(item, lenient, &s, err);
		if (r < 0)
			return r;
	}
	*ret = s;
	return 0;
}

int cpuset_parse(struct str list, struct cpuset *ret, struct err *err)
{
	return list_parse(list, false, ret, err);
}

int cpuset_parse_lenient(struct str list, struct cpuset *ret, struct err *err)
{
	return list_parse(list, true, ret, err);
}

int cpuset_parse_kernel(struct str text, struct cpuset *ret, struct err *err)
{
	text = str_trim(text);
	/* The kernel prints this for nohz_full when it was booted without that argument. */
	if (str_eq(text, STR("(null)")))
		text = STR("");
	return list_parse(text, false, ret, err);
}

/* Words are counted from the end, so the text is read backwards. */
int cpuset_parse_words(struct str text, struct cpuset *ret, struct err *err)
{
	const struct str mask = str_trim(text);
	struct cpuset s = { 0 };
	unsigned bit = 0, digits = 0;

	for (size_t i = mask.n; i-- > 0;) {
		const int digit = str_hex_digit(mask.p[i]);

		if (mask.p[i] == ',' && digits == 8 && i > 0) {
			digits = 0;
			continue;
		}
		if (digit < 0 || digits == 8)
			return err_set(err, EINVAL, "CPU mask: malformed word");
		for (unsigned k = 0; k < 4; k++) {
			if (!(digit >> k & 1))
				continue;
			if (bit + k >= CPUSET_MAX)
				return err_set(err, ERANGE, "CPU mask: more than %d CPUs",
					       CPUSET_MAX);
			cpuset_add(&s, bit + k);
		}
		bit += 4;
		digits++;
	}
	if (mask.n == 0)
		return err_set(err, EINVAL, "CPU mask: empty");
	*ret = s;
	return 0;
}

struct str cpuset_format(const struct cpuset *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (unsigned cpu = cpuset_first(s); cpu != CPUSET_NONE;) {
		unsigned last = cpu;

		while (cpuset_has(s, last + 1))
			last++;
		strbuf_printf(&b, b.n ? ",%u" : "%u", cpu);
		if (last > cpu)
			strbuf_printf(&b, "-%u", last);
		cpu = cpuset_next(s, last + 1);
	}
	return strbuf_str(&b);
}

struct str cpuset_format_expanded(const struct cpuset *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	CPUSET_FOREACH (cpu, s)
		strbuf_printf(&b, b.n ? ",%u" : "%u", cpu);
	return strbuf_str(&b);
}

static uint32_t word32(const struct cpuset *s, unsigned i)
{
	return (uint32_t)(s->w[i / 2] >> (i % 2 * 32));
}

static unsigned last_word32(const struct cpuset *s)
{
	unsigned last = cpuset_last(s);

	return last == CPUSET_NONE ? 0 : last / 32;
}

static struct str format_words(const struct cpuset *s, int first_width, const char *separator,
			       struct arena *a)
{
	unsigned i = last_word32(s);
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "%0*" PRIx32, first_width, word32(s, i));
	while (i-- > 0)
		strbuf_printf(&b, "%s%08" PRIx32, separator, word32(s, i));
	return strbuf_str(&b);
}

struct str cpuset_format_hex(const struct cpuset *s, struct arena *a)
{
	return format_words(s, 1, "", a);
}

/* Without leading empty words, unlike the kernel, which prints as many as the machine needs. */
struct str cpuset_format_words(const struct cpuset *s, struct arena *a)
{
	return format_words(s, 8, ",", a);
}
