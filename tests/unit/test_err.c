#include <errno.h>
#include <string.h>

#include "test.h"

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

TEST(err_set_returns_the_code_and_stores_the_message)
{
	struct err err = { 0 };

	CHECK_ERR(err_set(&err, ENOENT, "open %s: %d", "x", 7), ENOENT, "open x: 7");
	CHECK_INT(err.code, ENOENT);
	CHECK_INT(err_set(NULL, EINVAL, "no %s", "receiver"), -EINVAL);
}

TEST(err_wrap_prefixes_the_message)
{
	struct err err = { 0 };

	(void)err_set(&err, ERANGE, "bad range 3-1");
	CHECK_ERR(err_wrap(&err, "isolated %s", "cpus"), ERANGE, "isolated cpus: bad range 3-1");
	CHECK_ERR(err_wrap(&err, "node"), ERANGE, "node: isolated cpus: bad range 3-1");
	CHECK(err_wrap(NULL, "no receiver") < 0);
}

TEST(a_message_that_does_not_fit_ends_in_dots)
{
	const size_t room = sizeof(((struct err *)0)->msg) - 1;
	char text[300];
	struct err err;

	for (size_t n = room - 5; n < sizeof(text) - 1; n++) {
		bool cut = n > room;

		memset(text, 'x', n);
		text[n] = '\0';
		(void)err_set(&err, EINVAL, "%s", text);
		TEST_ROW("%zu bytes", n);
		CHECK_UINT(strlen(err.msg), cut ? room : n);
		CHECK(str_ends(str_from(err.msg), STR("...")) == cut);
	}
}

TEST(truncation_does_not_split_a_utf8_character)
{
	const size_t room = sizeof(((struct err *)0)->msg) - 1;
	struct err err;

	for (size_t shift = 0; shift < 4; shift++) {
		char text[400];
		size_t n = shift;

		memset(text, 'x', shift);
		for (; n + 4 < sizeof(text); n += 4)
			memcpy(text + n, "\xf0\x9f\x98\x80", 4);
		text[n] = '\0';
		(void)err_set(&err, EINVAL, "%s", text);
		TEST_ROW("shifted by %zu", shift);
		CHECK(str_ends(str_from(err.msg), STR("\x80...")));
		CHECK_UINT((strlen(err.msg) - 3 - shift) % 4, 0);
		CHECK(strlen(err.msg) > room - 4);
	}
}

TEST(wrapping_a_full_message_truncates_its_end)
{
	struct err err = { 0 };

	(void)err_set(&err, EINVAL, "%s%s", HUNDRED, HUNDRED);
	(void)err_wrap(&err, "%s", HUNDRED);
	CHECK(str_starts(str_from(err.msg), STR(HUNDRED ": " HUNDRED "0123")));
	CHECK(str_ends(str_from(err.msg), STR("...")));
	(void)err_wrap(&err, "%s%s%s", HUNDRED, HUNDRED, HUNDRED);
	CHECK(str_starts(str_from(err.msg), STR(HUNDRED HUNDRED TEN)));
	CHECK(str_ends(str_from(err.msg), STR("...")));
}
