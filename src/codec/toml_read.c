/* The tables of a TOML file as a JSON document, so that callers read TOML, YAML and JSON with the
 * same functions. The difficult part is which tables may be opened again; a mark per table
 * remembers how it was defined. */

#include "toml_read.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "toml_lex.h"

/* How a table was defined: decides whether it may be opened or extended again (TOML 1.0, Table). */
enum table_kind {
	TABLE_IMPLIED, /* by the header of a subtable: may still get its own header */
	TABLE_HEADER,  /* by its own header */
	TABLE_DOTTED,  /* by a dotted key */
	TABLE_CLOSED,  /* inline: complete */
};

struct table_mark {
	yyjson_mut_val *table;
	enum table_kind kind;
};

struct toml_reader {
	struct toml_lexer lex;
	yyjson_mut_doc *doc;
	struct table_mark *marks;
	size_t n_marks;
	unsigned depth;
};

static struct table_mark *mark_find(struct toml_reader *r, yyjson_mut_val *table)
{
	/* From the newest: lookups are nearly always for a table that was just defined.
	 * TOML_MAX_TABLES bounds the cost for other files. */
	for (size_t i = r->n_marks; i-- > 0;)
		if (r->marks[i].table == table)
			return &r->marks[i];
	return NULL;
}

static int mark_add(struct toml_reader *r, yyjson_mut_val *table, enum table_kind kind)
{
	if (r->n_marks == TOML_MAX_TABLES)
		return toml_fail(&r->lex, r->lex.at, "too many tables");
	r->marks = arena_one_more(r->lex.a, r->marks, r->n_marks, sizeof(*r->marks));
	if (!r->marks)
		return toml_no_memory(&r->lex);
	r->marks[r->n_marks++] = (struct table_mark){ table, kind };
	return 0;
}

static int table_new(struct toml_reader *r, yyjson_mut_val *parent, struct str key,
		     enum table_kind kind, yyjson_mut_val **ret)
{
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);

	if (!table || !doc_put(r->doc, parent, key, table))
		return toml_no_memory(&r->lex);
	*ret = table;
	return mark_add(r, table, kind);
}

/* The table `key` of `parent` in a dotted key or header; created when it is absent. */
static int open_subtable(struct toml_reader *r, yyjson_mut_val *parent, struct str key,
			 enum table_kind kind, size_t at, yyjson_mut_val **ret)
{
	yyjson_mut_val *v = yyjson_mut_obj_getn(parent, key.p, key.n);
	const struct table_mark *mark;

	if (!v)
		return table_new(r, parent, key, kind, ret);
	if (yyjson_mut_is_arr(v) && kind == TABLE_IMPLIED && yyjson_mut_arr_size(v) > 0)
		v = yyjson_mut_arr_get_last(v); /* the newest of an array of tables */
	mark = yyjson_mut_is_obj(v) ? mark_find(r, v) : NULL;
	if (!mark || mark->kind == TABLE_CLOSED ||
	    (kind == TABLE_DOTTED && mark->kind != TABLE_DOTTED))
		return toml_fail_name(&r->lex, at, "already defined:", key);
	*ret = v;
	return 0;
}

static int read_value(struct toml_reader *r, yyjson_mut_val **ret);

/* key.key.key = value, into `table`. */
static int read_pair(struct toml_reader *r, yyjson_mut_val *table)
{
	yyjson_mut_val *value;
	struct str key;
	size_t at;
	int e;

	for (;;) {
		at = r->lex.at;
		e = toml_read_key(&r->lex, &key);
		if (e < 0)
			return e;
		toml_skip_blanks(&r->lex);
		if (toml_peek(&r->lex) != '.')
			break;
		r->lex.at++;
		toml_skip_blanks(&r->lex);
		/* A dotted key may extend only tables that dotted keys made: "a.b = 1" must not add
		 * to a table that has a header somewhere else. */
		e = open_subtable(r, table, key, TABLE_DOTTED, at, &table);
		if (e < 0)
			return e;
	}
	if (!toml_take(&r->lex, "="))
		return toml_fail(&r->lex, r->lex.at, "'=' is missing");
	toml_skip_blanks(&r->lex);
	/* Before the value is read, so that the message points to the second key. */
	if (yyjson_mut_obj_getn(table, key.p, key.n))
		return toml_fail_name(&r->lex, at, "already defined:", key);
	e = read_value(r, &value);
	if (e < 0)
		return e;
	return doc_put(r->doc, table, key, value) ? 0 : toml_no_memory(&r->lex);
}

static int read_inline_table(struct toml_reader *r, yyjson_mut_val **ret)
{
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);
	int e;

	if (!table)
		return toml_no_memory(&r->lex);
	e = mark_add(r, table, TABLE_DOTTED); /* open for dotted keys until its brace */
	if (e < 0)
		return e;
	r->lex.at++;
	toml_skip_blanks(&r->lex);
	while (!toml_take(&r->lex, "}")) {
		e = read_pair(r, table);
		if (e < 0)
			return e;
		toml_skip_blanks(&r->lex);
		if (toml_peek(&r->lex) == '}')
			continue;
		if (!toml_take(&r->lex, ","))
			return toml_fail(&r->lex, r->lex.at, "',' or '}' is missing");
		toml_skip_blanks(&r->lex);
		if (toml_peek(&r->lex) == '}')
			return toml_fail(&r->lex, r->lex.at, "a key is missing");
	}
	mark_find(r, table)->kind = TABLE_CLOSED;
	*ret = table;
	return 0;
}

static int read_array(struct toml_reader *r, yyjson_mut_val **ret)
{
	yyjson_mut_val *array = yyjson_mut_arr(r->doc), *item;
	int e;

	if (!array)
		return toml_no_memory(&r->lex);
	r->lex.at++;
	for (;;) {
		e = toml_skip_space(&r->lex);
		if (e < 0)
			return e;
		if (toml_take(&r->lex, "]"))
			break;
		e = read_value(r, &item);
		if (e < 0)
			return e;
		if (!yyjson_mut_arr_append(array, item))
			return toml_no_memory(&r->lex);
		e = toml_skip_space(&r->lex);
		if (e < 0)
			return e;
		if (!toml_take(&r->lex, ",") && toml_peek(&r->lex) != ']')
			return toml_fail(&r->lex, r->lex.at, "',' or ']' is missing");
	}
	*ret = array;
	return 0;
}

/* "1979-05-27T07:32:00Z" or "07:32:00": recognized by the separators, not validated. */
static bool is_time(struct str s)
{
	return (s.n >= 10 && s.p[4] == '-' && s.p[7] == '-') ||
	       (s.n >= 8 && s.p[2] == ':' && s.p[5] == ':');
}

static int read_scalar(struct toml_reader *r, yyjson_mut_val **ret)
{
	const size_t from = r->lex.at;
	struct str word;
	int64_t number;
	double real;

	while (toml_is_bare(toml_peek(&r->lex)) || toml_peek(&r->lex) == '+' ||
	       toml_peek(&r->lex) == '.' || toml_peek(&r->lex) == ':')
		r->lex.at++;
	word = (struct str){ r->lex.text.p + from, r->lex.at - from };
	if (word.n == 0)
		return toml_fail(&r->lex, from, "a value is missing");
	if (str_eq(word, STR("true")) || str_eq(word, STR("false")))
		*ret = yyjson_mut_bool(r->doc, word.n == 4);
	/* Before numbers: a date starts like one. Times stay text; no setting that is read here is
	 * a time. */
	else if (is_time(word))
		*ret = doc_new_str(r->doc, word);
	else if (toml_parse_int(word, &number))
		*ret = doc_new_int(r->doc, number);
	else if (toml_parse_float(&r->lex, word, &real))
		*ret = yyjson_mut_real(r->doc, real);
	else
		return toml_fail_name(&r->lex, from, "invalid value", word);
	return *ret ? 0 : toml_no_memory(&r->lex);
}

static int read_value(struct toml_reader *r, yyjson_mut_val **ret)
{
	struct str text = STR("");
	int e;

	/* Bounds the recursion of values within values, and that of all code that walks the
	 * document. */
	if (r->depth == TOML_MAX_DEPTH)
		return toml_fail(&r->lex, r->lex.at, "nested too deeply");
	r->depth++;
	switch (toml_peek(&r->lex)) {
	case '"':
	case '\'':
		e = toml_read_string(&r->lex, &text);
		*ret = e < 0 ? NULL : doc_new_str(r->doc, text);
		if (e == 0 && !*ret)
			e = toml_no_memory(&r->lex);
		break;
	case '[':
		e = read_array(r, ret);
		break;
	case '{':
		e = read_inline_table(r, ret);
		break;
	default:
		e = read_scalar(r, ret);
	}
	r->depth--;
	return e;
}

/* The last part of "[[a.b]]": a new table at the end of the array. */
static int open_item(struct toml_reader *r, yyjson_mut_val *parent, struct str key, size_t at,
		     yyjson_mut_val **ret)
{
	yyjson_mut_val *array = yyjson_mut_obj_getn(parent, key.p, key.n);
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);

	if (!array) {
		array = yyjson_mut_arr(r->doc);
		if (!array || !doc_put(r->doc, parent, key, array))
			return toml_no_memory(&r->lex);
		/* An array without a mark on its last item was written as a value, [ ... ], and is
		 * complete. */
	} else if (!yyjson_mut_is_arr(array) || !mark_find(r, yyjson_mut_arr_get_last(array))) {
		return toml_fail_name(&r->lex, at, "already defined:", key);
	}
	if (!table || !yyjson_mut_arr_append(array, table))
		return toml_no_memory(&r->lex);
	*ret = table;
	return mark_add(r, table, TABLE_HEADER);
}

/* The last part of "[a.b]": a table may have only one header. */
static int open_table(struct toml_reader *r, yyjson_mut_val *parent, struct str key, size_t at,
		      yyjson_mut_val **ret)
{
	yyjson_mut_val *v = yyjson_mut_obj_getn(parent, key.p, key.n);
	struct table_mark *mark = v ? mark_find(r, v) : NULL;

	if (!v)
		return table_new(r, parent, key, TABLE_HEADER, ret);
	if (!mark || mark->kind != TABLE_IMPLIED)
		return toml_fail_name(&r->lex, at, "already defined:", key);
	mark->kind = TABLE_HEADER;
	*ret = v;
	return 0;
}

static int read_header(struct toml_reader *r, yyjson_mut_val *root, yyjson_mut_val **ret)
{
	const bool is_item = toml_take(&r->lex, "[[");
	yyjson_mut_val *table = root;
	struct str key;
	size_t at;
	int e;

	if (!is_item)
		r->lex.at++;
	for (unsigned depth = 0;; depth++) {
		toml_skip_blanks(&r->lex);
		at = r->lex.at;
		if (depth == TOML_MAX_DEPTH)
			return toml_fail(&r->lex, at, "nested too deeply");
		e = toml_read_key(&r->lex, &key);
		if (e < 0)
			return e;
		toml_skip_blanks(&r->lex);
		if (!toml_take(&r->lex, "."))
			break;
		e = open_subtable(r, table, key, TABLE_IMPLIED, at, &table);
		if (e < 0)
			return e;
	}
	if (!toml_take(&r->lex, is_item ? "]]" : "]"))
		return toml_fail(&r->lex, r->lex.at, "']' is missing");
	return is_item ? open_item(r, table, key, at, ret) : open_table(r, table, key, at, ret);
}

static int read_lines(struct toml_reader *r, yyjson_mut_val *root)
{
	yyjson_mut_val *table = root;
	int e = 0;

	while (e == 0) {
		toml_skip_blanks(&r->lex);
		if (toml_peek(&r->lex) < 0)
			break;
		if (toml_peek(&r->lex) == '[')
			e = read_header(r, root, &table);
		else if (toml_peek(&r->lex) != '#' && toml_peek(&r->lex) != '\n' &&
			 toml_peek(&r->lex) != '\r')
			e = read_pair(r, table);
		if (e == 0)
			e = toml_end_line(&r->lex);
	}
	return e;
}

int toml_parse(struct str text, struct str file, struct arena *a, yyjson_val **ret, struct err *err)
{
	struct toml_reader r = { .lex = { .text = text, .file = file, .a = a, .err = err } };
	yyjson_mut_val *root;
	yyjson_val *frozen;
	int e;

	if (text.n > TOML_MAX_SIZE)
		return doc_err_at(err, EFBIG, file, (struct doc_pos){ 0 }, "larger than %zu bytes",
				  TOML_MAX_SIZE);
	r.doc = doc_build(a);
	root = r.doc ? yyjson_mut_obj(r.doc) : NULL;
	if (!root)
		return toml_no_memory(&r.lex);
	e = mark_add(&r, root, TABLE_HEADER);
	if (e == 0)
		e = read_lines(&r, root);
	if (e < 0)
		return e;
	/* Callers get the immutable form that parsed documents have. */
	frozen = doc_freeze(root, a);
	if (!frozen)
		return toml_no_memory(&r.lex);
	*ret = frozen;
	return 0;
}
