#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "test.h"

TEST(the_test_vectors_of_rfc_4648_encode_and_decode)
{
	static const struct {
		struct str bytes;
		const char *text;
	} cases[] = {
		{ STR_INIT(""), "" },
		{ STR_INIT("f"), "Zg==" },
		{ STR_INIT("fo"), "Zm8=" },
		{ STR_INIT("foo"), "Zm9v" },
		{ STR_INIT("foob"), "Zm9vYg==" },
		{ STR_INIT("fooba"), "Zm9vYmE=" },
		{ STR_INIT("foobar"), "Zm9vYmFy" },
		{ STR_INIT("\0\0\0"), "AAAA" },
		{ STR_INIT("\xfb\xff\xbf"), "+/+/" },
		{ STR_INIT("\xff"), "/w==" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct str got;

		TEST_ROW("%s", cases[i].text);
		CHECK_STR(base64_encode(cases[i].bytes, &a), cases[i].text);
		CHECK_OK(base64_decode(str_from(cases[i].text), &a, &got, &err));
		CHECK_STR(got, cases[i].bytes);
		CHECK_INT(got.p[got.n], 0);
	}
}

TEST(every_byte_survives_encoding_and_decoding)
{
	CLEANUP(arena_done) struct arena a;
	char bytes[259];

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	for (size_t n = 0; n < sizeof(bytes); n++) {
		struct str in = { bytes, n }, out;
		struct err err = { 0 };

		TEST_ROW("%zu bytes", n);
		CHECK_OK(base64_decode(base64_encode(in, &a), &a, &out, &err));
		CHECK_STR(out, in);
	}
}

TEST(base64_that_is_not_strict_is_refused)
{
	static const struct {
		struct str text;
		const char *want;
	} cases[] = {
		{ STR_INIT("Zg"), "base64: length is not a multiple of four" },
		{ STR_INIT("Zg="), "base64: length is not a multiple of four" },
		{ STR_INIT("Zm9v\n"), "base64: length is not a multiple of four" },
		{ STR_INIT("Zm9vZm9\n"), "base64: bad character near offset 4" },
		{ STR_INIT("Zm-_"), "base64: bad character near offset 0" },
		{ STR_INIT("Zm9\0"), "base64: bad character near offset 0" },
		{ STR_INIT("Zm\xc3\xa4"), "base64: bad character near offset 0" },
		{ STR_INIT("===="), "base64: bad character near offset 0" },
		{ STR_INIT("Z==="), "base64: bad character near offset 0" },
		{ STR_INIT("Z=g="), "base64: bad character near offset 0" },
		{ STR_INIT("Zg==Zg=="), "base64: bad character near offset 0" },
		{ STR_INIT("Zm8=Zm9v"), "base64: bad character near offset 0" },
		{ STR_INIT("Zh=="), "base64: bad character near offset 0" }, /* unused bits */
		{ STR_INIT("Zm9="), "base64: bad character near offset 0" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct str got = STR("untouched");

		TEST_ROW("row %zu", i);
		CHECK_ERR(base64_decode(cases[i].text, &a, &got, &err), EINVAL, cases[i].want);
		CHECK_STR(got, "untouched");
	}
}

TEST(running_out_of_memory_is_an_error)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str got;

	arena_init(&a, 2);
	CHECK_ERR(base64_decode(STR("Zm9v"), &a, &got, &err), ENOMEM, "base64: not enough memory");
	CHECK_STR(base64_encode(STR("foo"), &a), "");
	CHECK(a.failed);
}
