/* Positions of the parser say where keys and values begin; where a value ends is found in the text.
 * Changes are ranges of the original text, applied at the end in order, so that no change shifts
 * the position of another. */

#include "yaml_edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "codec/yaml.h"

/* Replaces the bytes from `from` to `to` with the text. */
struct change {
	size_t from, to, order;
	struct str text;
};

struct yaml_editor {
	struct arena *a;
	const struct doc *doc;
	const struct patch *patch;
	struct str text;
	size_t *lines; /* offset of each line */
	size_t n_lines;
	struct change *changes;
	size_t n, cap;
};

/* A member of a mapping. */
struct member {
	yyjson_val *parent, *key, *value;
	bool is_only;	  /* and the patch adds no other */
	yyjson_val *next; /* the key after it, or NULL */
	bool is_flow;
};

static void add_change(struct yaml_editor *s, size_t from, size_t to, struct str text)
{
	s->changes = arena_reserve(s->a, s->changes, s->n, &s->cap, sizeof(*s->changes));
	s->changes[s->n] = (struct change){ from, to, s->n, text };
	s->n++;
}

/* --- places in the text --- */

static void find_lines(struct yaml_editor *s)
{
	size_t n = 1;

	for (size_t i = 0; i < s->text.n; i++)
		n += s->text.p[i] == '\n';
	s->lines = arena_array(s->a, size_t, n);
	s->n_lines = 1;
	for (size_t i = 0; i < s->text.n; i++)
		if (s->text.p[i] == '\n')
			s->lines[s->n_lines++] = i + 1;
}

/* The offset of a value; SIZE_MAX when it is not known. Columns count characters, not bytes. */
static size_t offset_of(const struct yaml_editor *s, yyjson_val *v)
{
	const struct doc_pos pos = doc_position(s->doc, v);
	size_t at;

	if (!pos.line || pos.line > s->n_lines || !pos.column)
		return SIZE_MAX;
	at = s->lines[pos.line - 1];
	for (uint32_t column = 1; column < pos.column; column++) {
		if (at >= s->text.n || s->text.p[at] == '\n')
			return SIZE_MAX;
		do
			at++;
		while (at < s->text.n && ((unsigned char)s->text.p[at] & 0xc0) == 0x80);
	}
	return at;
}

static char char_at(const struct yaml_editor *s, size_t at)
{
	return at < s->text.n ? s->text.p[at] : '\0';
}

static size_t line_start(const struct yaml_editor *s, size_t at)
{
	while (at && s->text.p[at - 1] != '\n')
		at--;
	return at;
}

/* After the newline. */
static size_t line_end(const struct yaml_editor *s, size_t at)
{
	while (at < s->text.n && s->text.p[at] != '\n')
		at++;
	return at < s->text.n ? at + 1 : at;
}

static size_t skip_blanks(const struct yaml_editor *s, size_t at)
{
	while (char_at(s, at) == ' ')
		at++;
	return at;
}

/* Only blanks stand before it on its line or, with `dashes`, also "- " of list items. */
static bool begins_line(const struct yaml_editor *s, size_t at, bool dashes)
{
	for (size_t i = line_start(s, at); i < at; i++)
		if (s->text.p[i] != ' ' && !(dashes && s->text.p[i] == '-'))
			return false;
	return true;
}

/* After a quoted scalar that begins at `at`. */
static size_t quoted_end(const struct yaml_editor *s, size_t at)
{
	const char quote = s->text.p[at++];

	while (at < s->text.n) {
		const char c = s->text.p[at++];

		const bool is_escape = c == '\\' && quote == '"';
		/* '' is a quote inside single quotes */
		const bool is_double = c == '\'' && quote == c && char_at(s, at) == c;

		if (is_escape || is_double)
			at++;
		else if (c == quote)
			return at;
	}
	return at;
}

/* After a plain scalar of one line: at a comment, the end of the line or, in flow style, the end of
 * the member; without blanks at its end. */
static size_t plain_end(const struct yaml_editor *s, size_t at, bool in_flow)
{
	size_t end = at;

	for (; at < s->text.n && s->text.p[at] != '\n'; at++) {
		const char c = s->text.p[at];

		if ((in_flow && strchr(",]}", c)) || (c == '#' && at && s->text.p[at - 1] == ' '))
			break;
		if (c != ' ' && c != '\r')
			end = at + 1;
	}
	return end;
}

/* After a flow mapping or sequence. */
static size_t flow_end(const struct yaml_editor *s, size_t at)
{
	size_t depth = 0;

	while (at < s->text.n) {
		const char c = s->text.p[at];

		if (c == '"' || c == '\'') {
			at = quoted_end(s, at);
			continue;
		}
		at++;
		depth += c == '{' || c == '[';
		if ((c == '}' || c == ']') && --depth == 0)
			return at;
	}
	return at;
}

/* After the value of a member; SIZE_MAX for a value in block style, or with an anchor or a tag. */
static size_t value_end(const struct yaml_editor *s, const struct member *m)
{
	const size_t at = offset_of(s, m->value);
	const char c = char_at(s, at);

	if (at == SIZE_MAX || (c && strchr("|>&!*", c)))
		return SIZE_MAX;
	if (c == '{' || c == '[')
		return flow_end(s, at);
	if (yyjson_is_ctn(m->value))
		return SIZE_MAX;
	return c == '"' || c == '\'' ? quoted_end(s, at) : plain_end(s, at, m->is_flow);
}

/* --- members --- */

/* The parent of a pointer and its last step, unescaped. */
static yyjson_val *parent_of(const struct yaml_editor *s, struct str path, struct str *ret_key)
{
	size_t slash = path.n;
	struct strbuf b;

	while (slash && path.p[slash - 1] != '/')
		slash--;
	if (!slash)
		return NULL;
	strbuf_init(&b, s->a);
	for (size_t i = slash; i < path.n; i++) {
		bool is_escape = path.p[i] == '~' && i + 1 < path.n;

		strbuf_addc(&b, is_escape ? (path.p[i + 1] == '1' ? '/' : '~') : path.p[i]);
		i += is_escape;
	}
	*ret_key = strbuf_str(&b);
	return doc_find(s->doc->root, str_cstr(s->a, (struct str){ path.p, slash - 1 }));
}

static bool adds_to(const struct yaml_editor *s, yyjson_val *parent)
{
	yyjson_mut_val *op;
	struct str key;

	DOC_EACH_BUILT_ITEM (s->patch->ops, op)
		if (str_eq(doc_mut_str(yyjson_mut_obj_get(op, "op")), STR("add")) &&
		    parent_of(s, doc_mut_str(yyjson_mut_obj_get(op, "path")), &key) == parent)
			return true;
	return false;
}

static bool find_member(const struct yaml_editor *s, struct str path, struct member *ret)
{
	yyjson_val *key, *value;
	struct member m = { 0 };
	struct str name;

	m.parent = parent_of(s, path, &name);
	if (!yyjson_is_obj(m.parent))
		return false;
	DOC_EACH_PAIR (m.parent, key, value) {
		if (m.key && !m.next)
			m.next = key;
		if (!str_eq(doc_str(key), name))
			continue;
		m.key = key;
		m.value = value;
	}
	m.is_only = yyjson_obj_size(m.parent) == 1 && !adds_to(s, m.parent);
	m.is_flow = char_at(s, offset_of(s, m.parent)) == '{';
	*ret = m;
	return m.key != NULL;
}

/* --- adding --- */

static struct str indented(struct str text, size_t blanks, struct arena *a)
{
	struct str_split split = str_split(str_trim(text));
	struct strbuf b;
	struct str line;

	strbuf_init(&b, a);
	while (str_next(&split, '\n', &line)) {
		strbuf_add(&b, line);
		strbuf_printf(&b, "\n%*s", (int)blanks, "");
	}
	return strbuf_str(&b);
}

/* "key: value" in flow style; the value is JSON, which YAML reads. */
static struct str flow_member(struct yaml_editor *s, struct str key, yyjson_mut_val *value,
			      bool is_quoted)
{
	struct str text = STR("");
	bool is_plain = !is_quoted;

	for (size_t i = 0; i < key.n; i++)
		is_plain &= strchr("./-_", key.p[i]) != NULL || str_is_alnum(key.p[i]);
	(void)doc_write(value, false, s->a, &text, NULL);
	return str_printf(s->a, is_plain ? PRI_STR ": " PRI_STR : "\"" PRI_STR "\": " PRI_STR,
			  FMT_STR(key), FMT_STR(text));
}

static bool add_in_flow(struct yaml_editor *s, yyjson_val *parent, struct str key,
			yyjson_mut_val *value)
{
	const size_t at = offset_of(s, parent) + 1, first = skip_blanks(s, at);
	const struct str text = flow_member(s, key, value, char_at(s, first) == '"');
	const bool is_empty = yyjson_obj_size(parent) == 0;

	if (!text.n)
		return false;
	add_change(s, at, at, is_empty ? text : str_printf(s->a, PRI_STR ", ", FMT_STR(text)));
	return true;
}

static bool splice_add(struct yaml_editor *s, struct str path, yyjson_mut_val *value)
{
	yyjson_mut_doc *m = doc_build(s->a);
	yyjson_mut_val *pair = yyjson_mut_obj(m);
	struct str key, text;
	yyjson_val *parent;
	yyjson_obj_iter it;
	size_t at, column;

	parent = parent_of(s, path, &key);
	if (!yyjson_is_obj(parent))
		return false;
	if (char_at(s, offset_of(s, parent)) == '{')
		return add_in_flow(s, parent, key, value);
	/* Before the first member: its place and indent are known, while the last member may have
	 * lines of its own, and comments after it. */
	it = yyjson_obj_iter_with(parent);
	at = offset_of(s, yyjson_obj_iter_next(&it));
	if (at == SIZE_MAX || !begins_line(s, at, true))
		return false;
	column = at - line_start(s, at);
	doc_put(m, pair, key, yyjson_mut_val_mut_copy(m, value));
	if (yaml_write(pair, s->a, &text, NULL) < 0)
		return false;
	text = indented(text, column, s->a);
	/* Whole lines where possible, so that the member after them can be removed as a line. */
	if (begins_line(s, at, false)) {
		const struct str blanks = { s->text.p + at - column, column };

		text = str_printf(s->a, PRI_STR PRI_STR, FMT_STR(blanks),
				  FMT_STR(((struct str){ text.p, text.n - column })));
		at -= column;
	}
	add_change(s, at, at, text);
	return true;
}

/* --- replacing --- */

static bool splice_replace(struct yaml_editor *s, struct str path, yyjson_mut_val *value)
{
	struct member m;
	struct str text;
	size_t from, to;

	if (!find_member(s, path, &m) || doc_write(value, false, s->a, &text, NULL) < 0)
		return false;
	from = offset_of(s, m.value);
	to = value_end(s, &m);
	if (to == SIZE_MAX || (m.value && yyjson_is_ctn(m.value)))
		return false;
	/* "key:" alone has no value that could be replaced. */
	if (from == to && from && s->text.p[from - 1] == ':')
		text = str_printf(s->a, " " PRI_STR, FMT_STR(text));
	add_change(s, from, to, text);
	return true;
}

/* --- removing --- */

/* In flow style with the comma after it or, for the last member, before it. */
static bool remove_in_flow(struct yaml_editor *s, const struct member *m, size_t from, size_t to)
{
	size_t after = skip_blanks(s, to);

	if (char_at(s, after) == ',') {
		add_change(s, from, skip_blanks(s, after + 1), STR(""));
		return true;
	}
	while (from && (s->text.p[from - 1] == ' ' || s->text.p[from - 1] == '\n'))
		from--;
	if (!m->is_only && from && s->text.p[from - 1] == ',')
		from--;
	add_change(s, from, to, STR(""));
	return true;
}

/* After the lines of a mapping or sequence in block style that belongs to the key at `at`: those
 * that are indented further, and list items in the key's own column. Blank lines and comments at
 * the end stay. */
static size_t block_end(const struct yaml_editor *s, size_t at, bool is_list)
{
	const size_t column = at - line_start(s, at);
	size_t end = line_end(s, at), next = end;

	while (next < s->text.n) {
		const size_t first = skip_blanks(s, next), indent = first - next;
		const char c = char_at(s, first);
		const bool is_item = is_list && c == '-' && indent == column;

		if (c != '\n' && c != '#' && indent <= column && !is_item)
			break;
		next = line_end(s, first);
		if (c != '\n' && c != '#')
			end = next;
	}
	return end;
}

/* The only member of a mapping: {} takes its place, because nothing would read as null. */
static bool remove_only(struct yaml_editor *s, size_t from, size_t to)
{
	while (from && (s->text.p[from - 1] == ' ' || s->text.p[from - 1] == '\n'))
		from--;
	if (!from || s->text.p[from - 1] != ':')
		return false; /* a comment stands between the mapping and its member */
	add_change(s, from, to, char_at(s, to - 1) == '\n' ? STR(" {}\n") : STR(" {}"));
	return true;
}

static bool remove_in_block(struct yaml_editor *s, const struct member *m, size_t from)
{
	const size_t value = offset_of(s, m->value), end = value_end(s, m);
	size_t to;

	/* A scalar of several lines (| or >) begins on the line of its key, too. */
	if (end != SIZE_MAX)
		to = line_end(s, end);
	else if (yyjson_is_ctn(m->value) || (value != SIZE_MAX && strchr("|>", char_at(s, value))))
		to = block_end(s, from, yyjson_is_arr(m->value));
	else
		return false;
	if (m->is_only)
		return remove_only(s, from, to);
	if (begins_line(s, from, false))
		add_change(s, line_start(s, from), to, STR(""));
	else if (begins_line(s, from, true) &&
		 m->next) /* "- key: value": the next one follows "- " */
		add_change(s, from, offset_of(s, m->next), STR(""));
	else
		return false;
	return true;
}

static bool splice_remove(struct yaml_editor *s, struct str path)
{
	struct member m;
	size_t from, to;

	if (!find_member(s, path, &m))
		return false;
	from = offset_of(s, m.key);
	if (from == SIZE_MAX)
		return false;
	if (!m.is_flow)
		return remove_in_block(s, &m, from);
	to = value_end(s, &m);
	return to != SIZE_MAX && remove_in_flow(s, &m, from, to);
}

static bool splice_patch(struct yaml_editor *s, const struct patch *p)
{
	yyjson_mut_val *op;

	DOC_EACH_BUILT_ITEM (p->ops, op) {
		struct str verb = doc_mut_str(yyjson_mut_obj_get(op, "op"));
		struct str path = doc_mut_str(yyjson_mut_obj_get(op, "path"));
		yyjson_mut_val *value = yyjson_mut_obj_get(op, "value");
		bool ok = false;

		if (str_eq(verb, STR("add")))
			ok = splice_add(s, path, value);
		else if (str_eq(verb, STR("replace")))
			ok = splice_replace(s, path, value);
		else if (str_eq(verb, STR("remove")))
			ok = splice_remove(s, path);
		if (!ok)
			return false;
	}
	return true;
}

/* Insertions before a removal that begins at the same place; by order as well, because qsort() is
 * not stable. */
static int by_place(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* False when two changes overlap. */
static bool join(const struct yaml_editor *s, struct str *ret)
{
	struct strbuf b;
	size_t at = 0;

	strbuf_init(&b, s->a);
	for (size_t i = 0; i < s->n; i++) {
		const struct change *c = &s->changes[i];

		if (c->from < at || c->to < c->from || c->to > s->text.n)
			return false;
		strbuf_add(&b, (struct str){ s->text.p + at, c->from - at });
		strbuf_add(&b, c->text);
		at = c->to;
	}
	strbuf_add(&b, str_skip(s->text, at));
	*ret = strbuf_str(&b);
	return true;
}

bool yaml_edit_text(struct str text, const struct doc_list *docs, const struct patch *patches,
		    struct arena *a, struct str *ret)
{
	struct yaml_editor s = { .a = a, .text = text };

	find_lines(&s);
	for (size_t i = 0; i < docs->n; i++) {
		s.doc = &docs->items[i];
		s.patch = &patches[i];
		if (!splice_patch(&s, &patches[i]))
			return false;
	}
	if (s.n)
		qsort(s.changes, s.n, sizeof(*s.changes), by_place);
	return join(&s, ret);
}
