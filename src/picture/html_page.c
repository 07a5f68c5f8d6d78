#include "html_page.h"

#include "base/arena.h"
#include "base/macro.h"
#include "markup.h"
#include "picture_style.h"

static const char *const moods[] = {
	[PAGE_PLAIN] = "", [PAGE_OK] = "ok", [PAGE_WARNING] = "warn", [PAGE_BAD] = "bad"
};

static void add_element(struct strbuf *b, const char *open, struct str text, const char *close)
{
	strbuf_add(b, str_from(open));
	markup_text(b, text);
	strbuf_add(b, str_from(close));
}

void page_begin(struct strbuf *b, struct str title)
{
	strbuf_add(b, STR("<!DOCTYPE html>\n<html lang=\"en\" "
			  "xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
			  "charset=\"utf-8\"/>\n<meta name=\"viewport\" "
			  "content=\"width=device-width, initial-scale=1\"/>\n<meta "
			  "name=\"color-scheme\" content=\"light dark\"/>\n<meta "
			  "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
			  "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\"/>\n"));
	add_element(b, "<title>", title, "</title>\n<style>\n");
	strbuf_add(b, str_from(picture_colours));
	strbuf_add(b, str_from(picture_rules));
	strbuf_add(b, str_from(page_rules));
	strbuf_add(b, STR("</style>\n</head>\n<body>\n<svg width=\"0\" height=\"0\" "
			  "aria-hidden=\"true\" style=\"position:absolute\">"));
	strbuf_add(b, str_from(picture_patterns));
	add_element(b, "</svg>\n<main>\n<h1>", title, "</h1>\n");
}

void page_end(struct strbuf *b)
{
	strbuf_add(b, STR("</main>\n</body>\n</html>\n"));
}

void page_heading(struct strbuf *b, unsigned level, struct str text)
{
	add_element(b, level == 2 ? "<h2>" : "<h3>", text, level == 2 ? "</h2>\n" : "</h3>\n");
}

void page_paragraph(struct strbuf *b, struct str text)
{
	add_element(b, "<p>", text, "</p>\n");
}

void page_note(struct strbuf *b, struct str text)
{
	struct str_split lines = str_split(text);
	struct str line;

	while (str_next(&lines, '\n', &line))
		if (line.n)
			add_element(b, "<p class=\"mute\">", line, "</p>\n");
}

void page_verdict(struct strbuf *b, enum page_mood mood, struct str text)
{
	strbuf_printf(b, "<p class=\"%s\">", moods[mood]);
	add_element(b, "", text, "</p>\n");
}

struct page_table page_table_begin(struct strbuf *b, struct str caption,
				   const char *const *headings, size_t n_columns)
{
	/* Wide tables scroll, also by the keyboard. */
	add_element(b, "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"", caption,
		    "\">\n<table>\n");
	add_element(b, "<caption>", caption, "</caption>\n<thead><tr>");
	for (size_t i = 0; i < n_columns; i++)
		add_element(b, "<th scope=\"col\">", str_from(headings[i]), "</th>");
	strbuf_add(b, STR("</tr></thead>\n<tbody>\n"));
	return (struct page_table){ b, n_columns };
}

#define WORD_MAX 28 /* characters of a name, time or list that stays on one line */

static bool is_word(struct str s)
{
	return s.n && s.n <= WORD_MAX && !str_has(s, STR(" "));
}

void page_table_row(const struct page_table *t, enum page_mood mood, const struct str *cells)
{
	strbuf_add(t->b, STR("<tr>"));
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *word = is_word(cells[i]) ? "w" : "";
		const char *own = i == 0 ? moods[mood] : "";

		if (*word || *own)
			strbuf_printf(t->b, "<td class=\"%s%s%s\">", own, *own && *word ? " " : "",
				      word);
		else
			strbuf_add(t->b, STR("<td>"));
		add_element(t->b, "", cells[i], "</td>");
	}
	strbuf_add(t->b, STR("</tr>\n"));
}

void page_table_end(const struct page_table *t)
{
	strbuf_add(t->b, STR("</tbody>\n</table>\n</div>\n"));
}

void page_folded(struct strbuf *b, struct str summary, struct str text)
{
	add_element(b, "<details>\n<summary>", summary, "</summary>\n");
	add_element(b, "<pre>", text, "</pre>\n</details>\n");
}
