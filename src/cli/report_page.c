#include "report_page.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "report_private.h"

#define NODES_MAX 32 /* nodes with a part of their own; more make no page that is read */

void report_missing(struct report_writer *w, const struct err *err)
{
	w->n_missing++;
	page_note(&w->b, str_from(err->msg));
}

yyjson_val *report_doc(struct report_writer *w, struct str path, struct doc *ret)
{
	struct err err = { 0 };

	if (saved_bundle_doc(w->bundle, path, w->a, ret, &err) >= 0)
		return ret->root;
	report_missing(w, &err);
	return NULL;
}

static enum page_mood mood_of(struct str level)
{
	return str_eq(level, STR("failure")) ? PAGE_BAD :
	       str_eq(level, STR("warning")) ? PAGE_WARNING :
	       str_eq(level, STR("ok"))	     ? PAGE_OK :
					       PAGE_PLAIN;
}

void report_checks(struct report_writer *w, struct str path)
{
	static const char *const headings[] = { "Result", "Check", "Message", "Remedy" };
	struct page_table t;
	yyjson_val *root, *v;
	struct doc doc;

	root = report_doc(w, path, &doc);
	if (!root)
		return;
	t = page_table_begin(&w->b, STR("Results of pinfold check"), headings, ARRAY_LEN(headings));
	DOC_EACH_ITEM (doc_get(root, STR("findings")), v) {
		const struct str level = doc_str(doc_get(v, STR("level")));

		w->n_findings += mood_of(level) == PAGE_BAD;
		page_table_row(&t, mood_of(level),
			       (struct str[]){ level, doc_str(doc_get(v, STR("check"))),
					       doc_str(doc_get(v, STR("message"))),
					       doc_str(doc_get(v, STR("remedy"))) });
	}
	page_table_end(&t);
}

static void add_pair(const struct page_table *t, const char *key, struct str value)
{
	if (value.n)
		page_table_row(t, PAGE_PLAIN, (struct str[]){ str_from(key), value });
}

static void add_versions(struct report_writer *w)
{
	static const char *const headings[] = { "What", "Version" };
	yyjson_val *root;
	struct page_table t;
	struct str *nodes;
	struct doc doc;
	size_t n;

	page_heading(&w->b, 2, STR("Versions"));
	t = page_table_begin(&w->b, STR("Versions"), headings, ARRAY_LEN(headings));
	add_pair(&t, "Pinfold that made the bundle", w->bundle->version);
	add_pair(&t, "Pinfold that made this page", STR(PINFOLD_VERSION));
	if (saved_bundle_doc(w->bundle, STR(BUNDLE_VERSIONS), w->a, &doc, NULL) >= 0)
		add_pair(&t, "API server", doc_str(doc_find(doc.root, "/apiServer/gitVersion")));
	saved_bundle_nodes(w->bundle, w->a, &nodes, &n);
	for (size_t i = 0; i < n && i < NODES_MAX; i++) {
		if (saved_bundle_doc(w->bundle,
				     saved_bundle_node_path(nodes[i], BUNDLE_NODE_HOST, w->a), w->a,
				     &doc, NULL) < 0)
			continue;
		root = doc.root;
		add_pair(&t, str_printf(w->a, "Kernel of " PRI_STR, FMT_STR(nodes[i])).p,
			 doc_str(doc_get(root, STR("kernel"))));
		add_pair(&t, str_printf(w->a, "Distribution of " PRI_STR, FMT_STR(nodes[i])).p,
			 doc_str(doc_get(root, STR("os"))));
		add_pair(&t, str_printf(w->a, "CPU parameters of " PRI_STR, FMT_STR(nodes[i])).p,
			 doc_str(doc_get(root, STR("cpuParameters"))));
	}
	page_table_end(&t);
}

static void add_left_out(struct report_writer *w)
{
	static const char *const headings[] = { "What", "Why" };
	yyjson_val *list = doc_get(w->bundle->index.root, STR("leftOut")), *v;
	struct page_table t;

	page_heading(&w->b, 2, STR("Not known"));
	if (!yyjson_arr_size(list))
		return;
	t = page_table_begin(&w->b, STR("Left out of the bundle"), headings, ARRAY_LEN(headings));
	DOC_EACH_ITEM (list, v)
		page_table_row(&t, PAGE_PLAIN,
			       (struct str[]){ doc_str(doc_get(v, STR("what"))),
					       doc_str(doc_get(v, STR("why"))) });
	page_table_end(&t);
}

static struct str sources_text(const struct saved_bundle *b, struct arena *a)
{
	struct strbuf out;
	yyjson_val *v;

	strbuf_init(&out, a);
	DOC_EACH_ITEM (doc_get(b->index.root, STR("sources")), v)
		strbuf_printf(&out, "%s" PRI_STR, out.n ? ", " : "", FMT_STR(doc_str(v)));
	return strbuf_str(&out);
}

/* The verdict stands above the parts that decide it. */
static struct str head_of(const struct report_writer *w, struct str title)
{
	const struct str sources = sources_text(w->bundle, w->a);
	struct strbuf b;

	strbuf_init(&b, w->a);
	page_begin(&b, title.n ? title : str_printf(w->a, "Report: " PRI_STR, FMT_STR(sources)));
	page_note(&b, str_printf(w->a, "As of " PRI_STR ": " PRI_STR, FMT_STR(w->bundle->created),
				 FMT_STR(sources)));
	page_verdict(&b,
		     w->n_findings ? PAGE_BAD :
		     w->n_missing  ? PAGE_WARNING :
				     PAGE_OK,
		     w->n_findings ? str_count(w->a, w->n_findings, "finding", "findings") :
				     STR("No findings"));
	if (w->n_missing)
		page_verdict(
			&b, PAGE_WARNING,
			str_printf(w->a, PRI_STR " not known",
				   FMT_STR(str_count(w->a, w->n_missing, "part is", "parts are"))));
	return strbuf_str(&b);
}

int report_make_page(const struct saved_bundle *b, struct str title, struct arena *a,
		     struct report *ret, struct err *err)
{
	struct report_writer w = { .bundle = b, .a = a };
	struct str *nodes;
	size_t n;
	int r;

	strbuf_init(&w.b, a);
	saved_bundle_nodes(b, a, &nodes, &n);
	for (size_t i = 0; i < n && i < NODES_MAX; i++)
		report_node(&w, nodes[i]);
	if (n > NODES_MAX)
		page_note(&w.b, str_printf(a, "%zu more nodes are not shown.", n - NODES_MAX));
	r = report_cluster(&w, err);
	if (r < 0)
		return r;
	report_history(&w);
	if (saved_bundle_find(b, STR(BUNDLE_CHECK))) {
		page_heading(&w.b, 2, STR("Checks of the cluster"));
		report_checks(&w, STR(BUNDLE_CHECK));
	}
	add_versions(&w);
	add_left_out(&w);
	page_end(&w.b);
	*ret = (struct report){ str_printf(a, PRI_STR PRI_STR, FMT_STR(head_of(&w, title)),
					   FMT_STR(strbuf_str(&w.b))),
				w.n_findings };
	return 0;
}
