#include "what_if.h"

#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "codec/yaml.h"
#include "cpu/topology.h"
#include "distro/distro.h"
#include "kube/names.h"
#include "partition/cluster_nodes.h"
#include "partition/node_profile.h"
#include "partition/profile_select.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/plan.h"
#include "render/rendered_check.h"
#include "views.h"

/* One side of the comparison. */
struct side {
	struct manifests manifests;
	struct problem_list problems;
	struct layout layout;
	struct file_set files;
};

struct question {
	const struct shown_state *s;
	const struct shown_node *node;
	struct arena *a;
	struct topology topology;
	bool has_topology;
	struct side before, after;
	struct plan plan;
};

/* --- the profile in force --- */

static struct str pools_as_profile(const struct shown_node *n, struct arena *a)
{
	struct cluster_node facts;
	const struct node_partition_status *s = &facts.partition.status;
	struct strbuf b;

	(void)shown_node_decode(n, a, &facts);
	strbuf_init(&b, a);
	strbuf_printf(&b,
		      "apiVersion: " NAME_PROFILE_API "\nkind: " NAME_PROFILE_KIND
		      "\nmetadata:\n  name: present\nspec:\n  cpu:\n    reserved: \"" PRI_STR
		      "\"\n    isolated: \"" PRI_STR "\"\n",
		      FMT_STR(s->management), FMT_STR(s->guaranteed));
	if (s->shared.n)
		strbuf_printf(&b, "    shared: \"" PRI_STR "\"\n", FMT_STR(s->shared));
	strbuf_add(&b, STR("  nodeSelector:\n    " NAME_NODE_ROLE_PREFIX "worker: \"\"\n"));
	return strbuf_str(&b);
}

/* What a person would write: without status and what the API server fills in. */
static int as_written(yyjson_val *object, struct arena *a, struct str *ret, struct err *err)
{
	static const char *const kept[] = { "name", "labels", "annotations" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta;
	yyjson_val *v;

	doc_put_str(m, root, STR("apiVersion"), STR(NAME_PROFILE_API));
	doc_put_str(m, root, STR("kind"), STR(NAME_PROFILE_KIND));
	meta = doc_put_obj(m, root, STR("metadata"));
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		v = doc_get(doc_get(object, STR("metadata")), str_from(kept[i]));
		if (v)
			doc_put(m, meta, str_from(kept[i]), yyjson_val_mut_copy(m, v));
	}
	v = doc_get(object, STR("spec"));
	if (v)
		doc_put(m, root, STR("spec"), yyjson_val_mut_copy(m, v));
	return yaml_write(root, a, ret, err);
}

static struct str profile_name(const struct shown_node *n, struct arena *a)
{
	struct cluster_node facts;

	(void)shown_node_decode(n, a, &facts);
	return facts.partition.status.profile;
}

int what_if_present(const struct shown_state *s, const struct shown_node *node, struct arena *a,
		    struct str *ret, struct err *err)
{
	const struct shown_profile *p = shown_state_find_profile(s, profile_name(node, a));
	struct doc doc;
	int r;

	/* A machine has one profile at most. */
	if (!p && !s->is_cluster && s->n_profiles == 1)
		p = &s->profiles[0];
	if (!p) {
		*ret = pools_as_profile(node, a);
		return 0;
	}
	r = doc_parse(p->json, p->name, NULL, a, &doc, err);
	return r < 0 ? r : as_written(doc.root, a, ret, err);
}

/* --- the pods of the node --- */

static void put_amounts(yyjson_mut_doc *m, yyjson_mut_val *c, const struct shown_container *of,
			bool is_guaranteed, struct arena *a)
{
	yyjson_mut_val *resources = doc_put_obj(m, c, STR("resources"));

	if (of->millicores <= 0 && !is_guaranteed)
		return;
	for (int i = 0; i < (is_guaranteed ? 2 : 1); i++) {
		yyjson_mut_val *v = doc_put_obj(m, resources, i ? STR("limits") : STR("requests"));

		doc_put_str(m, v, STR(NAME_CPU), str_printf(a, "%" PRId32 "m", of->millicores));
		if (is_guaranteed)
			doc_put_str(m, v, STR(NAME_MEMORY), STR("1Mi"));
	}
}

/* A pod with the requests that `plan` counts; the rest of it does not matter there. */
static yyjson_mut_val *pod_for_plan(const struct shown_pod *p, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta, *spec, *lists[2];
	bool is_management = false, is_guaranteed = false;

	for (size_t i = 0; i < p->n; i++) {
		is_management |= p->containers[i].pool == POOL_MANAGEMENT;
		is_guaranteed |= p->containers[i].is_exclusive;
	}
	doc_put_str(m, root, STR("apiVersion"), STR("v1"));
	doc_put_str(m, root, STR("kind"), STR("Pod"));
	meta = doc_put_obj(m, root, STR("metadata"));
	doc_put_str(m, meta, STR("name"), p->name);
	doc_put_str(m, meta, STR("namespace"), p->namespace);
	if (is_management)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")),
			    STR(NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT), STR(NAME_TARGET_VALUE));
	spec = doc_put_obj(m, root, STR("spec"));
	doc_put_str(m, spec, STR("nodeName"), p->node);
	lists[0] = doc_put_arr(m, spec, STR("initContainers"));
	lists[1] = doc_put_arr(m, spec, STR("containers"));
	for (size_t i = 0; i < p->n; i++) {
		const enum container_kind kind = p->containers[i].kind;
		yyjson_mut_val *c = yyjson_mut_arr_add_obj(m, lists[kind >= CONTAINER_APP]);

		doc_put_str(m, c, STR("name"), p->containers[i].name);
		if (kind == CONTAINER_SIDECAR)
			doc_put_str(m, c, STR("restartPolicy"), STR("Always"));
		put_amounts(m, c, &p->containers[i], is_guaranteed, a);
	}
	return root;
}

static void add_pods(struct question *q)
{
	yyjson_mut_doc *m = doc_build(q->a);
	const struct stored_pod *p;

	for (p = LIST_FIRST(&q->node->pods); p; p = LIST_NEXT(p, of_node)) {
		struct doc *doc = arena_new(q->a, struct doc);

		doc->root = doc_freeze(pod_for_plan(&p->pod, m, q->a), q->a);
		manifest_list_add(&q->after.manifests.pods, q->a,
				  (struct manifest){ doc, doc->root });
	}
}

/* --- the comparison --- */

static int read_side(struct question *q, struct side *side, struct str text, struct str file,
		     struct err *err)
{
	const struct pool_topology topology = { .topology = &q->topology };
	const struct layout_options layout = { .topologies = &topology,
					       .n_topologies = q->has_topology,
					       .plain_hosts = true,
					       .without_kubelet = !q->s->is_cluster,
					       .allow_split_cores = true };
	const struct host_options host = { .distro = distro_get(DISTRO_KUBEADM),
					   .kubelet = { .strict_reservation = true } };
	struct manifest_list list = { 0 };
	struct doc_list docs;
	struct err why = { 0 };

	manifests_init(&side->manifests, q->a);
	problem_list_init(&side->problems, q->a);
	file_set_init(&side->files, q->a);
	if (manifest_parse(text, file, q->a, &docs, &why) < 0) {
		problem_from_err(&side->problems, &why);
		return 0;
	}
	manifest_list_add_docs(&list, q->a, &docs);
	manifests_add(&side->manifests, &list, &side->problems);
	if (side->manifests.profiles.n != 1)
		problem_error(&side->problems, PROBLEM_AT(NULL, NULL, ""),
			      "the text has %zu PerformanceProfiles; one is needed",
			      side->manifests.profiles.n);
	if (side->problems.n_errors)
		return 0;
	layout_resolve(&side->manifests, &layout, q->a, &side->layout, &side->problems);
	for (size_t i = 0; !side->problems.n_errors && i < side->layout.n_partitions; i++)
		rendered_check(&side->layout.partitions[i], q->a, &side->problems);
	if (side->problems.n_errors)
		return 0;
	return host_render(&side->layout, &host, &side->files, &side->problems, err);
}

static size_t count_nodes(const struct question *q)
{
	yyjson_val *profile = q->after.manifests.profiles.items[0].object;
	CLEANUP(arena_done) struct arena a;
	size_t n = 0;

	arena_init(&a, 0);
	for (size_t i = 0; i < q->s->n_node_buckets; i++)
		for (const struct shown_node *v = q->s->nodes[i]; v; v = v->next) {
			struct doc doc;

			arena_reset(&a);
			if (v->node.n && doc_parse(v->node, STR(""), NULL, &a, &doc, NULL) >= 0)
				n += profile_selects_node(profile,
							  doc_find(doc.root, "/metadata/labels"));
		}
	return n;
}

static void put_pools(struct question *q, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	const struct partition *part = &q->after.layout.partitions[0];
	struct problem_list more;
	struct pool_config config;
	struct cpuset shared, guaranteed;
	yyjson_mut_val *v;

	problem_list_init(&more, q->a);
	if (!q->has_topology || !partition_pools(part, &config, &more)) {
		for (size_t i = 0; i < more.n; i++)
			problem_add(&q->after.problems, more.items[i].level,
				    PROBLEM_AT(NULL, NULL, str_cstr(q->a, more.items[i].field)),
				    PRI_STR, FMT_STR(more.items[i].text));
		return;
	}
	pool_config_shared(&config, &q->topology, &shared);
	pool_config_guaranteed(&config, &q->topology, &guaranteed);
	v = doc_put_obj(m, root, STR("pools"));
	doc_put_str(m, v, STR("management"), cpuset_format(&config.reserved, q->a));
	doc_put_str(m, v, STR("shared"), cpuset_format(&shared, q->a));
	doc_put_str(m, v, STR("guaranteed"), cpuset_format(&guaranteed, q->a));
}

static void put_plan(const struct question *q, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	const struct plan *plan = &q->plan;
	yyjson_mut_val *list = doc_put_arr(m, root, STR("files"));

	for (size_t i = 0; i < plan->n_files; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("path"), plan->files[i].path);
		doc_put_str(m, v, STR("change"), str_from(plan_change_name(plan->files[i].change)));
		doc_put_str(m, v, STR("effect"), str_from(plan_effect_name(plan->files[i].effect)));
		doc_put_str(m, v, STR("reason"), str_from(plan->files[i].why));
	}
	list = doc_put_arr(m, root, STR("pods"));
	for (size_t i = 0; i < plan->n_pools; i++) {
		const struct plan_pool *pool = &plan->pools[i];

		doc_put_str(m, root, STR("effect"), str_from(plan_effect_name(pool->effect)));
		for (size_t k = 0; k < pool->n_pods; k++) {
			yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

			doc_put_str(m, v, STR("namespace"), pool->pods[k].namespace);
			doc_put_str(m, v, STR("name"), pool->pods[k].name);
			doc_put_str(m, v, STR("class"), str_from(pool->pods[k].class));
			doc_put_bool(m, v, STR("fits"), pool->pods[k].fits);
			doc_put_str(m, v, STR("reason"), pool->pods[k].why);
		}
	}
}

static int answer(struct question *q, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(q->a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	const bool is_valid = !q->after.problems.n_errors && q->after.layout.n_partitions;

	if (is_valid)
		put_pools(q, m, root);
	if (is_valid && !q->after.problems.n_errors) {
		add_pods(q);
		plan_make(&q->before.files, &q->after.files, &q->after.layout, &q->after.manifests,
			  q->a, &q->plan);
		put_plan(q, m, root);
		doc_put_int(m, root, STR("nodes"), (int64_t)count_nodes(q));
	}
	problem_list_sort(&q->after.problems);
	doc_put(m, root, STR("problems"), problem_list_to_doc(&q->after.problems, m));
	return doc_write(root, false, q->a, ret, err);
}

int what_if(const struct shown_state *s, const struct shown_node *node, struct str profile,
	    struct arena *a, struct str *ret, struct err *err)
{
	struct question *q = arena_new(a, struct question);
	struct str present;
	bool is_known;
	int r;

	q->s = s;
	q->node = node;
	q->a = a;
	q->has_topology = view_topology(node, a, &q->topology, &is_known, NULL) >= 0;
	r = what_if_present(s, node, a, &present, err);
	if (r >= 0)
		r = read_side(q, &q->before, present, STR("present"), err);
	if (r >= 0)
		r = read_side(q, &q->after, profile, STR("profile"), err);
	if (r >= 0)
		r = answer(q, ret, err);
	return r;
}
