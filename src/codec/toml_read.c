#include "toml_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

/* How a table came to be: decides whether it may be opened or extended again. */
enum table_kind {
	TABLE_IMPLIED, /* by a longer header: may still get its own */
	TABLE_HEADER,  /* by its own header */
	TABLE_DOTTED,  /* by a dotted key */
	TABLE_CLOSED,  /* inline: complete */
};

struct table_mark {
	yyjson_mut_val *table;
	enum table_kind kind;
};

struct reader {
	struct str text, file;
	size_t at;
	struct arena *a;
	yyjson_mut_doc *doc;
	struct table_mark *marks;
	size_t n_marks;
	unsigned depth;
	struct err *err;
};

static int fail(struct reader *r, size_t at, const char *what)
{
	return doc_err_at(r->err, EINVAL, r->file, doc_position_at(r->text, at), "%s", what);
}

static int fail_name(struct reader *r, size_t at, const char *what, struct str name)
{
	return doc_err_at(r->err, EINVAL, r->file, doc_position_at(r->text, at), "%s %s", what,
			  quote(name).text);
}

static int no_memory(struct reader *r)
{
	return err_set(r->err, ENOMEM, "out of memory");
}

static int peek(const struct reader *r)
{
	return r->at < r->text.n ? (unsigned char)r->text.p[r->at] : -1;
}

static bool take(struct reader *r, const char *word)
{
	const size_t n = strlen(word);

	if (r->text.n - r->at < n || memcmp(r->text.p + r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t')
		r->at++;
}

static int skip_comment(struct reader *r)
{
	if (peek(r) != '#')
		return 0;
	while (peek(r) >= 0 && peek(r) != '\n') {
		const int c = peek(r);

		if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			return fail(r, r->at, "a control character in a comment");
		r->at++;
	}
	return 0;
}

/* To the end of a line, or of the text. */
static int end_line(struct reader *r)
{
	int e;

	skip_blanks(r);
	e = skip_comment(r);
	if (e < 0)
		return e;
	if (take(r, "\r\n") || take(r, "\n") || peek(r) < 0)
		return 0;
	return fail(r, r->at, "more text where the line should end");
}

/* Blanks, comments and newlines, inside arrays. */
static int skip_space(struct reader *r)
{
	for (;;) {
		int e;

		skip_blanks(r);
		e = skip_comment(r);
		if (e < 0)
			return e;
		if (!take(r, "\r\n") && !take(r, "\n"))
			return 0;
	}
}

static void put_utf8(struct strbuf *b, uint32_t c)
{
	if (c < 0x80) {
		strbuf_addc(b, (char)c);
		return;
	}
	if (c >= 0x10000) {
		strbuf_addc(b, (char)(0xf0 | c >> 18));
		strbuf_addc(b, (char)(0x80 | (c >> 12 & 0x3f)));
	} else if (c >= 0x800) {
		strbuf_addc(b, (char)(0xe0 | c >> 12));
	}
	if (c >= 0x800)
		strbuf_addc(b, (char)(0x80 | (c >> 6 & 0x3f)));
	else
		strbuf_addc(b, (char)(0xc0 | c >> 6));
	strbuf_addc(b, (char)(0x80 | (c & 0x3f)));
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_unicode(struct reader *r, unsigned digits, struct strbuf *b)
{
	const size_t from = r->at;
	uint32_t c = 0;

	while (digits-- > 0) {
		const int d = hex_digit(peek(r));

		if (d < 0)
			return fail(r, r->at, "a hexadecimal digit is missing");
		c = c << 4 | (uint32_t)d;
		r->at++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return fail(r, from, "no such character");
	put_utf8(b, c);
	return 0;
}

/* A backslash at a line's end takes the line's end and the blanks of the next lines with it. */
static bool skip_line_end(struct reader *r)
{
	const size_t from = r->at;

	skip_blanks(r);
	if (!take(r, "\r\n") && !take(r, "\n")) {
		r->at = from;
		return false;
	}
	while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r')
		r->at++;
	return true;
}

static int read_escape(struct reader *r, bool is_long, struct strbuf *b)
{
	static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
	const char *found;
	int c;

	if (is_long && skip_line_end(r))
		return 0;
	c = peek(r);
	found = c > 0 ? strchr(names, c) : NULL;
	if (found) {
		r->at++;
		strbuf_addc(b, values[found - names]);
		return 0;
	}
	if (c == 'u' || c == 'U') {
		r->at++;
		return read_unicode(r, c == 'u' ? 4 : 8, b);
	}
	return fail(r, r->at, "unknown escape");
}

/* Quotes that stand directly before the closing three belong to the text. */
static bool take_long_end(struct reader *r, char quote_char, struct strbuf *b)
{
	const char end[] = { quote_char, quote_char, quote_char, 0 };

	if (!take(r, end))
		return false;
	for (int i = 0; i < 2 && peek(r) == quote_char; i++, r->at++)
		strbuf_addc(b, quote_char);
	return true;
}

static int read_string(struct reader *r, struct str *ret)
{
	const size_t from = r->at;
	const char mark = (char)peek(r);
	const char three[] = { mark, mark, mark, 0 };
	const bool is_long = take(r, three);
	struct strbuf b;

	strbuf_init(&b, r->a);
	if (!is_long)
		r->at++;
	else if (!take(r, "\r\n"))
		(void)take(r, "\n");
	for (;;) {
		const int c = peek(r);
		int e;

		if (is_long ? take_long_end(r, mark, &b) : c == mark)
			break;
		if (c < 0 || (!is_long && c == '\n'))
			return fail(r, from, "the text has no end");
		if ((c < 0x20 && c != '\t' && !(is_long && (c == '\n' || c == '\r'))) || c == 0x7f)
			return fail(r, r->at, "a control character in a text");
		r->at++;
		if (c == '\\' && mark == '"') {
			e = read_escape(r, is_long, &b);
			if (e < 0)
				return e;
			continue;
		}
		strbuf_addc(&b, (char)c);
	}
	if (!is_long)
		r->at++;
	if (b.failed)
		return no_memory(r);
	*ret = strbuf_str(&b);
	return 0;
}

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int read_key(struct reader *r, struct str *ret)
{
	const size_t from = r->at;

	if (peek(r) == '"' || peek(r) == '\'') {
		if (str_starts(str_skip(r->text, r->at), STR("\"\"\"")) ||
		    str_starts(str_skip(r->text, r->at), STR("'''")))
			return fail(r, from, "a key of several lines");
		return read_string(r, ret);
	}
	while (is_bare(peek(r)))
		r->at++;
	if (r->at == from)
		return fail(r, from, "a key is missing");
	*ret = (struct str){ r->text.p + from, r->at - from };
	return 0;
}

static struct table_mark *mark_find(struct reader *r, yyjson_mut_val *table)
{
	for (size_t i = r->n_marks; i-- > 0;)
		if (r->marks[i].table == table)
			return &r->marks[i];
	return NULL;
}

static int mark_add(struct reader *r, yyjson_mut_val *table, enum table_kind kind)
{
	if (r->n_marks == TOML_MAX_TABLES)
		return fail(r, r->at, "too many tables");
	if ((r->n_marks & (r->n_marks - 1)) == 0) {
		const size_t n = r->n_marks ? r->n_marks : 1;

		r->marks = arena_realloc(r->a, r->marks, r->n_marks * sizeof(*r->marks),
					 2 * n * sizeof(*r->marks));
		if (!r->marks)
			return no_memory(r);
	}
	r->marks[r->n_marks++] = (struct table_mark){ table, kind };
	return 0;
}

static int table_new(struct reader *r, yyjson_mut_val *parent, struct str key, enum table_kind kind,
		     yyjson_mut_val **ret)
{
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);

	if (!table || !doc_put(r->doc, parent, key, table))
		return no_memory(r);
	*ret = table;
	return mark_add(r, table, kind);
}

/* One step of a path: the table `key` of `parent`, made when it is not there. */
static int step(struct reader *r, yyjson_mut_val *parent, struct str key, enum table_kind kind,
		size_t at, yyjson_mut_val **ret)
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
		return fail_name(r, at, "already defined:", key);
	*ret = v;
	return 0;
}

static int read_value(struct reader *r, yyjson_mut_val **ret);

/* key.key.key = value, into `table`. */
static int read_pair(struct reader *r, yyjson_mut_val *table)
{
	yyjson_mut_val *value;
	struct str key;
	size_t at;
	int e;

	for (;;) {
		at = r->at;
		e = read_key(r, &key);
		if (e < 0)
			return e;
		skip_blanks(r);
		if (peek(r) != '.')
			break;
		r->at++;
		skip_blanks(r);
		e = step(r, table, key, TABLE_DOTTED, at, &table);
		if (e < 0)
			return e;
	}
	if (!take(r, "="))
		return fail(r, r->at, "'=' is missing");
	skip_blanks(r);
	if (yyjson_mut_obj_getn(table, key.p, key.n))
		return fail_name(r, at, "already defined:", key);
	e = read_value(r, &value);
	if (e < 0)
		return e;
	return doc_put(r->doc, table, key, value) ? 0 : no_memory(r);
}

static int read_inline_table(struct reader *r, yyjson_mut_val **ret)
{
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);
	int e;

	if (!table)
		return no_memory(r);
	e = mark_add(r, table, TABLE_DOTTED); /* open for dotted keys until its brace */
	if (e < 0)
		return e;
	r->at++;
	skip_blanks(r);
	while (!take(r, "}")) {
		e = read_pair(r, table);
		if (e < 0)
			return e;
		skip_blanks(r);
		if (peek(r) == '}')
			continue;
		if (!take(r, ","))
			return fail(r, r->at, "',' or '}' is missing");
		skip_blanks(r);
		if (peek(r) == '}')
			return fail(r, r->at, "a key is missing");
	}
	mark_find(r, table)->kind = TABLE_CLOSED;
	*ret = table;
	return 0;
}

static int read_array(struct reader *r, yyjson_mut_val **ret)
{
	yyjson_mut_val *array = yyjson_mut_arr(r->doc), *item;
	int e;

	if (!array)
		return no_memory(r);
	r->at++;
	for (;;) {
		e = skip_space(r);
		if (e < 0)
			return e;
		if (take(r, "]"))
			break;
		e = read_value(r, &item);
		if (e < 0)
			return e;
		if (!yyjson_mut_arr_append(array, item))
			return no_memory(r);
		e = skip_space(r);
		if (e < 0)
			return e;
		if (!take(r, ",") && peek(r) != ']')
			return fail(r, r->at, "',' or ']' is missing");
	}
	*ret = array;
	return 0;
}

/* Digits of `base` with single underscores between them. */
static bool parse_digits(struct str s, unsigned base, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	bool after_digit = false;

	for (size_t i = 0; i < s.n; i++) {
		const int d = hex_digit((unsigned char)s.p[i]);

		if (s.p[i] == '_') {
			if (!after_digit || i + 1 == s.n)
				return false;
			after_digit = false;
			continue;
		}
		if (d < 0 || (unsigned)d >= base || value > (max - (unsigned)d) / base)
			return false;
		value = value * base + (unsigned)d;
		after_digit = true;
	}
	*ret = value;
	return s.n > 0;
}

static bool parse_int(struct str s, int64_t *ret)
{
	const bool is_signed = s.n > 0 && (s.p[0] == '+' || s.p[0] == '-');
	const bool is_negative = is_signed && s.p[0] == '-';
	const uint64_t max = (uint64_t)INT64_MAX + is_negative;
	unsigned base = 10;
	uint64_t value;

	if (is_signed)
		s = str_skip(s, 1);
	else if (s.n > 2 && s.p[0] == '0')
		base = s.p[1] == 'x' ? 16 : s.p[1] == 'o' ? 8 : s.p[1] == 'b' ? 2 : 10;
	if (base != 10)
		s = str_skip(s, 2);
	else if (s.n > 1 && s.p[0] == '0')
		return false; /* no leading zeros */
	if (!parse_digits(s, base, max, &value))
		return false;
	*ret = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

static bool parse_float(struct reader *r, struct str s, double *ret)
{
	struct str bare = s;
	bool has_mark = false; /* what makes it a float */
	struct strbuf b;
	char *end;

	if (bare.n > 0 && (bare.p[0] == '+' || bare.p[0] == '-'))
		bare = str_skip(bare, 1);
	if (str_eq(bare, STR("inf")) || str_eq(bare, STR("nan"))) {
		*ret = 0; /* JSON has neither; nothing we read does, either */
		return true;
	}
	if (bare.n == 0 || bare.p[0] < '0' || bare.p[0] > '9' || bare.n > 64)
		return false;
	strbuf_init(&b, r->a);
	for (size_t i = 0; i < s.n; i++) {
		if (!strchr("0123456789.eE+-_", s.p[i]))
			return false;
		has_mark |= strchr(".eE", s.p[i]) != NULL;
		if (s.p[i] != '_')
			strbuf_addc(&b, s.p[i]);
	}
	strbuf_addc(&b, 0);
	if (b.failed || !has_mark)
		return false;
	*ret = strtod(b.p, &end);
	return end == b.p + b.n - 1 && isfinite(*ret);
}

/* "1979-05-27T07:32:00Z", "07:32:00": recognised by their shape, kept as text. */
static bool is_time(struct str s)
{
	return (s.n >= 10 && s.p[4] == '-' && s.p[7] == '-') ||
	       (s.n >= 8 && s.p[2] == ':' && s.p[5] == ':');
}

static int read_scalar(struct reader *r, yyjson_mut_val **ret)
{
	const size_t from = r->at;
	struct str word;
	int64_t number;
	double real;

	while (is_bare(peek(r)) || peek(r) == '+' || peek(r) == '.' || peek(r) == ':')
		r->at++;
	word = (struct str){ r->text.p + from, r->at - from };
	if (word.n == 0)
		return fail(r, from, "a value is missing");
	if (str_eq(word, STR("true")) || str_eq(word, STR("false")))
		*ret = yyjson_mut_bool(r->doc, word.n == 4);
	else if (is_time(word))
		*ret = doc_new_str(r->doc, word);
	else if (parse_int(word, &number))
		*ret = doc_new_int(r->doc, number);
	else if (parse_float(r, word, &real))
		*ret = yyjson_mut_real(r->doc, real);
	else
		return fail_name(r, from, "no value:", word);
	return *ret ? 0 : no_memory(r);
}

static int read_value(struct reader *r, yyjson_mut_val **ret)
{
	struct str text = STR("");
	int e;

	if (r->depth == TOML_MAX_DEPTH)
		return fail(r, r->at, "nested too deep");
	r->depth++;
	switch (peek(r)) {
	case '"':
	case '\'':
		e = read_string(r, &text);
		*ret = e < 0 ? NULL : doc_new_str(r->doc, text);
		if (e == 0 && !*ret)
			e = no_memory(r);
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

/* The last step of "[[a.b]]": a new table at the end of the array. */
static int open_item(struct reader *r, yyjson_mut_val *parent, struct str key, size_t at,
		     yyjson_mut_val **ret)
{
	yyjson_mut_val *array = yyjson_mut_obj_getn(parent, key.p, key.n);
	yyjson_mut_val *table = yyjson_mut_obj(r->doc);

	if (!array) {
		array = yyjson_mut_arr(r->doc);
		if (!array || !doc_put(r->doc, parent, key, array))
			return no_memory(r);
	} else if (!yyjson_mut_is_arr(array) || !mark_find(r, yyjson_mut_arr_get_last(array))) {
		return fail_name(r, at, "already defined:", key);
	}
	if (!table || !yyjson_mut_arr_append(array, table))
		return no_memory(r);
	*ret = table;
	return mark_add(r, table, TABLE_HEADER);
}

/* The last step of "[a.b]": a table may have one header. */
static int open_table(struct reader *r, yyjson_mut_val *parent, struct str key, size_t at,
		      yyjson_mut_val **ret)
{
	yyjson_mut_val *v = yyjson_mut_obj_getn(parent, key.p, key.n);
	struct table_mark *mark = v ? mark_find(r, v) : NULL;

	if (!v)
		return table_new(r, parent, key, TABLE_HEADER, ret);
	if (!mark || mark->kind != TABLE_IMPLIED)
		return fail_name(r, at, "already defined:", key);
	mark->kind = TABLE_HEADER;
	*ret = v;
	return 0;
}

static int read_header(struct reader *r, yyjson_mut_val *root, yyjson_mut_val **ret)
{
	const bool is_item = take(r, "[[");
	yyjson_mut_val *table = root;
	struct str key;
	size_t at;
	int e;

	if (!is_item)
		r->at++;
	for (unsigned depth = 0;; depth++) {
		skip_blanks(r);
		at = r->at;
		if (depth == TOML_MAX_DEPTH)
			return fail(r, at, "nested too deep");
		e = read_key(r, &key);
		if (e < 0)
			return e;
		skip_blanks(r);
		if (!take(r, "."))
			break;
		e = step(r, table, key, TABLE_IMPLIED, at, &table);
		if (e < 0)
			return e;
	}
	if (!take(r, is_item ? "]]" : "]"))
		return fail(r, r->at, "']' is missing");
	return is_item ? open_item(r, table, key, at, ret) : open_table(r, table, key, at, ret);
}

static int read_lines(struct reader *r, yyjson_mut_val *root)
{
	yyjson_mut_val *table = root;
	int e = 0;

	while (e == 0) {
		skip_blanks(r);
		if (peek(r) < 0)
			break;
		if (peek(r) == '[')
			e = read_header(r, root, &table);
		else if (peek(r) != '#' && peek(r) != '\n' && peek(r) != '\r')
			e = read_pair(r, table);
		if (e == 0)
			e = end_line(r);
	}
	return e;
}

int toml_parse(struct str text, struct str file, struct arena *a, yyjson_val **ret, struct err *err)
{
	struct reader r = { .text = text, .file = file, .a = a, .err = err };
	yyjson_mut_val *root;
	yyjson_val *frozen;
	int e;

	if (text.n > TOML_MAX_SIZE)
		return doc_err_at(err, EFBIG, file, (struct doc_pos){ 0 }, "larger than %zu bytes",
				  TOML_MAX_SIZE);
	r.doc = doc_build(a);
	root = r.doc ? yyjson_mut_obj(r.doc) : NULL;
	if (!root)
		return no_memory(&r);
	e = mark_add(&r, root, TABLE_HEADER);
	if (e == 0)
		e = read_lines(&r, root);
	if (e < 0)
		return e;
	frozen = doc_freeze(root, a);
	if (!frozen)
		return no_memory(&r);
	*ret = frozen;
	return 0;
}
