/* Positions of the parser say on which line a member begins. From these follow inserted and removed
 * lines, which are applied at the end, sorted, so that no insertion shifts the position of another.
 * Everything that does not begin a line of its own (flow style, items) is left to the caller. */

#include "yaml_edit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "codec/yaml.h"

/* Before line `line` (from 1): remove it, or put text in front of it. */
struct change {
	uint32_t line;
	size_t order;
	bool removes;
	struct str text;
};

struct yaml_editor {
	struct arena *a;
	const struct doc *doc;
	struct str *lines;
	size_t n_lines;
	struct change *changes;
	size_t n, cap;
};

static void add_change(struct yaml_editor *s, struct change c)
{
	s->changes = arena_reserve(s->a, s->changes, s->n, &s->cap, sizeof(c));
	c.order = s->n;
	s->changes[s->n++] = c;
}

static void split_lines(struct yaml_editor *s, struct str text)
{
	struct str_split split = str_split(text);
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	s->lines = arena_array(s->a, struct str, n);
	while (s->lines && s->n_lines < n && str_next(&split, '\n', &s->lines[s->n_lines]))
		s->n_lines++;
}

/* The member stands at the beginning of its line: a block mapping, not {flow} and not "- item". */
static bool begins_line(const struct yaml_editor *s, struct doc_pos pos)
{
	struct str line;

	if (!pos.line || pos.line > s->n_lines)
		return false;
	line = s->lines[pos.line - 1];
	if (pos.column - 1 >= line.n)
		return false;
	for (size_t i = 0; i + 1 < pos.column; i++)
		if (line.p[i] != ' ')
			return false;
	return line.p[pos.column - 1] != '{';
}

static struct str indented(struct str text, size_t blanks, struct arena *a)
{
	struct str_split split = str_split(text);
	struct strbuf b;
	struct str line;

	strbuf_init(&b, a);
	while (str_next(&split, '\n', &line)) {
		if (!line.n && split.ended)
			break;
		for (size_t i = 0; i < blanks; i++)
			strbuf_addc(&b, ' ');
		strbuf_add(&b, line);
		strbuf_addc(&b, '\n');
	}
	return strbuf_str(&b);
}

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

static bool splice_add(struct yaml_editor *s, struct str path, yyjson_mut_val *value)
{
	yyjson_mut_doc *m = doc_build(s->a);
	yyjson_mut_val *pair = yyjson_mut_obj(m);
	yyjson_val *parent, *first;
	struct str key, text;
	yyjson_obj_iter it;
	struct doc_pos pos;

	parent = parent_of(s, path, &key);
	if (!yyjson_is_obj(parent) || !yyjson_obj_size(parent))
		return false;
	/* Before the first member: its line and indent are known, while the last member may have
	 * lines of its own, and comments after it. */
	it = yyjson_obj_iter_with(parent);
	first = yyjson_obj_iter_next(&it);
	pos = doc_position(s->doc, first);
	if (!begins_line(s, pos))
		return false;
	doc_put(m, pair, key, yyjson_mut_val_mut_copy(m, value));
	if (yaml_write(pair, s->a, &text, NULL) < 0)
		return false;
	add_change(s, (struct change){ .line = pos.line,
				       .text = indented(text, pos.column - 1, s->a) });
	return true;
}

static bool splice_remove(struct yaml_editor *s, struct str path)
{
	yyjson_val *parent, *k, *v, *found = NULL, *value = NULL;
	struct doc_pos pos;
	struct str key, line;

	parent = parent_of(s, path, &key);
	DOC_EACH_PAIR (parent, k, v)
		if (str_eq(doc_str(k), key)) {
			found = k;
			value = v;
		}
	if (!found || yyjson_is_ctn(value) || yyjson_obj_size(parent) < 2)
		return false; /* an empty mapping would read as null */
	pos = doc_position(s->doc, found);
	if (!begins_line(s, pos) || doc_position(s->doc, value).line != pos.line)
		return false;
	line = s->lines[pos.line - 1];
	/* The value of a block scalar (| or >) begins on this line and continues below it. */
	if (!str_has(line, doc_text(value)))
		return false;
	add_change(s, (struct change){ .line = pos.line, .removes = true });
	return true;
}

static bool splice_patch(struct yaml_editor *s, const struct patch *p)
{
	yyjson_mut_val *op;

	DOC_EACH_BUILT_ITEM (p->ops, op) {
		struct str verb = doc_mut_str(yyjson_mut_obj_get(op, "op"));
		struct str path = doc_mut_str(yyjson_mut_obj_get(op, "path"));
		bool ok = false;

		if (str_eq(verb, STR("add")))
			ok = splice_add(s, path, yyjson_mut_obj_get(op, "value"));
		else if (str_eq(verb, STR("remove")))
			ok = splice_remove(s, path);
		if (!ok)
			return false;
	}
	return true;
}

/* By order as well, because qsort() is not stable. */
static int by_line(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static struct str joined(const struct yaml_editor *s)
{
	size_t at = 0;
	struct strbuf b;

	strbuf_init(&b, s->a);
	for (size_t i = 0; i < s->n_lines; i++) {
		bool is_removed = false;

		for (; at < s->n && s->changes[at].line == i + 1; at++) {
			strbuf_add(&b, s->changes[at].text);
			is_removed |= s->changes[at].removes;
		}
		if (is_removed)
			continue;
		strbuf_add(&b, s->lines[i]);
		if (i + 1 < s->n_lines)
			strbuf_addc(&b, '\n');
	}
	return strbuf_str(&b);
}

bool yaml_edit_text(struct str text, const struct doc_list *docs, const struct patch *patches,
		    struct arena *a, struct str *ret)
{
	struct yaml_editor s = { .a = a };

	split_lines(&s, text);
	for (size_t i = 0; i < docs->n; i++) {
		s.doc = &docs->items[i];
		if (!splice_patch(&s, &patches[i]))
			return false;
	}
	if (s.n)
		qsort(s.changes, s.n, sizeof(*s.changes), by_line);
	*ret = joined(&s);
	return true;
}
