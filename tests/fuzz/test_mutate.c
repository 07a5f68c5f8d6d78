/* The mutators of tests/fuzz/mutate.h keep the form of an input, and change its content. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "mutate.h"
#include "rpc/ttrpc.h"
#include "test.h"

#define ROUNDS 3000
#define INPUT_MAX 400

/* In place of libFuzzer's: letters, which keep every text valid. */
static size_t n_byte_mutations;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	n_byte_mutations++;
	if (size == max_size || (size > 0 && n_byte_mutations % 2)) {
		data[n_byte_mutations % size] = (uint8_t)('a' + n_byte_mutations % 26);
		return size;
	}
	data[size] = 'z';
	return size + 1;
}

struct sample {
	mutate_fn form;
	struct str text;
	bool (*is_valid)(struct str);
};

static bool is_json(struct str text)
{
	CLEANUP(arena_done) struct arena a;
	struct doc doc;

	arena_init(&a, 0);
	return doc_parse(text, STR(""), NULL, &a, &doc, NULL) == 0;
}

static bool is_json_lines(struct str text)
{
	struct str_split lines = str_split(text);
	struct str line;

	while (str_next(&lines, '\n', &line))
		if (!is_json(line))
			return false;
	return true;
}

static bool is_yaml(struct str text)
{
	CLEANUP(arena_done) struct arena a;
	struct doc_list docs;
	struct err err;

	arena_init(&a, 0);
	return yaml_parse(text, STR(""), NULL, &a, &docs, &err) == 0 ||
	       strstr(err.msg, "key"); /* a key that is there twice is a good mutation */
}

static bool is_http2(struct str text)
{
	while (text.n >= 9) {
		const uint8_t *p = (const uint8_t *)text.p;
		const size_t n = 9 + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);

		if (n > text.n)
			return false;
		text = str_skip(text, n);
	}
	return !text.n;
}

static bool is_protobuf(struct str text)
{
	while (text.n >= 2) { /* numbers here have one byte, except for values */
		const uint8_t *p = (const uint8_t *)text.p;
		size_t n = 1;

		if ((p[0] & 7) == 2)
			n = 2 + (size_t)p[1];
		else
			while (n < text.n && p[n++] & 0x80)
				;
		if (n > text.n)
			return false;
		text = str_skip(text, n);
	}
	return !text.n;
}

static bool is_nri(struct str text)
{
	struct ttrpc_reader readers[2] = { 0 };
	struct mux_reader m = { 0 };
	struct mux_piece piece;
	bool ok = true;

	while (mux_read(&m, &text, &piece, NULL) > 0) {
		struct ttrpc_reader *t = &readers[piece.conn % 2];
		struct ttrpc_frame f;

		while (piece.bytes.n > 0 && ttrpc_read(t, &piece.bytes, &f))
			ok = ok && is_protobuf(f.data);
	}
	ok = ok && !mux_is_inside(&m);
	ttrpc_reader_done(&readers[0]);
	ttrpc_reader_done(&readers[1]);
	return ok;
}

static const struct sample samples[] = {
	{ mutate_json, STR_INIT("{\"a\":[1,\"0-3\",{\"b\":null}],\"c\":{\"d\":true}}"), is_json },
	{ mutate_json, STR_INIT("{\"id\":\"web\"}\n{\"a\":[1,2],\"b\":\"c\"}"), is_json_lines },
	{ mutate_yaml, STR_INIT("a: [1, 0-3]\nb: {c: d}\n---\ne:\n- f: g\n  h: 1\n"), is_yaml },
	{ mutate_http2,
	  STR_INIT("\0\0\x08\x06\0\0\0\0\0pingpong\0\0\0\x04\x01\0\0\0\0\0\0\x01\0\x01\0\0\0\x01x"),
	  is_http2 },
	{ mutate_protobuf,
	  STR_INIT("\x0a\x03"
		   "abc\x10\x05\x1a\x06\x0a\x01k\x12\x01v"),
	  is_protobuf },
	{ mutate_nri,
	  STR_INIT("\0\0\0\x01\0\0\0\x0f\0\0\0\x05\0\0\0\x01\x01\0\x0a\x03"
		   "abc\0\0\0\x01\0\0\0\x0a\0\0\0\x04\0\0\0\x03\x01\0\0\0\0\x01\0\0\0\x04\x12\x02x"
		   "y"),
	  is_nri },
};

static size_t mutate_once(const struct sample *s, uint64_t seed, uint8_t *data)
{
	struct dice d = { seed };

	memcpy(data, s->text.p, s->text.n);
	return s->form(data, s->text.n, INPUT_MAX, &d);
}

TEST(a_mutated_input_keeps_its_form)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		TEST_ROW("sample %zu", i);
		for (uint64_t seed = 0; seed < ROUNDS; seed++) {
			uint8_t data[INPUT_MAX];
			const size_t n = mutate_once(&samples[i], seed, data);

			CHECK(n <= INPUT_MAX);
			CHECK(samples[i].is_valid((struct str){ (const char *)data, n }));
		}
	}
}

TEST(mutations_differ_from_the_input_and_from_each_other)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		static bool seen[4096];
		size_t n_same = 0, n_different = 0;

		TEST_ROW("sample %zu", i);
		memset(seen, 0, sizeof(seen));
		for (uint64_t seed = 0; seed < ROUNDS; seed++) {
			uint8_t data[INPUT_MAX];
			const size_t n = mutate_once(&samples[i], seed, data);
			uint32_t sum = 5381;

			n_same += str_eq((struct str){ (const char *)data, n }, samples[i].text);
			for (size_t k = 0; k < n; k++)
				sum = sum * 33 + data[k];
			n_different += !seen[sum % ARRAY_LEN(seen)];
			seen[sum % ARRAY_LEN(seen)] = true;
		}
		CHECK(n_same < ROUNDS / 4);
		CHECK(n_different > 50);
	}
}

TEST(the_same_seed_gives_the_same_mutation)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++)
		for (uint64_t seed = 0; seed < 100; seed++) {
			uint8_t one[INPUT_MAX], two[INPUT_MAX];
			size_t n_one, n_two;

			n_byte_mutations = 0;
			n_one = mutate_once(&samples[i], seed, one);
			n_byte_mutations = 0;
			n_two = mutate_once(&samples[i], seed, two);
			CHECK_UINT(n_one, n_two);
			CHECK(memcmp(one, two, n_one) == 0);
		}
}

TEST(input_of_another_form_gets_byte_mutations)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		uint8_t data[INPUT_MAX] = "\xff\xff{\xff";
		const size_t before = n_byte_mutations;
		struct dice d = { 1 };

		(void)samples[i].form(data, 4, INPUT_MAX, &d);
		CHECK_UINT(n_byte_mutations, before + 1);
	}
}

TEST(an_input_is_never_empty_nor_longer_than_allowed)
{
	for (unsigned seed = 0; seed < ROUNDS; seed++) {
		uint8_t data[20] = "\1{}";
		const size_t n = mutate_input(data, 3, sizeof(data), seed, 1, mutate_json);

		CHECK(n > 0 && n <= sizeof(data));
	}
}
