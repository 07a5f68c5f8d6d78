/* One node: its map, the result of verify, what its agent counted and refused, its checks. */

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle_input.h"
#include "cpu/topology.h"
#include "node_map.h"
#include "node_verify.h"
#include "report_private.h"

static void add_map(struct report_writer *w, struct str node, const struct agent_status *status)
{
	struct topology *topology = arena_new(w->a, struct topology);
	struct map *map = arena_new(w->a, struct map);
	struct machine_picture picture;
	struct err err = { 0 };

	map->topology = topology;
	if (bundle_node_topology(w->bundle, node, w->a, topology, &err) < 0 ||
	    node_map_read(&status->doc, w->a, map, &err) < 0 ||
	    node_map_check(map, BUNDLE_NODE_TOPOLOGY, &err) < 0) {
		report_missing(w, &err);
		return;
	}
	picture = map_picture(map, STR(""), w->a);
	picture_figure(&w->b, &picture, ++w->n_figures);
	map_page_table(map, &w->b);
}

static void add_findings(struct report_writer *w, const struct audit *t)
{
	static const char *const headings[] = { "Check",     "Namespace", "Pod",
						"Container", "Expected",  "Actual" };
	struct page_table table;

	page_verdict(
		&w->b, t->n_findings ? PAGE_BAD : PAGE_OK,
		str_printf(w->a, PRI_STR " checked, " PRI_STR,
			   FMT_STR(str_count(w->a, t->n_containers, "container", "containers")),
			   FMT_STR(str_count(w->a, t->n_findings, "finding", "findings"))));
	if (!t->n_findings)
		return;
	table = page_table_begin(&w->b, STR("Differences between the kernel and the agent"),
				 headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		page_table_row(&table, PAGE_BAD,
			       (struct str[]){ str_from(f->check), f->name.namespace, f->name.pod,
					       f->name.container, f->expected, f->actual });
	}
	page_table_end(&table);
}

static void add_foreign(struct report_writer *w, const struct node_verify *v)
{
	static const char *const headings[] = { "Group", "Processes", "Exclusive CPUs", "Remedy" };
	struct foreign_group *groups;
	struct page_table t;
	size_t n;

	foreign_groups(&v->audit, &v->host, w->a, &groups, &n);
	if (!n)
		return;
	t = page_table_begin(&w->b, STR("Foreign processes on exclusive CPUs"), headings,
			     ARRAY_LEN(headings));
	for (size_t i = 0; i < n; i++)
		page_table_row(&t, PAGE_WARNING,
			       (struct str[]){ groups[i].name,
					       str_printf(w->a, "%zu: " PRI_STR, groups[i].n,
							  FMT_STR(groups[i].names)),
					       cpuset_format(&groups[i].cpus, w->a),
					       groups[i].remedy });
	page_table_end(&t);
}

static void add_verify(struct report_writer *w, struct str node)
{
	struct node_verify v;
	struct err err = { 0 };

	page_heading(&w->b, 3, STR("Verification"));
	if (bundle_node_verify(w->bundle, node, w->a, &v, &err) < 0) {
		report_missing(w, &err);
		return;
	}
	w->n_findings += v.audit.n_findings;
	add_findings(w, &v.audit);
	add_foreign(w, &v);
}

/* Counters that are not zero, restored containers, refusals: since the agent started. */
static void add_counts(struct report_writer *w, yyjson_val *status)
{
	static const char *const headings[] = { "What", "Number" };
	yyjson_val *key, *value, *c;
	struct page_table t = page_table_begin(&w->b, STR("Counted since the agent started"),
					       headings, ARRAY_LEN(headings));

	DOC_EACH_PAIR (doc_get(status, STR("counters")), key, value)
		if (!str_eq(doc_text(value), STR("0")))
			page_table_row(&t, PAGE_PLAIN,
				       (struct str[]){ doc_str(key), doc_text(value) });
	DOC_EACH_ITEM (doc_get(status, STR("containers")), c)
		if (doc_get(c, STR("repairs")))
			page_table_row(
				&t, PAGE_WARNING,
				(struct str[]){
					str_printf(w->a,
						   "restored " PRI_STR "/" PRI_STR "/" PRI_STR,
						   FMT_STR(doc_str(doc_get(c, STR("namespace")))),
						   FMT_STR(doc_str(doc_get(c, STR("pod")))),
						   FMT_STR(doc_str(doc_get(c, STR("container"))))),
					doc_text(doc_get(c, STR("repairs"))) });
	page_table_end(&t);
}

static void add_refusals(struct report_writer *w, yyjson_val *status)
{
	static const char *const headings[] = { "Reason", "Namespace", "Pod", "Container",
						"Message" };
	yyjson_val *list = doc_get(status, STR("refused")), *v;
	struct page_table t;

	if (!yyjson_arr_size(list))
		return;
	t = page_table_begin(&w->b, STR("Refused containers"), headings, ARRAY_LEN(headings));
	DOC_EACH_ITEM (list, v)
		page_table_row(&t, PAGE_WARNING,
			       (struct str[]){ doc_str(doc_get(v, STR("reason"))),
					       doc_str(doc_get(v, STR("namespace"))),
					       doc_str(doc_get(v, STR("pod"))),
					       doc_str(doc_get(v, STR("container"))),
					       doc_str(doc_get(v, STR("message"))) });
	page_table_end(&t);
}

void report_node(struct report_writer *w, struct str node)
{
	struct agent_status status;
	struct err err = { 0 };

	page_heading(&w->b, 2, str_printf(w->a, "Node " PRI_STR, FMT_STR(node)));
	if (bundle_node_status(w->bundle, node, w->a, &status, &err) < 0) {
		report_missing(w, &err);
	} else {
		if (!status.is_running) {
			w->n_findings++;
			page_verdict(&w->b, PAGE_BAD, STR("The agent was not running."));
		}
		add_map(w, node, &status);
		page_heading(&w->b, 3, STR("Drift and refusals"));
		add_counts(w, status.doc.root);
		add_refusals(w, status.doc.root);
	}
	add_verify(w, node);
	page_heading(&w->b, 3, STR("Checks"));
	report_checks(w, saved_bundle_node_path(node, BUNDLE_NODE_CHECK, w->a));
}
