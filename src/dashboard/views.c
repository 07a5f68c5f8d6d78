#include "views.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "partition/cluster_nodes.h"
#include "partition/machine_groups.h"

/* --- a node in the list --- */

static void put_uses(yyjson_mut_doc *m, yyjson_mut_val *v, const struct node_partition_status *s)
{
	yyjson_mut_val *pools = doc_put_obj(m, v, STR("use"));

	for (size_t i = 0; i < s->n_pools; i++) {
		yyjson_mut_val *pool = doc_put_obj(m, pools, s->pools[i].name);

		doc_put_int(m, pool, STR("containers"), s->pools[i].containers);
		if (s->pools[i].requested_millicores >= 0)
			doc_put_int(m, pool, STR("requested"), s->pools[i].requested_millicores);
		if (s->pools[i].exclusive_cpus.n)
			doc_put_str(m, pool, STR("exclusive"), s->pools[i].exclusive_cpus);
		if (s->pools[i].free_cpus >= 0)
			doc_put_int(m, pool, STR("free"), s->pools[i].free_cpus);
	}
}

static void put_pending(yyjson_mut_doc *m, yyjson_mut_val *v, const struct node_partition *p)
{
	yyjson_mut_val *list = doc_put_arr(m, v, STR("pending"));

	for (size_t i = 0; i < p->status.n_pending; i++) {
		const struct pending_change *c = &p->status.pending[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("what"), pending_change_what(c));
		doc_put_str(m, item, STR("reason"), c->reason);
		doc_put_str(m, item, STR("message"), c->message);
		if (c->hash.n && str_eq(c->hash, p->granted))
			doc_put_bool(m, item, STR("granted"), true);
	}
}

static void put_status(yyjson_mut_doc *m, yyjson_mut_val *v, const struct cluster_node *n)
{
	const struct node_partition_status *s = &n->partition.status;

	doc_put_str(m, v, STR("agent"), s->agent_version);
	doc_put_str(m, v, STR("profile"), s->profile);
	doc_put_str(m, v, STR("source"), str_from(pools_origin_name(s->origin)));
	doc_put_str(m, v, STR("management"), s->management);
	doc_put_str(m, v, STR("shared"), s->shared);
	doc_put_str(m, v, STR("guaranteed"), s->guaranteed);
	doc_put_str(m, v, STR("online"), s->online);
	put_uses(m, v, s);
	put_pending(m, v, &n->partition);
}

static void put_findings(const struct shown_state *s, const struct cluster_node *n,
			 yyjson_mut_doc *m, yyjson_mut_val *v, struct arena *a)
{
	struct cluster_nodes one = { .a = a,
				     .n = 1,
				     .is_partitioned = s->is_partitioned,
				     .version = shown_state_version(s) };
	yyjson_mut_val *list = doc_put_arr(m, v, STR("findings"));
	struct cluster_node copy = *n;
	struct node_findings found;

	/* A machine without a cluster has no objects that could be missing. */
	if (!s->is_cluster)
		return;
	one.items = &copy;
	cluster_nodes_check(&one, s->now_ms / 1000, false, &found);
	for (size_t i = 0; i < found.n; i++) {
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("reason"),
			    str_from(node_fault_name(found.items[i].fault)));
		doc_put_str(m, item, STR("message"), found.items[i].text);
		if (found.items[i].is_note)
			doc_put_bool(m, item, STR("note"), true);
	}
}

static yyjson_mut_val *node_to_doc(const struct shown_state *s, const struct shown_node *n,
				   yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *v = yyjson_mut_obj(m);
	struct cluster_node facts;

	(void)shown_node_decode(n, a, &facts);
	doc_put_str(m, v, STR("name"), n->name);
	doc_put_int(m, v, STR("revision"), (int64_t)n->revision);
	doc_put_bool(m, v, STR("ready"), facts.is_ready || !s->is_cluster);
	doc_put_int(m, v, STR("pods"), (int64_t)n->n_pods);
	if (facts.has_partition)
		put_status(m, v, &facts);
	put_findings(s, &facts, m, v, a);
	return v;
}

static struct str write_text(yyjson_mut_val *root, struct arena *a)
{
	struct str text = STR("");

	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

struct str view_cluster(const struct shown_state *s, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;
	struct shown_node **all = shown_state_sorted(s, a);

	doc_put_bool(m, root, STR("cluster"), s->is_cluster);
	doc_put_bool(m, root, STR("complete"), s->is_complete);
	doc_put_bool(m, root, STR("partitioned"), s->is_partitioned);
	doc_put_int(m, root, STR("revision"), (int64_t)s->revision);
	doc_put_int(m, root, STR("pods"), (int64_t)s->n_pods);
	list = doc_put_arr(m, root, STR("nodes"));
	for (size_t i = 0; i < s->n_nodes; i++)
		yyjson_mut_arr_append(list, node_to_doc(s, all[i], m, a));
	return write_text(root, a);
}

struct str view_changes(struct shown_state *s, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *nodes, *removed;
	size_t n = s->n_removed + s->has_lost_removals;

	nodes = doc_put_arr(m, root, STR("nodes"));
	for (size_t i = 0; i < s->n_node_buckets; i++)
		for (struct shown_node *v = s->nodes[i]; v; v = v->next) {
			if (!v->is_changed)
				continue;
			v->is_changed = false;
			yyjson_mut_arr_append(nodes, node_to_doc(s, v, m, a));
			n++;
		}
	if (!n)
		return STR("");
	removed = doc_put_arr(m, root, STR("removed"));
	for (size_t i = 0; i < s->n_removed; i++) {
		yyjson_mut_arr_append(removed, doc_new_str(m, str_dup(a, s->removed[i])));
		free((char *)s->removed[i].p);
	}
	doc_put_bool(m, root, STR("all"), s->has_lost_removals);
	doc_put_bool(m, root, STR("complete"), s->is_complete);
	doc_put_int(m, root, STR("revision"), (int64_t)s->revision);
	doc_put_int(m, root, STR("pods"), (int64_t)s->n_pods);
	s->n_removed = 0;
	s->has_lost_removals = false;
	return write_text(root, a);
}

/* --- the CPUs of a node --- */

static int groups_from_doc(yyjson_val *list, struct arena *a, struct machine_group **ret,
			   size_t *ret_n)
{
	struct machine_group *groups = arena_array(a, struct machine_group, MACHINE_GROUPS_MAX);
	yyjson_val *v;
	size_t n = 0;

	DOC_EACH_ITEM (list, v) {
		if (n == MACHINE_GROUPS_MAX)
			return -E2BIG;
		(void)doc_int(doc_get(v, STR("socket")), &groups[n].socket);
		(void)doc_int(doc_get(v, STR("numaNode")), &groups[n].numa);
		(void)doc_int(doc_get(v, STR("cache")), &groups[n].cache);
		groups[n++].cores = doc_str(doc_get(v, STR("cores")));
	}
	*ret = groups;
	*ret_n = n;
	return n ? 0 : -ENODATA;
}

/* One CPU per core and one cache for each NUMA node. */
static int groups_from_numa(const struct node_partition_status *s, struct arena *a,
			    struct machine_group **ret, size_t *ret_n, struct err *err)
{
	struct machine_group *groups = arena_array(a, struct machine_group, s->n_numa + 1);
	const struct numa_use whole = { .cpus = s->online };
	const struct numa_use *numa = s->n_numa ? s->numa : &whole;
	size_t n = s->n_numa ? s->n_numa : 1;
	struct cpuset cpus;

	for (size_t i = 0; i < n; i++) {
		struct strbuf b;
		int r = cpuset_parse(numa[i].cpus, &cpus, err);

		if (r < 0)
			return r;
		strbuf_init(&b, a);
		CPUSET_FOREACH (cpu, &cpus)
			strbuf_printf(&b, "%s%u", b.n ? " " : "", cpu);
		groups[i] = (struct machine_group){ .numa = numa[i].id,
						    .cache = numa[i].id,
						    .cores = strbuf_str(&b) };
	}
	*ret = groups;
	*ret_n = n;
	return 0;
}

static int node_groups(const struct shown_node *n, struct arena *a, struct machine_group **ret,
		       size_t *ret_n, bool *ret_is_known, struct err *err)
{
	struct cluster_node facts;
	struct doc doc;

	*ret_is_known = true;
	if (n->topology.n && doc_parse(n->topology, STR("topology"), NULL, a, &doc, err) >= 0 &&
	    groups_from_doc(doc.root, a, ret, ret_n) >= 0)
		return 0;
	if (n->partition.n && doc_parse(n->partition, STR("partition"), NULL, a, &doc, err) >= 0 &&
	    groups_from_doc(doc_find(doc.root, "/status/topology"), a, ret, ret_n) >= 0)
		return 0;
	*ret_is_known = false;
	if (!shown_node_decode(n, a, &facts) || !facts.partition.status.online.n)
		return err_set(err, ENODATA, "the CPUs of node " PRI_STR " are not known",
			       FMT_STR(n->name));
	return groups_from_numa(&facts.partition.status, a, ret, ret_n, err);
}

int view_topology(const struct shown_node *n, struct arena *a, struct topology *ret,
		  bool *ret_is_known, struct err *err)
{
	struct machine_group *groups;
	size_t n_groups;
	int r = node_groups(n, a, &groups, &n_groups, ret_is_known, err);

	return r < 0 ? r : machine_groups_build(groups, n_groups, a, ret, err);
}

static void put_machine(const struct shown_node *n, yyjson_mut_doc *m, yyjson_mut_val *v,
			struct arena *a)
{
	yyjson_mut_val *list = doc_put_arr(m, v, STR("groups"));
	struct machine_group *groups;
	struct err err = { 0 };
	bool is_known = false;
	size_t n_groups = 0;

	if (node_groups(n, a, &groups, &n_groups, &is_known, &err) < 0)
		return;
	doc_put_bool(m, v, STR("coresKnown"), is_known);
	for (size_t i = 0; i < n_groups; i++) {
		yyjson_mut_val *g = yyjson_mut_arr_add_obj(m, list);
		struct str_split cores = str_split(groups[i].cores);
		yyjson_mut_val *of;
		struct str core;

		doc_put_int(m, g, STR("socket"), groups[i].socket);
		doc_put_int(m, g, STR("numa"), groups[i].numa);
		doc_put_int(m, g, STR("cache"), groups[i].cache);
		of = doc_put_arr(m, g, STR("cores"));
		while (str_next(&cores, ' ', &core))
			yyjson_mut_arr_append(of, doc_new_str(m, core));
	}
}

/* --- pods --- */

static void put_known(yyjson_mut_doc *m, yyjson_mut_val *v, struct str key, int32_t value)
{
	if (value >= 0)
		doc_put_int(m, v, key, value);
}

static yyjson_mut_val *pod_to_doc(const struct shown_pod *p, yyjson_mut_doc *m)
{
	yyjson_mut_val *v = yyjson_mut_obj(m), *list;

	doc_put_str(m, v, STR("namespace"), p->namespace);
	doc_put_str(m, v, STR("name"), p->name);
	doc_put_str(m, v, STR("node"), p->node);
	doc_put_str(m, v, STR("state"), p->state);
	list = doc_put_arr(m, v, STR("containers"));
	for (size_t i = 0; i < p->n; i++) {
		const struct shown_container *c = &p->containers[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("name"), c->name);
		doc_put_str(m, item, STR("kind"), str_from(container_kind_name(c->kind)));
		doc_put_str(m, item, STR("pool"), str_from(pool_name(c->pool)));
		doc_put_str(m, item, STR("cpus"), c->cpus);
		if (c->is_exclusive)
			doc_put_bool(m, item, STR("exclusive"), true);
		put_known(m, item, STR("millicores"), c->millicores);
		put_known(m, item, STR("shares"), c->shares);
		put_known(m, item, STR("quotaUs"), c->quota_us);
		put_known(m, item, STR("periodUs"), c->period_us);
	}
	return v;
}

yyjson_mut_val *view_pod(const struct shown_state *s, struct str namespace, struct str name,
			 yyjson_mut_doc *m)
{
	const struct stored_pod *p = shown_state_find_pod(s, namespace, name);

	return p ? pod_to_doc(&p->pod, m) : NULL;
}

struct str view_node(const struct shown_state *s, struct str name, struct arena *a)
{
	const struct shown_node *n = shown_state_find_node(s, name);
	yyjson_mut_doc *m = doc_build(a);
	const struct stored_pod *p;
	yyjson_mut_val *v, *list;

	if (!n)
		return STR("");
	v = node_to_doc(s, n, m, a);
	put_machine(n, m, v, a);
	list = doc_put_arr(m, v, STR("podList"));
	for (p = LIST_FIRST(&n->pods); p; p = LIST_NEXT(p, of_node))
		yyjson_mut_arr_append(list, pod_to_doc(&p->pod, m));
	if (n->use.n)
		doc_put(m, v, STR("measured"), yyjson_mut_rawn(m, n->use.p, n->use.n));
	return write_text(v, a);
}

static bool pod_matches(const struct shown_pod *p, struct str text, struct arena *a)
{
	if (!text.n || str_has(p->name, text) || str_has(p->namespace, text))
		return true;
	return memchr(text.p, '/', text.n) &&
	       str_has(str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(p->namespace), FMT_STR(p->name)),
		       text);
}

struct str view_pods(const struct shown_state *s, struct str text, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list = doc_put_arr(m, root, STR("pods"));
	CLEANUP(arena_done) struct arena scratch;
	size_t n = 0;

	arena_init(&scratch, 0);
	for (size_t i = 0; i < s->n_pod_buckets; i++)
		for (const struct stored_pod *p = s->pods[i]; p; p = p->next) {
			arena_reset(&scratch);
			if (pod_matches(&p->pod, text, &scratch) && n++ < VIEW_PODS_MAX)
				yyjson_mut_arr_append(list, pod_to_doc(&p->pod, m));
		}
	doc_put_int(m, root, STR("found"), (int64_t)n);
	return write_text(root, a);
}
