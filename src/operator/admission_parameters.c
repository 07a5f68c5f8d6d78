/* The object is replaced as a whole and created by server-side apply, like the digest of
 * permissions: who writes it decides about admission. */

#include "admission_parameters.h"

#include "admission/admission_state.h"
#include "base/arena.h"
#include "kube/names.h"
#include "snapshot.h"
#include "writes.h"

#define INTERVAL_MS 1000 /* many nodes change at once */

/* The cores of one workload type. */
struct type_count {
	struct str type;
	struct cores_count count;
};

struct cluster_cores {
	struct type_count types[64]; /* further types stay unconverted */
	size_t n, n_available;
};

static bool is_available(const struct operator_node *node, const struct node_facts *f)
{
	/* The store keeps the status of the condition alone (kinds.c); without one the node
	 * counts, as for the webhook. */
	return f->is_available && (node->is_ready || !doc_find(node->object, "/status/ready"));
}

static void count_node(struct cluster_cores *c, const struct operator_node *node,
		       bool is_node_available)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (doc_find(node->object, "/status/allocatable"), key, value) {
		struct str type = value ? cores_type_of(key) : STR("");
		size_t i = 0;

		while (i < c->n && !str_eq(c->types[i].type, type))
			i++;
		if (!type.n || i == sizeof(c->types) / sizeof(c->types[0]))
			continue;
		if (i == c->n)
			c->types[c->n++] = (struct type_count){ .type = type };
		c->types[i].count.n++;
		c->types[i].count.n_available += is_node_available;
	}
}

static struct infrastructure_status find_infrastructure(const struct operator_snapshot *s)
{
	const struct stored_object *o =
		object_store_find(&s->stores[OPERATOR_INFRASTRUCTURES], STR(NAME_INFRASTRUCTURE));

	if (!o)
		return (struct infrastructure_status){ 0 };
	return infrastructure_status_of(operator_stored_object(o, s->arena));
}

static struct str workloads_of(const struct infrastructure_status *i, bool is_reporting)
{
	if (!i->is_present || !i->has_status)
		return STR("");
	if (i->is_partitioned)
		return STR(NAME_WORKLOADS_ON);
	/* Before any node reports, a single one may still get the resource: no warning then, as
	 * with the flag off. */
	return i->is_single && is_reporting ? STR(NAME_WORKLOADS_SINGLE) : STR(NAME_WORKLOADS_OFF);
}

static int by_type(const void *a, const void *b)
{
	return str_cmp(((const struct type_count *)a)->type, ((const struct type_count *)b)->type);
}

/* check_cores() of admission/management.c: a converted pod must not wait for a node that will not
 * come by itself (D19). */
static bool can_convert(const struct type_count *t, const struct cluster_cores *c)
{
	return t->count.n_available || (t->count.n && !c->n_available);
}

static struct str list_types(const struct cluster_cores *c, bool only_now, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < c->n; i++)
		if (!only_now || can_convert(&c->types[i], c))
			strbuf_printf(&b, "%s" PRI_STR, strbuf_str(&b).n ? "," : "",
				      FMT_STR(c->types[i].type));
	return strbuf_str(&b);
}

/* A line for each set of taints, the taints separated by blanks. False when some node has none: no
 * pod is counted then. */
static bool list_taints(const struct node_group *groups, size_t n, struct arena *a, struct str *ret)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++) {
		struct str_split lines = str_split(str_trim(groups[i].taints));
		struct str taint;
		const char *separator = i ? "\n" : "";

		if (!groups[i].taints.n)
			return false;
		while (str_next(&lines, '\n', &taint)) {
			strbuf_printf(&b, "%s" PRI_STR, separator, FMT_STR(taint));
			separator = " ";
		}
	}
	*ret = strbuf_str(&b);
	return true;
}

struct admission_parameters admission_parameters_of(const struct operator_snapshot *s)
{
	const struct infrastructure_status infrastructure = find_infrastructure(s);
	struct admission_parameters p = { 0 };
	struct node_group groups[NODE_GROUPS_MAX];
	struct cluster_cores cores = { .n = 0 };
	size_t n_groups = 0, n_shared = 0, n_reporting = 0;

	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct operator_node *node = &s->nodes[i];
		const struct node_facts f = node_facts_of(node->object, s->arena);
		const bool available = is_available(node, &f);

		cores.n_available += available;
		n_shared += f.has_shared;
		n_reporting += f.is_reporting;
		count_node(&cores, node, available);
		if (available && !f.has_shared)
			node_groups_add(groups, &n_groups, node->name, f.taints);
	}
	qsort(cores.types, cores.n, sizeof(cores.types[0]), by_type);
	p.workloads = workloads_of(&infrastructure, n_reporting > 0);
	p.types = list_types(&cores, true, s->arena);
	p.reported_types = list_types(&cores, false, s->arena);
	p.pools = s->counts_pools && n_shared &&
		  list_taints(groups, n_groups, s->arena, &p.taints_without_pool);
	return p;
}

static const struct object_ref parameters_ref = { .api = STR_INIT("v1"),
						  .resource = STR_INIT("configmaps"),
						  .namespace = STR_INIT(NAME_PERMISSIONS_NAMESPACE),
						  .name = STR_INIT(NAME_PARAMETERS) };

static yyjson_mut_val *to_data(const struct admission_parameters *p, yyjson_mut_doc *m)
{
	yyjson_mut_val *data = yyjson_mut_obj(m);

	doc_put_str(m, data, STR(NAME_PARAMETER_WORKLOADS), p->workloads);
	doc_put_str(m, data, STR(NAME_PARAMETER_TYPES), p->types);
	doc_put_str(m, data, STR(NAME_PARAMETER_REPORTED), p->reported_types);
	doc_put_str(m, data, STR(NAME_PARAMETER_POOLS),
		    p->pools ? STR(NAME_POOLS_ON) : STR(NAME_POOLS_OFF));
	doc_put_str(m, data, STR(NAME_PARAMETER_WITHOUT_POOL), p->taints_without_pool);
	return data;
}

static struct str body_of(yyjson_mut_doc *m, yyjson_mut_val *data, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta;
	struct str text = STR("");

	doc_put_str(m, root, STR("apiVersion"), STR("v1"));
	doc_put_str(m, root, STR("kind"), STR("ConfigMap"));
	meta = doc_put_obj(m, root, STR("metadata"));
	doc_put_str(m, meta, STR("namespace"), parameters_ref.namespace);
	doc_put_str(m, meta, STR("name"), parameters_ref.name);
	doc_put(m, root, STR("data"), data);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

/* Whether the object has exactly these members. */
static bool is_current(yyjson_val *object, yyjson_mut_val *data)
{
	yyjson_val *have = doc_get(object, STR("data"));
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(data);
	yyjson_mut_val *key;

	if (yyjson_obj_size(have) != yyjson_mut_obj_size(data))
		return false;
	while ((key = yyjson_mut_obj_iter_next(&it)))
		if (!str_eq(doc_str(doc_get(have, doc_mut_str(key))),
			    doc_mut_str(yyjson_mut_obj_iter_get_val(key))))
			return false;
	return true;
}

void reconcile_admission_parameters(const struct operator_snapshot *s, struct operator_writes *w)
{
	const struct object_store *store = &s->stores[OPERATOR_PARAMETERS];
	const struct admission_parameters p = admission_parameters_of(s);
	yyjson_mut_doc *m = doc_build(s->arena);
	yyjson_mut_val *data = to_data(&p, m);
	struct operator_write *write;

	if (store->n && is_current(operator_stored_object(&store->items[0], s->arena), data))
		return;
	write = operator_writes_add(w);
	write->key = STR("parameters of admission policies");
	write->what = "admission parameters";
	write->interval_ms = INTERVAL_MS;
	write->kind = OPERATOR_PARAMETERS;
	write->object = STR(NAME_PERMISSIONS_NAMESPACE "/" NAME_PARAMETERS);
	write->request = operator_replace_request(&parameters_ref, store->n > 0,
						  body_of(m, data, s->arena), s->arena);
}
