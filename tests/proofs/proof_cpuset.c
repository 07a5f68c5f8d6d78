/* CPU sets: words of ranges and the numbers of lists. */

#include "proof.h"

#include SOURCE

void a_word_of_a_range_has_its_bits_and_no_other(void)
{
	unsigned first, last, bit;

	ASSUME(first < 64 && last < 64 && bit < 64);
	PROVE(((bits_from(first) & bits_to(last)) >> bit & 1) == (bit >= first && bit <= last));
}

void a_cpu_number_is_its_decimal_digits(void)
{
	const struct str text = any_text(5), longer = any_text(11);
	int64_t got, want = 0;
	size_t digits = 0;

	for (; digits < text.n && str_is_digit(text.p[digits]); digits++)
		want = want * 10 + (text.p[digits] - '0');
	PROVE(number_parse(text, false, &got) == (text.n > 0 && digits == text.n));
	PROVE(!text.n || digits < text.n || got == want);
	PROVE(!number_parse(longer, false, &got) || (got >= 0 && got <= INT32_MAX));
}
