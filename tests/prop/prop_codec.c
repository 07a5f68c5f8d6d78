#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "prop.h"
#include "readers.h"

/* Pieces that YAML gives a meaning to, in any order, next to harmless ones. */
static const struct str pieces[] = {
	STR_INIT("a"),
	STR_INIT("no"),
	STR_INIT("0"),
	STR_INIT("1"),
	STR_INIT("_"),
	STR_INIT("."),
	STR_INIT("e"),
	STR_INIT("x"),
	STR_INIT("-"),
	STR_INIT("+"),
	STR_INIT(":"),
	STR_INIT(" "),
	STR_INIT("  "),
	STR_INIT("\n"),
	STR_INIT("\n\n"),
	STR_INIT("\t"),
	STR_INIT("\r"),
	STR_INIT("#"),
	STR_INIT("'"),
	STR_INIT("\""),
	STR_INIT("\\"),
	STR_INIT("["),
	STR_INIT("]"),
	STR_INIT("{"),
	STR_INIT("}"),
	STR_INIT(","),
	STR_INIT("&"),
	STR_INIT("*"),
	STR_INIT("!"),
	STR_INIT("|"),
	STR_INIT(">"),
	STR_INIT("%"),
	STR_INIT("@"),
	STR_INIT("`"),
	STR_INIT("?"),
	STR_INIT("---"),
	STR_INIT("..."),
	STR_INIT("<<"),
	STR_INIT("="),
	STR_INIT("~"),
	STR_INIT("null"),
	STR_INIT("2001-01-01"),
	STR_INIT("T"),
	STR_INIT("Z"),
	STR_INIT("\0"),
	STR_INIT("\x7f"),
	STR_INIT("\xc2\x85"),
	STR_INIT("\xc2\xa0"),
	STR_INIT("\xc3\xa4"),
	STR_INIT("\xe2\x80\xa8"),
	STR_INIT("\xef\xbb\xbf"),
	STR_INIT("\xf0\x9f\x98\x80"),
};

/* Ways to write a number in JSON that YAML 1.1 reads as the same number. */
static const struct str numbers[] = {
	STR_INIT("0"),
	STR_INIT("-1"),
	STR_INIT("1.50"),
	STR_INIT("-0.0"),
	STR_INIT("12345678901234567890"),
	STR_INIT("1.0e+3"),
};

/* And some that it reads as strings, for our own reader. */
static const struct str odd_numbers[] = {
	STR_INIT("1e400"),
	STR_INIT("-0"),
	STR_INIT("1E5"),
	STR_INIT("0e0"),
	STR_INIT("0.10"),
	STR_INIT("1234567890123456789012345678901234567890123456789012345678901234567890"),
};

struct maker {
	struct prop *p;
	struct arena *a;
	yyjson_mut_doc *m;
	bool odd; /* numbers that only we read as numbers */
};

static struct str make_text(struct maker *k)
{
	struct strbuf b;

	strbuf_init(&b, k->a);
	for (uint64_t n = prop_below(k->p, 6); n; n--)
		strbuf_add(&b, prop_pick(k->p, pieces));
	return strbuf_str(&b);
}

static yyjson_mut_val *make_number(struct maker *k)
{
	struct str text = k->odd && prop_one_in(k->p, 2) ? prop_pick(k->p, odd_numbers) :
							   prop_pick(k->p, numbers);

	return yyjson_mut_rawn(k->m, text.p, text.n);
}

static yyjson_mut_val *make_value(struct maker *k, unsigned depth)
{
	uint64_t n = prop_below(k->p, 5), kind = prop_below(k->p, depth ? 8 : 5);
	yyjson_mut_val *v;

	switch (kind) {
	case 0:
		return yyjson_mut_null(k->m);
	case 1:
		return yyjson_mut_bool(k->m, n & 1);
	case 2:
		return make_number(k);
	case 3:
	case 4:
		return doc_new_str(k->m, make_text(k));
	case 5:
		v = yyjson_mut_arr(k->m);
		for (; n; n--)
			(void)yyjson_mut_arr_append(v, make_value(k, depth - 1));
		return v;
	default:
		v = yyjson_mut_obj(k->m);
		for (; n; n--)
			(void)doc_put(k->m, v, make_text(k), make_value(k, depth - 1));
		return v;
	}
}

/* Never null: a document that is null counts as none. */
static yyjson_mut_val *make_document(struct prop *p, struct arena *a, bool odd)
{
	struct maker k = { p, a, doc_build(a), odd };
	yyjson_mut_val *v = make_value(&k, 4);

	return yyjson_mut_is_null(v) ? yyjson_mut_obj(k.m) : v;
}

TEST(a_document_is_unchanged_after_writing_and_reading_json)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(arena_done) struct arena a;
		yyjson_mut_val *v;
		struct err err = { 0 };
		struct str text, again;
		struct doc doc;

		arena_init(&a, 0);
		v = make_document(&p, &a, true);
		CHECK_OK(doc_write(v, prop_one_in(&p, 2), &a, &text, &err));
		CHECK_OK(doc_parse(text, STR("json"), NULL, &a, &doc, &err));
		CHECK(yyjson_mut_equals(v, yyjson_val_mut_copy(doc_build(&a), doc.root)));
		CHECK_OK(doc_check_keys(&doc, &a, &err));
		CHECK_OK(doc_write(v, false, &a, &text, &err));
		CHECK_OK(doc_write_val(doc.root, false, &a, &again, &err));
		CHECK_STR(again, text);
	}
}

TEST(a_document_is_unchanged_after_writing_and_reading_yaml)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(arena_done) struct arena a;
		yyjson_mut_val *v;
		struct err err = { 0 };
		struct str yaml, json, again;
		struct doc_list docs;

		arena_init(&a, 0);
		v = make_document(&p, &a, true);
		CHECK_OK(doc_write(v, false, &a, &json, &err));
		CHECK_OK(yaml_write(v, &a, &yaml, &err));
		CHECK_OK(yaml_parse(yaml, STR("yaml"), NULL, &a, &docs, &err));
		CHECK_UINT(docs.n, 1);
		CHECK_OK(doc_write_val(docs.items[0].root, false, &a, &again, &err));
		CHECK_STR(again, json);
	}
}

TEST(a_json_text_read_as_yaml_is_the_same_document)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(arena_done) struct arena a;
		yyjson_mut_doc *m;
		yyjson_mut_val *list;
		struct err err = { 0 };
		struct str json, again;
		struct doc_list docs;

		arena_init(&a, 0);
		m = doc_build(&a);
		list = yyjson_mut_arr(m);
		(void)yyjson_mut_arr_append(list, make_document(&p, &a, true));
		CHECK_OK(doc_write(list, true, &a, &json, &err));
		CHECK_OK(yaml_parse(json, STR("yaml"), NULL, &a, &docs, &err));
		CHECK_UINT(docs.n, 1);
		CHECK_OK(doc_write_val(docs.items[0].root, true, &a, &again, &err));
		CHECK_STR(again, json);
	}
}

TEST(a_yaml_1_1_reader_reads_the_same_document)
{
	CLEANUP(arena_done) struct arena all;
	struct strbuf yaml, json;
	struct prop p;

	arena_init(&all, 0);
	strbuf_init(&yaml, &all);
	strbuf_init(&json, &all);
	PROP_LOOP (&p) {
		CLEANUP(arena_done) struct arena a;
		yyjson_mut_val *v;
		struct err err = { 0 };
		struct str text;

		arena_init(&a, 0);
		v = make_document(&p, &a, false);
		CHECK_OK(yaml_write(v, &a, &text, &err));
		strbuf_printf(&yaml, "---\n" PRI_STR, FMT_STR(text));
		CHECK_OK(doc_write(v, false, &a, &text, &err));
		strbuf_printf(&json, PRI_STR "\n", FMT_STR(text));
	}
	readers_check("yaml", strbuf_str(&yaml), strbuf_str(&json));
}
