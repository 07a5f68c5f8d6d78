/* The nodes of the cluster, and what happened when: Events of Pinfold, and conditions of
 * NodePartitions with the time of their last change. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster_report.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "partition/cluster_nodes.h"
#include "report_private.h"

#define ROWS_MAX 500 /* of a table of nodes or events */

static void add_nodes(struct report_writer *w, const struct cluster_nodes *nodes)
{
	static const char *const headings[] = { "Node",	      "Profile", "Management", "Shared",
						"Guaranteed", "Ready",	 "Agent" };
	struct page_table t = page_table_begin(&w->b, STR("Nodes"), headings, ARRAY_LEN(headings));

	for (size_t i = 0; i < nodes->n && i < ROWS_MAX; i++) {
		const struct node_partition_status *s = &nodes->items[i].partition.status;
		const struct condition *ready = &s->conditions[PARTITION_READY];

		page_table_row(&t, PAGE_PLAIN,
			       (struct str[]){ nodes->items[i].name, s->profile, s->management,
					       s->shared, s->guaranteed,
					       ready->status == CONDITION_TRUE	? STR("yes") :
					       ready->status == CONDITION_FALSE ? ready->reason :
										  STR("unknown"),
					       s->agent_version });
	}
	page_table_end(&t);
	if (nodes->n > ROWS_MAX)
		page_note(&w->b,
			  str_printf(w->a, "%zu more nodes are not shown.", nodes->n - ROWS_MAX));
}

static void add_findings(struct report_writer *w, const struct node_findings *f)
{
	static const char *const headings[] = { "Result", "Node", "Detail" };
	struct page_table t;

	if (!f->n) {
		page_verdict(&w->b, PAGE_OK, STR("No findings about nodes"));
		return;
	}
	t = page_table_begin(&w->b, STR("Findings about nodes"), headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < f->n && i < ROWS_MAX; i++)
		page_table_row(&t, f->items[i].is_note ? PAGE_PLAIN : PAGE_BAD,
			       (struct str[]){ str_from(node_fault_name(f->items[i].fault)),
					       f->items[i].node->name, f->items[i].text });
	page_table_end(&t);
}

int report_cluster(struct report_writer *w, struct err *err)
{
	struct node_findings findings;
	struct cluster_nodes nodes;
	int64_t now_s = 0;
	struct str flag;
	int r = cluster_report_objects(w->bundle, w->a, &nodes, &flag, err);

	if (r < 0 || !nodes.n)
		return r;
	(void)object_time_read(w->bundle->created, &now_s);
	cluster_nodes_check(&nodes, now_s, false, &findings);
	w->n_findings += findings.n - findings.n_notes;
	page_heading(&w->b, 2, STR("Cluster"));
	page_paragraph(&w->b, str_printf(w->a, "Cluster flag " PRI_STR ", " PRI_STR ".",
					 FMT_STR(flag.n ? flag : STR("not set")),
					 FMT_STR(str_count(w->a, nodes.n, "node", "nodes"))));
	add_findings(w, &findings);
	add_nodes(w, &nodes);
	return 0;
}

struct happening {
	struct str time, what, about, text;
};

struct happenings {
	struct arena *a;
	struct happening *items;
	size_t n, cap;
};

static void add_happening(struct happenings *l, const struct happening *h)
{
	l->items = arena_reserve(l->a, l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = *h;
}

static struct str about_of(yyjson_val *ref, struct arena *a)
{
	const struct str namespace = doc_str(doc_get(ref, STR("namespace")));

	return str_printf(a, PRI_STR " " PRI_STR "%s" PRI_STR,
			  FMT_STR(doc_str(doc_get(ref, STR("kind")))), FMT_STR(namespace),
			  namespace.n ? "/" : "", FMT_STR(doc_str(doc_get(ref, STR("name")))));
}

static void add_event(struct happenings *l, yyjson_val *o)
{
	const struct str last = doc_str(doc_get(o, STR("lastTimestamp")));
	const struct str first = doc_str(doc_get(o, STR("firstTimestamp")));
	const struct str count = doc_text(doc_get(o, STR("count")));
	struct happening h = { .time = last.n ? last : doc_str(doc_get(o, STR("eventTime"))),
			       .what = doc_str(doc_get(o, STR("reason"))),
			       .about = about_of(doc_get(o, STR("involvedObject")), l->a),
			       .text = doc_str(doc_get(o, STR("message"))) };

	if (count.n && !str_eq(count, STR("1")))
		h.text = str_printf(l->a, PRI_STR " (" PRI_STR " times since " PRI_STR ")",
				    FMT_STR(h.text), FMT_STR(count), FMT_STR(first));
	add_happening(l, &h);
}

static void add_conditions(struct happenings *l, yyjson_val *o)
{
	yyjson_val *c;

	DOC_EACH_ITEM (doc_find(o, "/status/conditions"), c)
		add_happening(
			l, &(struct happening){
				   .time = doc_str(doc_get(c, STR("lastTransitionTime"))),
				   .what = str_printf(l->a, PRI_STR "=" PRI_STR " " PRI_STR,
						      FMT_STR(doc_str(doc_get(c, STR("type")))),
						      FMT_STR(doc_str(doc_get(c, STR("status")))),
						      FMT_STR(doc_str(doc_get(c, STR("reason"))))),
				   .about = str_printf(l->a, "NodePartition " PRI_STR,
						       FMT_STR(object_name(o))),
				   .text = doc_str(doc_get(c, STR("message"))) });
}

static int add_object(void *context, yyjson_val *object, struct err *err)
{
	(void)err;
	if (str_eq(object_kind(object), STR("Event")))
		add_event(context, object);
	else if (str_eq(object_kind(object), STR(NAME_PARTITION_KIND)))
		add_conditions(context, object);
	return 0;
}

/* The newest first. Times in this format sort as texts. */
static int by_time(const void *x, const void *y)
{
	const struct happening *a = x, *b = y;
	int r = str_cmp(b->time, a->time);

	return r ? r : str_cmp(a->about, b->about);
}

void report_history(struct report_writer *w)
{
	static const char *const headings[] = { "Time", "What", "About", "Message" };
	struct happenings l = { .a = w->a };
	struct page_table t;

	/* Objects that do not parse were an error of report_cluster(). */
	if (saved_bundle_each_object(w->bundle, w->a, add_object, &l, NULL) < 0 || !l.n)
		return;
	qsort(l.items, l.n, sizeof(*l.items), by_time);
	page_heading(&w->b, 2, STR("History"));
	t = page_table_begin(&w->b, STR("Events and changes of conditions, the newest first"),
			     headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < l.n && i < ROWS_MAX; i++)
		page_table_row(&t, PAGE_PLAIN,
			       (struct str[]){ l.items[i].time, l.items[i].what, l.items[i].about,
					       l.items[i].text });
	page_table_end(&t);
	if (l.n > ROWS_MAX)
		page_note(&w->b, str_printf(w->a, "%zu older ones are not shown.", l.n - ROWS_MAX));
}
