/* JSON by yyjson, with all memory from an arena. Nothing is freed one by one, so documents, views
 * of their strings and built documents live exactly as long as the arena. */

#include "doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/quote.h"

struct doc_limits doc_limits_fill(const struct doc_limits *limits)
{
	struct doc_limits l = limits ? *limits : (struct doc_limits){ 0 };

	l.size_bytes = l.size_bytes ? l.size_bytes : DOC_MAX_SIZE;
	l.depth = l.depth ? l.depth : DOC_MAX_DEPTH;
	l.nodes = l.nodes ? l.nodes : DOC_MAX_NODES;
	l.alias_nodes = l.alias_nodes ? l.alias_nodes : DOC_MAX_ALIAS_NODES;
	l.documents = l.documents ? l.documents : DOC_MAX_DOCUMENTS;
	if (l.depth > DOC_MAX_DEPTH)
		l.depth = DOC_MAX_DEPTH; /* the size of the stack in find_too_deep() */
	return l;
}

/* yyjson's allocator interface. realloc gets the old size, which the arena needs and does not
 * store. */
static void *alc_malloc(void *ctx, size_t size)
{
	return arena_alloc(ctx, size, 16);
}

static void *alc_realloc(void *ctx, void *p, size_t old, size_t size)
{
	return arena_realloc(ctx, p, old, size);
}

static void alc_free(void *ctx, void *p)
{
	(void)ctx; /* the arena frees everything at once */
	(void)p;
}

static yyjson_alc arena_alc(struct arena *a)
{
	return (yyjson_alc){ alc_malloc, alc_realloc, alc_free, a };
}

/* Counts from the start each time. That is linear, but positions are needed for error messages
 * only. */
struct doc_pos doc_position_at(struct str text, size_t offset)
{
	struct doc_pos pos = { 1, 1 };

	for (size_t i = 0; i < offset && i < text.n; i++) {
		if (text.p[i] == '\n') {
			pos.line++;
			pos.column = 0;
		}
		pos.column += ((unsigned char)text.p[i] & 0xc0) != 0x80; /* UTF-8: characters */
	}
	return pos;
}

int doc_err_record_at(struct err *err, int code, struct str file, struct doc_pos pos,
		      const char *fmt, ...)
{
	char msg[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	/* The form of compilers, "file:line:column: message", which editors can jump to (D20). */
	if (pos.line && file.n)
		return err_set(err, code, PRI_STR ":%u:%u: %s", FMT_STR(file), pos.line, pos.column,
			       msg);
	if (pos.line)
		return err_set(err, code, "%u:%u: %s", pos.line, pos.column, msg);
	if (file.n)
		return err_set(err, code, PRI_STR ": %s", FMT_STR(file), msg);
	return err_set(err, code, "%s", msg);
}

static int no_memory(struct err *err, struct str file)
{
	return doc_err_at(err, ENOMEM, file, (struct doc_pos){ 0 }, "not enough memory");
}

/* yyjson reads without recursion and does not limit the depth; code that walks the result may
 * recurse, and this check bounds it. yyjson stores values in one array, parents before children, so
 * one pass is enough. Returns the first value that is too deep. */
static yyjson_val *find_too_deep(const struct doc *doc, size_t limit)
{
	const yyjson_val *ends[DOC_MAX_DEPTH];
	size_t depth = 0;

	for (yyjson_val *v = doc->root; v < doc->root + doc->n_values; v++) {
		while (depth && v >= ends[depth - 1])
			depth--;
		if (!yyjson_is_ctn(v))
			continue;
		if (depth == limit)
			return v;
		/* The value after a container in the array is the first that is not inside it. */
		ends[depth++] = unsafe_yyjson_get_next(v);
	}
	return NULL;
}

/* Up to the quote that ends a string; n when it is cut off. */
static size_t string_end(struct str text, size_t i)
{
	while (i < text.n && text.p[i] != '"')
		i += text.p[i] == '\\' ? 2 : 1;
	return i;
}

/* Every value but the first follows one of these characters, so most texts are too short. */
static bool has_too_many_values(struct str text, size_t limit)
{
	size_t n = 1;

	if (!limit || text.n < limit)
		return false;
	for (size_t i = 0; i < text.n && n <= limit; i++)
		switch (text.p[i]) {
		case '"':
			i = string_end(text, i + 1);
			break;
		case '[':
		case '{':
		case ',':
		case ':':
			n++;
		}
	return n > limit;
}

int doc_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	      struct doc *ret, struct err *err)
{
	struct doc_limits l = doc_limits_fill(limits);
	struct doc doc = { .file = file, .text = text };
	yyjson_alc alc = arena_alc(a);
	yyjson_read_err why;
	yyjson_doc *json;
	yyjson_val *deep;
	char *copy;

	if (text.n > l.size_bytes)
		return doc_err_at(err, EFBIG, file, (struct doc_pos){ 0 }, "larger than %zu bytes",
				  l.size_bytes);
	if (has_too_many_values(text, l.values))
		return doc_err_at(err, EFBIG, file, (struct doc_pos){ 0 }, "more than %zu values",
				  l.values);
	/* A copy, because yyjson parses in place: it unescapes strings inside the buffer and
	 * terminates them there. The original text stays for positions in messages. The padding
	 * lets it read beyond the end. */
	copy = arena_alloc(a, text.n + YYJSON_PADDING_SIZE, 16);
	if (!copy)
		return no_memory(err, file);
	if (text.n)
		memcpy(copy, text.p, text.n);
	memset(copy + text.n, 0, YYJSON_PADDING_SIZE);
	/* Numbers stay text: a conversion to double would change quantities and 64-bit integers. */
	json = yyjson_read_opts(copy, text.n,
				YYJSON_READ_NUMBER_AS_RAW | YYJSON_READ_INSITU |
					(l.first_only ? YYJSON_READ_STOP_WHEN_DONE : 0),
				&alc, &why);
	if (!json && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		return no_memory(err, file);
	if (!json)
		return doc_err_at(err, EINVAL, file, doc_position_at(text, why.pos), "%s", why.msg);
	doc.root = yyjson_doc_get_root(json);
	doc.strings = copy;
	doc.n_values = yyjson_doc_get_val_count(json);
	deep = l.any_depth ? NULL : find_too_deep(&doc, l.depth);
	if (deep)
		return doc_err(err, &doc, deep, "nested deeper than %zu levels", l.depth);
	*ret = doc;
	return 0;
}

static int by_key(const void *a, const void *b)
{
	yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
	int r = str_cmp(doc_str(x), doc_str(y));

	return r ? r : (x > y) - (x < y); /* stable, so that the second of two keys is reported */
}

static int check_keys_of(const struct doc *doc, yyjson_val *object, struct arena *a,
			 struct err *err)
{
	size_t n = yyjson_obj_size(object), i = 0;
	yyjson_val **keys = arena_array(a, yyjson_val *, n);
	yyjson_val *key, *value;

	if (!keys)
		return no_memory(err, doc->file);
	DOC_EACH_PAIR (object, key, value)
		keys[i++] = key;
	(void)value;
	/* Sorted and not compared pairwise: an object of a hostile client may have very many keys.
	 */
	qsort(keys, n, sizeof(yyjson_val *), by_key);
	for (i = 1; i < n; i++)
		if (str_eq(doc_str(keys[i - 1]), doc_str(keys[i])))
			return doc_err(err, doc, keys[i], "key %s is given twice",
				       quote(doc_str(keys[i])).text);
	return 0;
}

int doc_check_keys(const struct doc *doc, struct arena *a, struct err *err)
{
	int r;

	for (yyjson_val *v = doc->root; v < doc->root + doc->n_values; v++) {
		if (!yyjson_is_obj(v) || yyjson_obj_size(v) < 2)
			continue;
		r = check_keys_of(doc, v, a, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The offset of a string or number in the text: these point into the buffer that was parsed in
 * place. Other values have no pointer into it. */
static bool find_offset(const struct doc *doc, yyjson_val *v, size_t *ret)
{
	const char *p = yyjson_is_str(v) ? yyjson_get_str(v) : yyjson_get_raw(v);
	uintptr_t begin = (uintptr_t)doc->strings;

	if ((uintptr_t)p < begin || (uintptr_t)p > begin + doc->text.n)
		return false;
	*ret = (uintptr_t)p - begin - yyjson_is_str(v); /* from the opening quote */
	return true;
}

/* Objects, arrays, true, false and null have no position of their own: the nearest string or number
 * before them is reported. */
static struct doc_pos json_position(const struct doc *doc, size_t index)
{
	size_t offset;

	do {
		if (find_offset(doc, doc->root + index, &offset))
			return doc_position_at(doc->text, offset);
	} while (index--);
	return (struct doc_pos){ 1, 1 };
}

struct doc_pos doc_position(const struct doc *doc, yyjson_val *v)
{
	/* As integers: v may be of another document, and subtracting pointers into different arrays
	 * is undefined. */
	size_t index = ((uintptr_t)v - (uintptr_t)doc->root) / sizeof(*v);

	if (!v || v < doc->root || index >= doc->n_values)
		return (struct doc_pos){ 0, 0 };
	return doc->marks ? doc->marks[index] : json_position(doc, index);
}

int doc_err_record(struct err *err, const struct doc *doc, yyjson_val *v, const char *fmt, ...)
{
	char msg[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return doc_err_at(err, EINVAL, doc->file, doc_position(doc, v), "%s", msg);
}

yyjson_val *doc_get(yyjson_val *object, struct str key)
{
	return yyjson_obj_getn(object, key.p, key.n);
}

yyjson_val *doc_find(yyjson_val *v, const char *pointer)
{
	return yyjson_ptr_get(v, pointer);
}

struct str doc_str(yyjson_val *v)
{
	if (!yyjson_is_str(v))
		return STR("");
	return (struct str){ yyjson_get_str(v), yyjson_get_len(v) };
}

struct str doc_text(yyjson_val *v)
{
	if (yyjson_is_raw(v))
		return (struct str){ yyjson_get_raw(v), yyjson_get_len(v) };
	return doc_str(v);
}

bool doc_is_number(yyjson_val *v)
{
	return yyjson_is_raw(v) || yyjson_is_num(v);
}

bool doc_int(yyjson_val *v, int64_t *ret)
{
	struct str text = yyjson_is_raw(v) ? doc_text(v) : STR("");
	bool negative = str_starts(text, STR("-"));
	uint64_t magnitude;

	/* Values of built documents are numbers already. */
	if (yyjson_is_sint(v) || (yyjson_is_uint(v) && yyjson_get_uint(v) <= INT64_MAX)) {
		*ret = yyjson_get_sint(v); /* numbers that were read are raw text */
		return true;
	}
	if (!str_to_u64(str_skip(text, negative), (uint64_t)INT64_MAX + negative, &magnitude))
		return false;
	*ret = (int64_t)(negative ? -magnitude : magnitude);
	return true;
}

bool doc_bool(yyjson_val *v, bool otherwise)
{
	return yyjson_is_bool(v) ? yyjson_get_bool(v) : otherwise;
}

const char *doc_type(yyjson_val *v)
{
	if (!v)
		return "nothing";
	switch (yyjson_get_type(v)) {
	case YYJSON_TYPE_RAW:
	case YYJSON_TYPE_NUM:
		return "a number";
	case YYJSON_TYPE_STR:
		return "a string";
	case YYJSON_TYPE_BOOL:
		return "a boolean";
	case YYJSON_TYPE_ARR:
		return "a list";
	case YYJSON_TYPE_OBJ:
		return "an object";
	default:
		return "null";
	}
}

yyjson_mut_doc *doc_build(struct arena *a)
{
	yyjson_alc alc = arena_alc(a);

	return yyjson_mut_doc_new(&alc);
}

yyjson_mut_val *doc_new_str(yyjson_mut_doc *m, struct str s)
{
	/* Not copied: the string must live as long as the document. */
	return yyjson_mut_strn(m, s.n ? s.p : "", s.n);
}

yyjson_mut_val *doc_new_int(yyjson_mut_doc *m, int64_t n)
{
	return yyjson_mut_sint(m, n);
}

bool doc_put(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, yyjson_mut_val *value)
{
	/* Put and not add: an existing key is replaced, so a built object never has a key twice. */
	return yyjson_mut_obj_put(object, doc_new_str(m, key), value);
}

bool doc_put_str(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, struct str value)
{
	return doc_put(m, object, key, doc_new_str(m, value));
}

bool doc_put_int(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, int64_t value)
{
	return doc_put(m, object, key, doc_new_int(m, value));
}

bool doc_put_bool(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, bool value)
{
	return doc_put(m, object, key, yyjson_mut_bool(m, value));
}

yyjson_mut_val *doc_put_obj(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key)
{
	yyjson_mut_val *child = yyjson_mut_obj(m);

	return doc_put(m, object, key, child) ? child : NULL;
}

yyjson_mut_val *doc_put_arr(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key)
{
	yyjson_mut_val *child = yyjson_mut_arr(m);

	return doc_put(m, object, key, child) ? child : NULL;
}

struct str doc_mut_str(yyjson_mut_val *v)
{
	if (!yyjson_mut_is_str(v))
		return STR("");
	return (struct str){ yyjson_mut_get_str(v), yyjson_mut_get_len(v) };
}

yyjson_val *doc_freeze(yyjson_mut_val *v, struct arena *a)
{
	yyjson_alc alc = arena_alc(a);

	return yyjson_doc_get_root(yyjson_mut_val_imut_copy(v, &alc));
}

static void add_line(struct strbuf *b, size_t depth)
{
	strbuf_printf(b, "\n%*s", (int)(depth * 2), "");
}

/* Replaces yyjson's own pretty printer: version 0.10 does not indent raw numbers in lists. */
static struct str indent(struct str compact, struct arena *a)
{
	bool in_string = false;
	size_t depth = 0;
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < compact.n; i++) {
		/* Works on the compact text: outside strings it has no white space, so single
		 * characters decide. */
		char c = compact.p[i], next = i + 1 < compact.n ? compact.p[i + 1] : '\0';
		bool opens = !in_string && (c == '{' || c == '[');
		bool closes = !in_string && (c == '}' || c == ']');

		/* Empty containers stay on one line. */
		if (closes && compact.p[i - 1] != c - 2) /* '[' + 2 is ']', '{' + 2 is '}' */
			add_line(&b, --depth);
		strbuf_addc(&b, c);
		if (in_string && c == '\\') {
			strbuf_addc(&b, next);
			i++;
		} else if (c == '"')
			in_string = !in_string;
		else if (opens && next != c + 2)
			add_line(&b, ++depth);
		else if (!in_string && c == ',')
			add_line(&b, depth);
		else if (!in_string && c == ':')
			strbuf_addc(&b, ' ');
	}
	return strbuf_str(&b);
}

static int finish_text(struct str text, bool pretty, const yyjson_write_err *why, struct arena *a,
		       struct str *ret, struct err *err)
{
	if (!text.p)
		return err_set(err,
			       why->code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION ? ENOMEM : EINVAL,
			       "cannot write JSON: %s", why->msg);
	if (pretty)
		text = indent(text, a);
	if (a->failed)
		return err_set(err, ENOMEM, "cannot write JSON: not enough memory");
	*ret = text;
	return 0;
}

int doc_write(yyjson_mut_val *v, bool pretty, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_alc alc = arena_alc(a);
	yyjson_write_err why = { 0 };
	struct str text;

	text.p = yyjson_mut_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, &text.n, &why);
	return finish_text(text, pretty, &why, a, ret, err);
}

int doc_write_val(yyjson_val *v, bool pretty, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_alc alc = arena_alc(a);
	yyjson_write_err why = { 0 };
	struct str text;

	text.p = yyjson_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, &text.n, &why);
	return finish_text(text, pretty, &why, a, ret, err);
}
