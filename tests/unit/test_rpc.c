/* Multiplexer, ttrpc and protocol buffers, without a session. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "nri_runtime.h"

TEST(frames_are_assembled_from_any_split)
{
	static const char wire[] = "\0\0\0\1\0\0\0\3abc"
				   "\0\0\0\2\0\0\0\0"
				   "\0\0\0\2\0\0\0\2de"
				   "\0\0\0\1\0\0\0\1f";
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t cut = 1; cut < sizeof(wire); cut++) {
		struct mux_reader m = { 0 };
		struct strbuf conns[3];

		TEST_ROW("cut every %zu bytes", cut);
		for (size_t i = 0; i < ARRAY_LEN(conns); i++)
			strbuf_init(&conns[i], &a);
		for (size_t at = 0; at < sizeof(wire) - 1; at += cut) {
			const size_t left = sizeof(wire) - 1 - at;
			struct str part = { wire + at, left < cut ? left : cut };
			struct mux_piece piece;

			while (mux_read(&m, &part, &piece, NULL) > 0)
				strbuf_add(&conns[piece.conn], piece.bytes);
			CHECK_UINT(part.n, 0);
		}
		CHECK(!mux_is_inside(&m));
		CHECK_STR(strbuf_str(&conns[1]), "abcf");
		CHECK_STR(strbuf_str(&conns[2]), "de");
	}
}

TEST(a_frame_beyond_the_limit_ends_the_connection)
{
	/* 4194314 bytes are the most that a runtime sends */
	struct str just = STR("\0\0\0\1\0\x40\0\x0a"), more = STR("\0\0\0\1\0\x40\0\x0b");
	struct mux_reader m = { 0 }, n = { 0 };
	struct mux_piece piece;
	struct err err = { 0 };

	CHECK_INT(mux_read(&m, &just, &piece, &err), 0);
	CHECK(mux_is_inside(&m));
	CHECK_ERR(mux_read(&n, &more, &piece, &err), EMSGSIZE,
		  "a frame of 4194315 bytes, more than 4194314");
}

TEST(messages_are_assembled_from_any_split)
{
	static const char wire[] = "\0\0\0\3\0\0\0\1\1\0abc"
				   "\0\0\0\0\0\0\0\3\2\0"
				   "\0\0\0\1\0\0\0\5\1\0d";

	for (size_t cut = 1; cut < sizeof(wire); cut++) {
		struct ttrpc_reader t = { 0 };
		size_t n = 0;

		TEST_ROW("cut every %zu bytes", cut);
		for (size_t at = 0; at < sizeof(wire) - 1; at += cut) {
			const size_t left = sizeof(wire) - 1 - at;
			struct str part = { wire + at, left < cut ? left : cut };
			struct ttrpc_frame f;

			while (part.n > 0 && ttrpc_read(&t, &part, &f)) {
				CHECK_UINT(f.stream, 2 * n + 1);
				CHECK_STR(f.data, n == 0 ? "abc" : n == 1 ? "" : "d");
				n++;
			}
		}
		CHECK_UINT(n, 3);
		ttrpc_reader_done(&t);
	}
}

TEST(an_oversized_message_is_skipped_and_the_next_one_read)
{
	enum { SIZE = 4194305 };
	static const char header[] = "\0\x40\0\1\0\0\0\7\1\0";
	static const char next[] = "\0\0\0\2\0\0\0\x9\1\0ok";
	AUTO_FREE char *data = calloc(1, SIZE);
	struct ttrpc_reader t = { 0 };
	struct ttrpc_frame f;
	struct str parts[] = { { header, sizeof(header) - 1 },
			       { data, SIZE },
			       { next, sizeof(next) - 1 } };

	CHECK(!ttrpc_read(&t, &parts[0], &f));
	CHECK(ttrpc_read(&t, &parts[1], &f));
	CHECK(f.is_oversized);
	CHECK_UINT(f.stream, 7);
	CHECK_UINT(f.size, SIZE);
	CHECK_UINT(t.cap, 0); /* nothing of it was kept */
	CHECK(ttrpc_read(&t, &parts[2], &f));
	CHECK_STR(f.data, "ok");
	ttrpc_reader_done(&t);
}

/* A message with every kind of field. */
struct inner {
	const char *text;
	uint32_t small;
};
struct outer {
	bool flag;
	int32_t number;
	int64_t big;
	const char *text;
	struct str bytes;
	struct inner *one;
	struct inner *many;
	size_t n_many;
	bool has_signed, has_unsigned;
	int64_t wrapped_signed;
	uint64_t wrapped_unsigned;
};
static const struct pb_field inner_fields[] = {
	PB_FIELD(struct inner, 1, PB_STRING, text),
	PB_FIELD(struct inner, 2, PB_UINT32, small),
};
static const struct pb_message inner_message = PB_TABLE(struct inner, inner_fields);
static const struct pb_field outer_fields[] = {
	PB_FIELD(struct outer, 1, PB_BOOL, flag),
	PB_FIELD(struct outer, 2, PB_INT32, number),
	PB_FIELD(struct outer, 3, PB_INT64, big),
	PB_FIELD(struct outer, 4, PB_STRING, text),
	PB_FIELD(struct outer, 5, PB_BYTES, bytes),
	PB_SUB(struct outer, 6, one, &inner_message),
	PB_LIST(struct outer, 7, many, n_many, &inner_message),
	PB_OPTIONAL(struct outer, 8, PB_OPT_INT64, wrapped_signed, has_signed),
	PB_OPTIONAL(struct outer, 200, PB_OPT_UINT64, wrapped_unsigned, has_unsigned),
};
static const struct pb_message outer_message = PB_TABLE(struct outer, outer_fields);

static int decode(const char *hex, struct outer *ret, struct arena *a, struct err *err)
{
	pb_clear(&outer_message, ret);
	return pb_decode(&outer_message, runtime_hex(hex, a), a, ret, err);
}

TEST(every_kind_of_field_has_the_protobuf_encoding)
{
	const struct {
		const char *hex;
		struct outer value;
	} rows[] = {
		{ "", { 0 } },
		{ "0801", { .flag = true } },
		{ "10ffffffffffffffffff01", { .number = -1 } },
		{ "188002", { .big = 256 } },
		{ "18ffffffffffffffffff01", { .big = -1 } },
		{ "22026869", { .text = "hi" } },
		{ "2a020001", { .bytes = STR_INIT("\0\1") } },
		{ "3200", { .one = &(struct inner){ .text = "" } } },
		{ "32040a026869", { .one = &(struct inner){ .text = "hi" } } },
		{ "3a003a021007",
		  { .many = (struct inner[]){ { .text = "" }, { "", 7 } }, .n_many = 2 } },
		{ "4200", { .has_signed = true } },
		{ "420b08ffffffffffffffffff01", { .has_signed = true, .wrapped_signed = -1 } },
		{ "c20c020802", { .has_unsigned = true, .wrapped_unsigned = 2 } },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct str bytes = runtime_encode(&outer_message, &rows[i].value, &a);
		struct outer back;

		TEST_ROW("%s", rows[i].hex);
		CHECK_STR(runtime_to_hex(bytes, &a), rows[i].hex);
		CHECK_UINT(pb_size(&outer_message, &rows[i].value), bytes.n);
		CHECK_OK(decode(rows[i].hex, &back, &a, &err));
		CHECK_STR(runtime_to_hex(runtime_encode(&outer_message, &back, &a), &a),
			  rows[i].hex);
	}
}

TEST(a_later_value_replaces_an_earlier_one_and_messages_merge)
{
	CLEANUP(arena_done) struct arena a;
	struct outer got;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(decode("22016122016232030a016132021005420208054200", &got, &a, &err));
	CHECK_STR(got.text, "b");
	CHECK_STR(got.one->text, "a");
	CHECK_UINT(got.one->small, 5);
	CHECK_INT(got.wrapped_signed, 5); /* an empty wrapper says nothing new */
}

TEST(unknown_fields_are_skipped)
{
	CLEANUP(arena_done) struct arena a;
	struct outer got;
	struct err err = { 0 };

	arena_init(&a, 0);
	/* 100: varint, fixed64, bytes, fixed32; then field 1 as bytes, which it is not */
	CHECK_OK(decode("a0069601a1060102030405060708a20602abcda506010203040a01611807", &got, &a,
			&err));
	CHECK_INT(got.big, 7);
	CHECK(!got.flag);
}

TEST(malformed_messages_are_refused)
{
	static const struct {
		const char *hex, *sentence;
	} rows[] = {
		{ "18", "the message ends inside a number" },
		{ "1880", "the message ends inside a number" },
		{ "18ffffffffffffffffffff01", "a number is larger than 64 bits" },
		{ "18ffffffffffffffffff02", "a number is larger than 64 bits" },
		{ "2205616263", "the message ends inside a field" },
		{ "22ffffffff0f", "the message ends inside a field" },
		{ "22ffffffffffffffffff01", "the message ends inside a field" },
		{ "0001", "a field has an impossible number" },
		{ "80808080800101", "a field has an impossible number" },
		{ "0b", "a field has an impossible type" },
		{ "0f", "a field has an impossible type" },
		{ "a1060102", "the message ends inside a field" },
		{ "220361006200", "a text holds a zero byte" },
		{ "32020a05", "the message ends inside a field" },
	};
	CLEANUP(arena_done) struct arena a;
	struct outer got;
	struct err err = { 0 };

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].hex);
		CHECK_ERR(decode(rows[i].hex, &got, &a, &err), EBADMSG, rows[i].sentence);
	}
}

TEST(a_text_that_does_not_fit_into_memory_is_refused_not_emptied)
{
	CLEANUP(arena_done) struct arena limited;
	struct err err = { 0 };
	struct outer got;

	arena_init(&limited, 4);
	pb_clear(&outer_message, &got);
	CHECK_ERR(pb_decode(&outer_message, STR("\x22\x08platform"), &limited, &got, &err), ENOMEM,
		  "the message needs more memory than allowed");
}

TEST(a_pair_that_does_not_fit_into_memory_is_refused_not_emptied)
{
	static const struct pb_field pair_fields[] = {
		PB_FIELD(struct pb_pair, 1, PB_STRING, key),
		PB_FIELD(struct pb_pair, 2, PB_STRING, value),
	};
	static const struct pb_message pair_message = PB_TABLE(struct pb_pair, pair_fields);
	struct mapped {
		struct pb_pair *pairs;
		size_t n_pairs, pair_bytes;
	} got;
	static const struct pb_field mapped_fields[] = {
		PB_PAIRS(struct mapped, 1, pairs, n_pairs, pair_bytes, &pair_message, 0),
	};
	static const struct pb_message mapped_message = PB_TABLE(struct mapped, mapped_fields);
	CLEANUP(arena_done) struct arena limited;
	struct err err = { 0 };

	/* Space for the pair and its key, not for its value. */
	arena_init(&limited, sizeof(struct pb_pair) + 4);
	pb_clear(&mapped_message, &got);
	CHECK_ERR(pb_decode(&mapped_message, STR("\x0a\x0d\x0a\x01k\x12\x08platform"), &limited,
			    &got, &err),
		  ENOMEM, "the message needs more memory than allowed");
}

TEST(a_message_that_needs_too_much_memory_is_refused)
{
	enum { N = 100000 };
	CLEANUP(arena_done) struct arena a, limited;
	struct err err = { 0 };
	struct outer got;
	struct strbuf b;

	arena_init(&a, 0);
	arena_init(&limited, 1 << 20);
	strbuf_init(&b, &a);
	for (int i = 0; i < N; i++)
		strbuf_add(&b, STR("\x3a\0")); /* two bytes here, sixteen and more in memory */
	pb_clear(&outer_message, &got);
	CHECK_ERR(pb_decode(&outer_message, strbuf_str(&b), &limited, &got, &err), ENOMEM,
		  "the message needs more memory than allowed");
}
