/* D-Bus messages, byte by byte as the specification has them. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "rpc/dbus.h"
#include "test.h"

/* A Hello call, written down by the rules of the specification, not by this encoder. */
static const char hello[] = "l\1\0\1"	 /* little-endian, call, no flags, version 1 */
			    "\0\0\0\0"	 /* no body */
			    "\1\0\0\0"	 /* serial */
			    "\x6d\0\0\0" /* bytes of the fields */
			    "\1\1o\0\x15\0\0\0/org/freedesktop/DBus\0\0\0"
			    "\2\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0"
			    "\3\1s\0\5\0\0\0Hello\0\0\0"
			    "\6\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0";

TEST(a_call_is_encoded_as_the_specification_says)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	dbus_add_call(&b, &(struct dbus_call){ "org.freedesktop.DBus", "/org/freedesktop/DBus",
					       "org.freedesktop.DBus", "Hello", "", STR(""), 1 });
	CHECK_UINT(b.n, sizeof(hello));
	CHECK(memcmp(b.p, hello, b.n) == 0);
}

TEST(an_array_of_structs_counts_from_its_first_element)
{
	CLEANUP(arena_done) struct arena a;
	struct dbus_array outer, inner;
	struct strbuf b;
	/* a(sv) with one pair of "a" and the bytes 3 and 0. */
	static const char want[] = "\x12\0\0\0\0\0\0\0"
				   "\1\0\0\0a\0\2ay\0\0\0\2\0\0\0\3\0";

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	outer = dbus_begin_array(&b, 8);
	dbus_add_string(&b, STR("a"));
	dbus_add_signature(&b, STR("ay"));
	inner = dbus_begin_array(&b, 1);
	strbuf_addc(&b, 3);
	strbuf_addc(&b, 0);
	dbus_end_array(&b, inner);
	dbus_end_array(&b, outer);
	CHECK_UINT(b.n, sizeof(want) - 1);
	CHECK(memcmp(b.p, want, b.n) == 0);
}

/* An error of systemd, in the byte order of a big-endian machine. */
static const char failed[] = "B\3\1\1"
			     "\0\0\0\x0c"
			     "\0\0\0\7"
			     "\0\0\0\x37"
			     "\5\1u\0\0\0\0\2"
			     "\4\1s\0\0\0\0\x18org.freedesktop.DBus.Bad\0\0\0\0\0\0\0\0"
			     "\b\1g\0\1s\0\0"
			     "\0\0\0\7no unit";

TEST(an_error_is_parsed_in_either_byte_order)
{
	const struct str bytes = { failed, sizeof(failed) };
	struct dbus_message m;
	struct err err = { 0 };
	size_t size;

	CHECK_INT(dbus_parse(bytes, &m, &size, &err), 1);
	CHECK_UINT(size, sizeof(failed));
	CHECK_INT(m.type, DBUS_ERROR);
	CHECK_UINT(m.serial, 7);
	CHECK_UINT(m.reply_serial, 2);
	CHECK_STR(m.error_name, "org.freedesktop.DBus.Bad");
	CHECK_STR(dbus_error_text(&m), "no unit");
}

TEST(a_part_of_a_message_waits_for_the_rest)
{
	for (size_t n = 0; n < sizeof(failed); n++) {
		struct dbus_message m;
		struct err err = { 0 };
		size_t size;

		TEST_ROW("%zu bytes", n);
		CHECK_INT(dbus_parse((struct str){ failed, n }, &m, &size, &err), 0);
	}
}

TEST(a_malformed_message_is_refused)
{
	static const struct {
		size_t at;
		char byte;
		int code;
	} rows[] = {
		{ 0, 'x', EBADMSG },  /* no byte order */
		{ 1, 5, EBADMSG },    /* no type */
		{ 3, 2, EBADMSG },    /* another version */
		{ 4, 1, EMSGSIZE },   /* a body of 16 MiB */
		{ 12, 1, EMSGSIZE },  /* fields of 16 MiB */
		{ 11, 0, EBADMSG },   /* serial 0 */
		{ 18, 'a', EBADMSG }, /* a field with a container */
		{ 31, 127, EBADMSG }, /* a string longer than the fields */
		{ 34, 0, EBADMSG },   /* a NUL in a string */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dbus_message m;
		struct err err = { 0 };
		char bytes[sizeof(failed)];
		size_t size;

		TEST_ROW("byte %zu", rows[i].at);
		memcpy(bytes, failed, sizeof(bytes));
		bytes[rows[i].at] = rows[i].byte;
		CHECK_INT(dbus_parse((struct str){ bytes, sizeof(bytes) }, &m, &size, &err),
			  -rows[i].code);
	}
}

TEST(a_client_authenticates_by_its_user)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	dbus_add_auth(&b, 1000);
	CHECK_UINT((unsigned char)b.p[0], 0);
	CHECK_STR(str_skip(strbuf_str(&b), 1), "AUTH EXTERNAL 31303030\r\nBEGIN\r\n");
}

TEST(only_a_line_that_accepts_ends_the_authentication)
{
	static const struct {
		const char *bytes;
		int want;
		size_t size;
	} rows[] = {
		{ "", 0, 0 },
		{ "OK 1234", 0, 0 },
		{ "OK 1234deadbeef\r\nl\1", 1, 17 },
		{ "REJECTED EXTERNAL\r\n", -EACCES, 0 },
		{ "ERROR\r\n", -EACCES, 0 },
		{ "\n", -EACCES, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };
		size_t size = 0;

		TEST_ROW("\"%s\"", rows[i].bytes);
		CHECK_INT(dbus_parse_auth(str_from(rows[i].bytes), &size, &err), rows[i].want);
		CHECK_UINT(size, rows[i].size);
	}
}
