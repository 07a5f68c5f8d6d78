/* Findings about input files, collected instead of returned one by one, so that a user sees all of
 * them in one run. */

#include "problems.h"

#include <stdarg.h>

#include "base/arena.h"
#include "base/err.h"

static const char *const level_names[PROBLEM__COUNT] = { "error", "warning", "note" };

void problem_list_init(struct problem_list *p, struct arena *a)
{
	*p = (struct problem_list){ .a = a };
}

/* NULL when memory ran out: the problem counts, so that the input is still refused. */
static struct problem *new_problem(struct problem_list *p, enum problem_level level)
{
	struct problem *grown = arena_reserve(p->a, p->items, p->n, &p->cap, sizeof(*p->items));

	p->n_errors += level == PROBLEM_ERROR;
	p->n_warnings += level == PROBLEM_WARNING;
	if (!grown)
		return NULL;
	p->items = grown;
	p->items[p->n] = (struct problem){ .level = level };
	return &p->items[p->n++];
}

void problem_add(struct problem_list *p, enum problem_level level, struct problem_at at,
		 const char *fmt, ...)
{
	struct problem *item = new_problem(p, level);
	struct strbuf b;
	va_list ap;

	if (!item)
		return;
	strbuf_init(&b, p->a);
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	item->text = strbuf_str(&b);
	item->field = str_dup(p->a, str_from(at.field));
	if (!at.doc)
		return;
	item->file = at.doc->file;
	if (at.value)
		item->pos = doc_position(at.doc, at.value);
}

void problem_from_err(struct problem_list *p, const struct err *err)
{
	struct problem *item = new_problem(p, PROBLEM_ERROR);

	if (item)
		item->text = str_dup(p->a, str_from(err->msg));
}

/* Problems of different files compare as equal: a stable sort then keeps the order in which the
 * files were read. */
static int by_position(const struct problem *a, const struct problem *b)
{
	if (a->file.p != b->file.p || a->file.n != b->file.n)
		return 0;
	if (a->pos.line != b->pos.line)
		return a->pos.line < b->pos.line ? -1 : 1;
	if (a->pos.column != b->pos.column)
		return a->pos.column < b->pos.column ? -1 : 1;
	return 0;
}

void problem_list_sort(struct problem_list *p)
{
	/* Insertion sort: stable, and the lists are short and mostly sorted. */
	for (size_t i = 1; i < p->n; i++) {
		struct problem item = p->items[i];
		size_t j = i;

		for (; j && by_position(&p->items[j - 1], &item) > 0; j--)
			p->items[j] = p->items[j - 1];
		p->items[j] = item;
	}
}

static void format_one(const struct problem *item, struct strbuf *b)
{
	if (item->file.n) {
		strbuf_add(b, item->file);
		if (item->pos.line)
			strbuf_printf(b, ":%u:%u", item->pos.line, item->pos.column);
		strbuf_add(b, STR(": "));
	}
	if (item->level != PROBLEM_ERROR)
		strbuf_printf(b, "%s: ", level_names[item->level]);
	if (item->field.n)
		strbuf_printf(b, PRI_STR ": ", FMT_STR(item->field));
	strbuf_add(b, item->text);
	strbuf_addc(b, '\n');
}

struct str problem_list_format(const struct problem_list *p, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < p->n; i++)
		format_one(&p->items[i], &b);
	return strbuf_str(&b);
}

yyjson_mut_val *problem_list_to_doc(const struct problem_list *p, yyjson_mut_doc *m)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < p->n; i++) {
		const struct problem *item = &p->items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("level"), str_from(level_names[item->level]));
		if (item->file.n)
			doc_put_str(m, v, STR("file"), item->file);
		if (item->pos.line) {
			doc_put_int(m, v, STR("line"), item->pos.line);
			doc_put_int(m, v, STR("column"), item->pos.column);
		}
		if (item->field.n)
			doc_put_str(m, v, STR("field"), item->field);
		doc_put_str(m, v, STR("text"), item->text);
	}
	return list;
}
