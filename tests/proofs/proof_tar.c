/* Numbers in headers of archives. */

#include "proof.h"

#include SOURCE

void an_octal_number_is_its_digits(void)
{
	const struct str text = any_text(13);
	uint64_t got, want = 0;

	for (size_t i = 0; i < text.n; i++) {
		ASSUME(!(text.p[i] == ' ' || (text.p[i] >= '\t' && text.p[i] <= '\r')));
		want = want << 3 | (uint64_t)(text.p[i] - '0');
	}
	if (read_octal(text, &got)) {
		PROVE(text.n > 0 && text.n <= 12);
		PROVE(got == want && got < UINT64_C(1) << 36);
	}
}
