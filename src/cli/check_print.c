#include "check_print.h"

#include "base/arena.h"
#include "base/macro.h"

#define CHECK_PAGE "docs/check.md#"

static const char *const colours[] = {
	[PREFLIGHT_OK] = "\033[32m",
	[PREFLIGHT_NOTE] = "\033[36m",
	[PREFLIGHT_WARNING] = "\033[33m",
	[PREFLIGHT_FAILURE] = "\033[31m",
};
_Static_assert(ARRAY_LEN(colours) == PREFLIGHT_LEVEL__COUNT, "every level has a colour");

static void print_finding(struct strbuf *b, const struct preflight_finding *f, bool has_colour)
{
	const char *level = preflight_level_name(f->level), *id = preflight_check_id(f->check);

	strbuf_printf(b, "  %s%-7s%s  %-21s  " PRI_STR "\n", has_colour ? colours[f->level] : "",
		      level, has_colour ? "\033[0m" : "", id, FMT_STR(f->message));
	if (f->remedy.n)
		strbuf_printf(b, "           remedy: " PRI_STR "\n", FMT_STR(f->remedy));
	if (f->level >= PREFLIGHT_WARNING)
		strbuf_printf(b, "           see " CHECK_PAGE "%s\n", id);
}

static struct str report_text(const struct preflight_report *r, struct arena *a)
{
	const bool has_colour = output_wants_colour();
	struct strbuf b;

	strbuf_init(&b, a);
	for (int g = 0; g < PREFLIGHT_GROUP__COUNT; g++) {
		bool has_title = false;

		for (size_t i = 0; i < r->n; i++) {
			if (preflight_check_group(r->items[i].check) != (enum preflight_group)g)
				continue;
			if (!has_title)
				strbuf_printf(&b, "%s\n",
					      preflight_group_name((enum preflight_group)g));
			has_title = true;
			print_finding(&b, &r->items[i], has_colour);
		}
	}
	strbuf_printf(&b, "%zu ok, " PRI_STR ", " PRI_STR ", " PRI_STR "\n", r->count[PREFLIGHT_OK],
		      FMT_STR(str_count(a, r->count[PREFLIGHT_NOTE], "note", "notes")),
		      FMT_STR(str_count(a, r->count[PREFLIGHT_WARNING], "warning", "warnings")),
		      FMT_STR(str_count(a, r->count[PREFLIGHT_FAILURE], "failure", "failures")));
	return strbuf_str(&b);
}

yyjson_mut_val *check_document(const struct preflight_report *r, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list = doc_put_arr(m, root, STR("findings"));
	yyjson_mut_val *summary = doc_put_obj(m, root, STR("summary"));

	for (size_t i = 0; i < r->n; i++) {
		const struct preflight_finding *f = &r->items[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);
		const char *id = preflight_check_id(f->check);

		doc_put_str(m, item, STR("check"), str_from(id));
		doc_put_str(m, item, STR("group"),
			    str_from(preflight_group_name(preflight_check_group(f->check))));
		doc_put_str(m, item, STR("level"), str_from(preflight_level_name(f->level)));
		doc_put_str(m, item, STR("message"), f->message);
		if (f->remedy.n)
			doc_put_str(m, item, STR("remedy"), f->remedy);
		doc_put_str(m, item, STR("page"), str_printf(a, CHECK_PAGE "%s", id));
	}
	for (int i = 0; i < PREFLIGHT_LEVEL__COUNT; i++)
		doc_put_int(m, summary, str_from(preflight_level_name((enum preflight_level)i)),
			    (int64_t)r->count[i]);
	return root;
}

int check_print(const struct preflight_report *r, enum output_format format, struct arena *a,
		struct err *err)
{
	if (format == OUTPUT_TABLE)
		return output_readable(report_text(r, a), err);
	return output_doc(check_document(r, doc_build(a), a), format, a, err);
}
