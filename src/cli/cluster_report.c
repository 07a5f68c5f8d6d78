#include "cluster_report.h"

#include <errno.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle/bundle_load.h"
#include "command.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "partition/cluster_nodes.h"

struct cluster_report {
	struct cluster_nodes nodes;
	struct node_findings findings;
	struct str flag; /* status.cpuPartitioning; "": no Infrastructure */
	struct arena *a;
};

int cluster_report_check(const struct cluster_report_options *o, const struct bundle_options *from,
			 struct err *err)
{
	if (bundle_options_check(from, err) < 0)
		return -EINVAL;
	if (from->path && (o->client.kubeconfig || o->client.context))
		return err_set(err, EINVAL, "give either --bundle or --%s",
			       o->client.kubeconfig ? "kubeconfig" : "context");
	if (!o->cluster && (o->client.kubeconfig || o->client.context))
		return err_set(err, EINVAL, "--%s needs --cluster",
			       o->client.kubeconfig ? "kubeconfig" : "context");
	return 0;
}

static int add_node(void *context, yyjson_val *node, struct err *err)
{
	(void)err;
	cluster_nodes_add_node(context, node);
	return 0;
}

static int add_partition(void *context, yyjson_val *object, struct err *err)
{
	(void)err;
	cluster_nodes_add_partition(context, object);
	return 0;
}

#define PARTITIONS "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE
#define INFRASTRUCTURE "/apis/" NAME_CONFIG_API "/infrastructures/" NAME_INFRASTRUCTURE

static int read_cluster(struct api_sync *s, struct cluster_report *ret, struct err *err)
{
	yyjson_val *infrastructure;
	int r = cluster_client_find(s, STR(INFRASTRUCTURE), ret->a, &infrastructure, err);

	if (r < 0)
		return r;
	ret->flag = doc_str(doc_find(infrastructure, "/status/" NAME_PARTITIONING_KEY));
	ret->nodes.is_partitioned = str_eq(ret->flag, STR(NAME_PARTITIONING_ALL));
	r = api_sync_list(s,
			  &(struct api_sync_list){ .path = STR("/api/v1/nodes"),
						   .on_object = add_node,
						   .context = &ret->nodes },
			  err);
	if (r < 0)
		return r;
	r = api_sync_list(s,
			  &(struct api_sync_list){ .path = STR(PARTITIONS),
						   .on_object = add_partition,
						   .context = &ret->nodes },
			  err);
	if (r == -ENOENT)
		return err_set(err, ENOENT,
			       "the cluster has no CRD " NAME_PARTITION_RESOURCE
			       ".pinfold.io: install Pinfold first (kubectl apply -k deploy/)");
	return r;
}

static int add_object(void *context, yyjson_val *object, struct err *err)
{
	struct cluster_report *p = context;
	const struct str kind = object_kind(object);

	(void)err;
	if (str_eq(kind, STR("Node")))
		cluster_nodes_add_node(&p->nodes, object);
	else if (str_eq(kind, STR(NAME_PARTITION_KIND)))
		cluster_nodes_add_partition(&p->nodes, object);
	else if (str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND)) &&
		 str_eq(object_name(object), STR(NAME_INFRASTRUCTURE)))
		p->flag = doc_str(doc_find(object, "/status/" NAME_PARTITIONING_KEY));
	return 0;
}

int cluster_report_objects(const struct saved_bundle *b, struct arena *a, struct cluster_nodes *ret,
			   struct str *ret_flag, struct err *err)
{
	struct cluster_report p = { .a = a };
	int r;

	cluster_nodes_init(&p.nodes, a);
	r = saved_bundle_each_object(b, a, add_object, &p, err);
	if (r < 0)
		return r;
	p.nodes.is_partitioned = str_eq(p.flag, STR(NAME_PARTITIONING_ALL));
	cluster_nodes_sort(&p.nodes);
	*ret = p.nodes;
	*ret_flag = p.flag;
	return 0;
}

/* Silence of agents is judged as of the time of the bundle. */
static int read_bundle(const struct bundle_options *from, struct cluster_report *ret,
		       int64_t *ret_now_s, struct err *err)
{
	struct saved_bundle b;
	int r = bundle_load(from->path, ret->a, &b, err);

	if (r >= 0)
		r = cluster_report_objects(&b, ret->a, &ret->nodes, &ret->flag, err);
	if (r < 0)
		return r;
	(void)object_time_read(b.created, ret_now_s);
	if (!ret->nodes.n)
		return err_set(err, ENOENT, "%s: the bundle has no objects of a cluster",
			       from->path);
	return 0;
}

static int read_live(const struct cluster_report_options *o, struct cluster_report *ret,
		     struct err *err)
{
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	int r = cluster_client_open(&s, &o->client, ret->a, err);

	return r < 0 ? r : read_cluster(&s, ret, err);
}

static int report_make(const struct cluster_report_options *o, const struct bundle_options *from,
		       struct arena *a, struct cluster_report *ret, struct err *err)
{
	int64_t now_s = (int64_t)time(NULL);
	int r;

	*ret = (struct cluster_report){ .a = a };
	cluster_nodes_init(&ret->nodes, a);
	r = from->path ? read_bundle(from, ret, &now_s, err) : read_live(o, ret, err);
	if (r < 0)
		return r;
	cluster_nodes_sort(&ret->nodes);
	cluster_nodes_check(&ret->nodes, now_s, o->is_strict, &ret->findings);
	return 0;
}

/* Without notes. */
static size_t n_findings(const struct cluster_report *p)
{
	return p->findings.n - p->findings.n_notes;
}

static size_t count_of(const struct cluster_report *p, const struct cluster_node *node)
{
	size_t n = 0;

	for (size_t i = 0; i < p->findings.n; i++)
		n += p->findings.items[i].node == node && !p->findings.items[i].is_note;
	return n;
}

static size_t nodes_with_findings(const struct cluster_report *p)
{
	const struct cluster_node *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < p->findings.n; i++) {
		if (p->findings.items[i].is_note || p->findings.items[i].node == last)
			continue;
		last = p->findings.items[i].node;
		n++;
	}
	return n;
}

static const char *status_text(enum condition_status s)
{
	return s == CONDITION_TRUE    ? "True" :
	       s == CONDITION_FALSE   ? "False" :
	       s == CONDITION_UNKNOWN ? "Unknown" :
					"";
}

static struct str pending_text(const struct node_partition_status *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < s->n_pending; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? "," : "",
			      FMT_STR(pending_change_what(&s->pending[i])));
	return strbuf_str(&b);
}

/* CPUs of the guaranteed pool that no container owns. */
static struct str free_text(const struct node_partition_status *s, struct arena *a)
{
	for (size_t i = 0; i < s->n_pools; i++)
		if (str_eq(s->pools[i].name, STR("guaranteed")) && s->pools[i].free_cpus >= 0)
			return str_printf(a, "%lld", (long long)s->pools[i].free_cpus);
	return STR("");
}

static void add_row(struct table *t, const struct cluster_node *n)
{
	const struct node_partition_status *s = &n->partition.status;
	const struct str cells[] = {
		n->name,
		s->profile,
		s->management,
		s->shared,
		s->guaranteed,
		free_text(s, t->a),
		str_from(status_text(s->conditions[PARTITION_READY].status)),
		pending_text(s, t->a),
		s->agent_version,
	};
	struct str row[ARRAY_LEN(cells)];

	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		row[i] = table_or_dash(cells[i]);
	table_add(t, row);
}

static int print_status(const struct cluster_report *p, struct err *err)
{
	const struct str heading[] = {
		STR("NODE"), STR("PROFILE"), STR("MANAGEMENT"), STR("SHARED"), STR("GUARANTEED"),
		STR("FREE"), STR("READY"),   STR("PENDING"),	STR("AGENT"),
	};
	struct strbuf b;
	struct table t;

	strbuf_init(&b, p->a);
	strbuf_printf(&b, "cluster flag " PRI_STR ", %zu node%s, %zu with findings%s\n",
		      FMT_STR(p->flag.n ? p->flag : STR("not set")), p->nodes.n,
		      p->nodes.n == 1 ? "" : "s", nodes_with_findings(p),
		      n_findings(p) ? " (pinfold verify --cluster)" : "");
	table_init(&t, ARRAY_LEN(heading), p->a);
	table_add(&t, heading);
	for (size_t i = 0; i < p->nodes.n; i++)
		add_row(&t, &p->nodes.items[i]);
	strbuf_add(&b, table_format(&t));
	return output_readable(strbuf_str(&b), err);
}

static struct str result_text(const struct node_finding *f, struct arena *a)
{
	return str_printf(a, "%s%s", node_fault_name(f->fault), f->is_note ? " (note)" : "");
}

static int print_findings(const struct cluster_report *p, struct err *err)
{
	size_t next = 0;
	struct strbuf b;
	struct table t;

	strbuf_init(&b, p->a);
	table_init(&t, 3, p->a);
	table_add(&t, (struct str[]){ STR("NODE"), STR("RESULT"), STR("DETAIL") });
	for (size_t i = 0; i < p->nodes.n; i++) {
		const struct cluster_node *node = &p->nodes.items[i];

		if (!count_of(p, node))
			table_add(&t, (struct str[]){ node->name, STR("ok"), STR("-") });
		for (; next < p->findings.n && p->findings.items[next].node == node; next++)
			table_add(&t, (struct str[]){ node->name,
						      result_text(&p->findings.items[next], p->a),
						      p->findings.items[next].text });
	}
	strbuf_add(&b, table_format(&t));
	strbuf_printf(&b, PRI_STR ", " PRI_STR,
		      FMT_STR(str_count(p->a, p->nodes.n, "node", "nodes")),
		      FMT_STR(str_count(p->a, n_findings(p), "finding", "findings")));
	if (p->findings.n_notes)
		strbuf_printf(&b, ", " PRI_STR,
			      FMT_STR(str_count(p->a, p->findings.n_notes, "note", "notes")));
	strbuf_addc(&b, '\n');
	return output_readable(strbuf_str(&b), err);
}

static yyjson_mut_val *findings_to_doc(const struct cluster_report *p, yyjson_mut_doc *m)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < p->findings.n; i++) {
		const struct node_finding *f = &p->findings.items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("node"), f->node->name);
		doc_put_str(m, v, STR("level"), f->is_note ? STR("note") : STR("failure"));
		doc_put_str(m, v, STR("reason"), str_from(node_fault_name(f->fault)));
		doc_put_str(m, v, STR("message"), f->text);
	}
	return list;
}

static int node_to_doc(const struct cluster_node *n, yyjson_mut_doc *m, struct arena *a,
		       yyjson_mut_val *to, struct err *err)
{
	struct doc doc;
	struct str text;
	int r;

	doc_put_str(m, to, STR("name"), n->name);
	doc_put_bool(m, to, STR("exists"), n->exists);
	doc_put_bool(m, to, STR("nodeReady"), n->is_ready);
	doc_put_bool(m, to, STR("advertisesCores"), n->has_cores);
	if (!n->has_partition || !n->partition.has_status)
		return 0;
	r = node_partition_status_encode(&n->partition.status, a, &text, err);
	if (r >= 0)
		r = doc_parse(text, STR("status"), NULL, a, &doc, err);
	if (r >= 0)
		doc_put(m, to, STR("status"), yyjson_val_mut_copy(m, doc.root));
	return r;
}

static int print_doc(const struct cluster_report *p, bool with_status, enum output_format format,
		     struct err *err)
{
	yyjson_mut_doc *m = doc_build(p->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;

	doc_put_str(m, root, STR(NAME_PARTITIONING_KEY), p->flag);
	list = doc_put_arr(m, root, STR("nodes"));
	for (size_t i = 0; i < p->nodes.n; i++) {
		if (!with_status) {
			yyjson_mut_arr_append(list, doc_new_str(m, p->nodes.items[i].name));
			continue;
		}
		if (node_to_doc(&p->nodes.items[i], m, p->a, yyjson_mut_arr_add_obj(m, list), err) <
		    0)
			return -EINVAL;
	}
	doc_put(m, root, STR("findings"), findings_to_doc(p, m));
	return output_doc(root, format, p->a, err);
}

static int report_print(const struct cluster_report *p, enum output_format format, bool is_status,
			struct err *err)
{
	int r = format != OUTPUT_TABLE ? print_doc(p, is_status, format, err) :
		is_status	       ? print_status(p, err) :
					 print_findings(p, err);

	if (r < 0)
		return r;
	/* A cluster without nodes was not checked. */
	return n_findings(p) || !p->nodes.n ? EXIT_FINDING : EXIT_YES;
}

int cluster_report_status(const struct cluster_report_options *o, const struct bundle_options *from,
			  enum output_format format, struct arena *a, struct err *err)
{
	struct cluster_report p;
	int r = report_make(o, from, a, &p, err);

	return r < 0 ? r : report_print(&p, format, true, err);
}

int cluster_report_verify(const struct cluster_report_options *o, const struct bundle_options *from,
			  enum output_format format, struct arena *a, struct err *err)
{
	struct cluster_report p;
	int r = report_make(o, from, a, &p, err);

	return r < 0 ? r : report_print(&p, format, false, err);
}
