/* Three forms of the same findings. Positions count from 1; 0 means that the finding has none. */

#include "lint_report.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "output.h"

void lint_report_init(struct lint_report *r, struct arena *a)
{
	*r = (struct lint_report){ .a = a };
}

void lint_report_add(struct lint_report *r, const struct doc *doc,
		     const struct lint_finding *finding)
{
	r->items = arena_reserve(r->a, r->items, r->n, &r->cap, sizeof(*r->items));
	r->items[r->n++] = (struct reported){
		.file = doc->file,
		.pos = doc_position(doc, finding->at),
		.finding = *finding,
	};
}

static enum lint_level level_of(const struct reported *f)
{
	return lint_rule_level(f->finding.rule);
}

bool lint_report_is_bad(const struct lint_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (level_of(&r->items[i]) > LINT_NOTE)
			return true;
	return false;
}

static struct str report_text(const struct lint_report *r)
{
	struct strbuf b;

	strbuf_init(&b, r->a);
	for (size_t i = 0; i < r->n; i++) {
		const struct reported *f = &r->items[i];

		strbuf_printf(&b, PRI_STR ":%u:%u: %s: " PRI_STR, FMT_STR(f->file), f->pos.line,
			      f->pos.column, lint_level_name(level_of(f)),
			      FMT_STR(f->finding.text));
		if (f->finding.advice)
			strbuf_printf(&b, " (%s)", f->finding.advice);
		strbuf_printf(&b, " [%s]\n", lint_rule_name(f->finding.rule));
	}
	return strbuf_str(&b);
}

static yyjson_mut_val *report_doc(const struct lint_report *r, yyjson_mut_doc *m)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < r->n; i++) {
		const struct reported *f = &r->items[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("file"), f->file);
		doc_put_int(m, item, STR("line"), f->pos.line);
		doc_put_int(m, item, STR("column"), f->pos.column);
		doc_put_str(m, item, STR("level"), str_from(lint_level_name(level_of(f))));
		doc_put_str(m, item, STR("rule"), str_from(lint_rule_name(f->finding.rule)));
		doc_put_str(m, item, STR("message"), f->finding.text);
		if (f->finding.advice)
			doc_put_str(m, item, STR("advice"), str_from(f->finding.advice));
	}
	return list;
}

static void put_message(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, struct str text)
{
	doc_put_str(m, doc_put_obj(m, object, key), STR("text"), text);
}

static void put_rules(yyjson_mut_doc *m, yyjson_mut_val *driver)
{
	yyjson_mut_val *rules = doc_put_arr(m, driver, STR("rules"));

	for (size_t i = 0; i < LINT__COUNT; i++) {
		yyjson_mut_val *rule = yyjson_mut_arr_add_obj(m, rules);
		enum lint_rule id = (enum lint_rule)i;
		yyjson_mut_val *configuration;

		doc_put_str(m, rule, STR("id"), str_from(lint_rule_name(id)));
		put_message(m, rule, STR("shortDescription"), str_from(lint_rule_text(id)));
		configuration = doc_put_obj(m, rule, STR("defaultConfiguration"));
		doc_put_str(m, configuration, STR("level"),
			    str_from(lint_level_name(lint_rule_level(id))));
	}
}

/* Bytes that a path of a URI may contain as they are (RFC 3986). */
static bool is_uri_char(char c)
{
	return str_is_alnum(c) || (c && strchr("/-._~!$&'()*+,;=@", c));
}

static struct str uri_path(struct str path, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < path.n; i++)
		if (is_uri_char(path.p[i]))
			strbuf_addc(&b, path.p[i]);
		else
			strbuf_printf(&b, "%%%02X", (unsigned char)path.p[i]);
	return strbuf_str(&b);
}

/* Relative to the working directory, which is the root of the sources for code review tools. A file
 * elsewhere has an absolute URI. */
static void put_artifact(yyjson_mut_doc *m, yyjson_mut_val *place, struct str file, struct arena *a)
{
	char cwd[PATH_MAX];
	struct str base = STR("");

	while (str_starts(file, STR("./")))
		file = str_skip(file, 2);
	if (str_starts(file, STR("/")) && getcwd(cwd, sizeof(cwd)))
		base = str_printf(a, "%s/", strcmp(cwd, "/") == 0 ? "" : cwd);
	if (base.n && str_starts(file, base))
		file = str_skip(file, base.n);
	if (str_starts(file, STR("/"))) {
		doc_put_str(m, place, STR("uri"),
			    str_printf(a, "file://" PRI_STR, FMT_STR(uri_path(file, a))));
		return;
	}
	doc_put_str(m, place, STR("uri"), uri_path(file, a));
	doc_put_str(m, place, STR("uriBaseId"), STR("%SRCROOT%"));
}

static void put_result(yyjson_mut_doc *m, yyjson_mut_val *results, const struct reported *f,
		       struct arena *a)
{
	yyjson_mut_val *result = yyjson_mut_arr_add_obj(m, results), *place, *region;
	struct str text = f->finding.text;

	if (f->finding.advice)
		text = str_printf(a, PRI_STR " (%s)", FMT_STR(text), f->finding.advice);
	doc_put_str(m, result, STR("ruleId"), str_from(lint_rule_name(f->finding.rule)));
	doc_put_int(m, result, STR("ruleIndex"), f->finding.rule);
	doc_put_str(m, result, STR("level"), str_from(lint_level_name(level_of(f))));
	put_message(m, result, STR("message"), text);
	place = doc_put_obj(m, yyjson_mut_arr_add_obj(m, doc_put_arr(m, result, STR("locations"))),
			    STR("physicalLocation"));
	put_artifact(m, doc_put_obj(m, place, STR("artifactLocation")), f->file, a);
	region = doc_put_obj(m, place, STR("region"));
	/* SARIF counts from 1 and has no value for an unknown line. */
	doc_put_int(m, region, STR("startLine"), f->pos.line ? f->pos.line : 1);
	doc_put_int(m, region, STR("startColumn"), f->pos.column ? f->pos.column : 1);
}

/* Rules are listed completely and in the order of the enum, because a result refers to its rule by
 * index. */
static yyjson_mut_val *report_sarif(const struct lint_report *r, yyjson_mut_doc *m)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *run, *driver, *results;

	doc_put_str(m, root, STR("$schema"), STR("https://json.schemastore.org/sarif-2.1.0.json"));
	doc_put_str(m, root, STR("version"), STR("2.1.0"));
	run = yyjson_mut_arr_add_obj(m, doc_put_arr(m, root, STR("runs")));
	driver = doc_put_obj(m, doc_put_obj(m, run, STR("tool")), STR("driver"));
	doc_put_str(m, driver, STR("name"), STR("pinfold"));
	doc_put_str(m, driver, STR("version"), STR(PINFOLD_VERSION));
	put_rules(m, driver);
	results = doc_put_arr(m, run, STR("results"));
	for (size_t i = 0; i < r->n; i++)
		put_result(m, results, &r->items[i], r->a);
	return root;
}

int lint_report_print(const struct lint_report *r, const char *format, FILE *to, struct err *err)
{
	yyjson_mut_doc *m = doc_build(r->a);

	if (format && strcmp(format, "sarif") == 0)
		return output_doc_to(to, report_sarif(r, m), OUTPUT_JSON, r->a, err);
	if (output_format_of(format) == OUTPUT_TABLE)
		return output_text_to(to, output_printable(report_text(r), r->a), err);
	return output_doc_to(to, report_doc(r, m), output_format_of(format), r->a, err);
}
