#include "cluster_report.h"

#include <errno.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "command.h"
#include "kube/names.h"
#include "partition/cluster_nodes.h"

struct cluster_report {
	struct cluster_nodes nodes;
	struct node_findings findings;
	struct str flag; /* status.cpuPartitioning; "": no Infrastructure */
	struct arena *a;
};

int cluster_report_check(const struct cluster_report_options *o, struct err *err)
{
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
	return cluster_nodes_add_partition(context, object, err);
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

static int report_make(const struct cluster_report_options *o, struct arena *a,
		       struct cluster_report *ret, struct err *err)
{
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	int r = cluster_client_open(&s, &o->client, a, err);

	*ret = (struct cluster_report){ .a = a };
	cluster_nodes_init(&ret->nodes, a);
	if (r == 0)
		r = read_cluster(&s, ret, err);
	if (r < 0)
		return r;
	cluster_nodes_sort(&ret->nodes);
	cluster_nodes_check(&ret->nodes, (int64_t)time(NULL), &ret->findings);
	return 0;
}

static size_t count_of(const struct cluster_report *p, const struct cluster_node *node)
{
	size_t n = 0;

	for (size_t i = 0; i < p->findings.n; i++)
		n += p->findings.items[i].node == node;
	return n;
}

static size_t nodes_with_findings(const struct cluster_report *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->findings.n; i++)
		n += i == 0 || p->findings.items[i].node != p->findings.items[i - 1].node;
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
		strbuf_printf(&b, "%s%s", i ? "," : "", pending_need_name(s->pending[i].need));
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
		      p->findings.n ? " (pinfold verify --cluster)" : "");
	table_init(&t, ARRAY_LEN(heading), p->a);
	table_add(&t, heading);
	for (size_t i = 0; i < p->nodes.n; i++)
		add_row(&t, &p->nodes.items[i]);
	strbuf_add(&b, table_format(&t));
	return output_text(strbuf_str(&b), err);
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
						      str_from(node_fault_name(
							      p->findings.items[next].fault)),
						      p->findings.items[next].text });
	}
	strbuf_add(&b, table_format(&t));
	strbuf_printf(&b, "%zu node%s, %zu finding%s\n", p->nodes.n, p->nodes.n == 1 ? "" : "s",
		      p->findings.n, p->findings.n == 1 ? "" : "s");
	return output_text(strbuf_str(&b), err);
}

static yyjson_mut_val *findings_to_doc(const struct cluster_report *p, yyjson_mut_doc *m)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < p->findings.n; i++) {
		const struct node_finding *f = &p->findings.items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("node"), f->node->name);
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

static int report_print(const struct cluster_report_options *o, enum output_format format,
			bool is_status, struct arena *a, struct err *err)
{
	struct cluster_report p;
	int r = report_make(o, a, &p, err);

	if (r < 0)
		return r;
	r = format != OUTPUT_TABLE ? print_doc(&p, is_status, format, err) :
	    is_status		   ? print_status(&p, err) :
				     print_findings(&p, err);
	if (r < 0)
		return r;
	/* A cluster without nodes was not checked. */
	return p.findings.n || !p.nodes.n ? EXIT_FINDING : EXIT_YES;
}

int cluster_report_status(const struct cluster_report_options *o, enum output_format format,
			  struct arena *a, struct err *err)
{
	return report_print(o, format, true, a, err);
}

int cluster_report_verify(const struct cluster_report_options *o, enum output_format format,
			  struct arena *a, struct err *err)
{
	return report_print(o, format, false, a, err);
}
