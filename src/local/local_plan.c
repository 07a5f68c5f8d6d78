/* The plan of a whole directory: the pools from its profile, a cluster state for admission from its
 * objects, then one pod after the other (local_plan_pod.c). Problems of the input are collected, so
 * that one call reports all of them. */

#include "local_plan.h"

#include <errno.h>

#include "admission/defaults.h"
#include "base/arena.h"
#include "base/err.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "local_plan_private.h"
#include "partition/node_profile.h"
#include "profile/layout.h"

#define REPLICAS_MAX 1000 /* a kubelet runs 110 pods by default */

/* --- the profile --- */

bool local_plan_config(const struct local_plan_input *in, struct arena *a, struct pool_config *ret,
		       struct problem_list *p)
{
	struct pool_topology machine = { .topology = in->topology };
	struct layout_options options = { .topologies = &machine,
					  .n_topologies = 1,
					  .plain_hosts = true,
					  .without_kubelet = true,
					  .allow_split_cores = true };
	struct layout layout = { 0 };

	layout_resolve(in->manifests, &options, a, &layout, p);
	if (p->n_errors)
		return false;
	if (layout.n_partitions == 0) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      "no PerformanceProfile for this machine, exactly one is needed: "
			      "'pinfold profile suggest >profile.yaml', in the directory of the "
			      "manifests, writes one that fits");
		return false;
	}
	if (layout.n_partitions != 1) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      "%zu PerformanceProfiles for this machine: exactly one is needed",
			      layout.n_partitions);
		return false;
	}
	return partition_pools(&layout.partitions[0], ret, p);
}

/* --- cluster objects for admission --- */

static void put_quantity(yyjson_mut_doc *m, yyjson_mut_val *list, const char *name, int64_t n,
			 struct arena *a)
{
	doc_put_str(m, list, str_from(name), str_printf(a, "%lld", (long long)n));
}

/* A Node object for this machine, with the resources of its pools: admission decides by them (D3,
 * D12). Node objects of the directory are other machines and are left out. */
static yyjson_val *build_node(const struct ledger *l, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *node = yyjson_mut_obj(m), *status, *allocatable;
	struct ledger_capacity capacity;

	ledger_capacity(l, &capacity);
	doc_put_str(m, node, STR("apiVersion"), STR("v1"));
	doc_put_str(m, node, STR("kind"), STR("Node"));
	doc_put_str(m, doc_put_obj(m, node, STR("metadata")), STR("name"), STR("local"));
	status = doc_put_obj(m, node, STR("status"));
	allocatable = doc_put_obj(m, status, STR("allocatable"));
	put_quantity(m, allocatable, NAME_MANAGEMENT_CORES, capacity.management_milli, a);
	for (size_t i = 0; i < l->now.config.n_types; i++)
		if (!str_eq(str_from(l->now.config.types[i].name), STR(NAME_TYPE_MANAGEMENT)))
			put_quantity(m, allocatable,
				     str_cstr(a, str_printf(a, "%s" NAME_CORES_SUFFIX,
							    l->now.config.types[i].name)),
				     capacity.management_milli, a);
	put_quantity(m, allocatable, NAME_SHARED_CPUS, capacity.shared_milli, a);
	put_quantity(m, allocatable, NAME_GUARANTEED_CPUS, capacity.guaranteed_milli, a);
	yyjson_mut_obj_add_val(m, status, "capacity", yyjson_mut_val_mut_copy(m, allocatable));
	return doc_freeze(node, a);
}

static int read_cluster(const struct local_plan_input *in, const struct ledger *l, struct arena *a,
			struct state_manifests *ret, struct err *err)
{
	const struct manifest_list *all = &in->manifests->all;
	int r = 0;

	state_manifests_init(ret, a);
	for (size_t i = 0; r >= 0 && i < all->n; i++)
		if (!str_eq(object_kind(all->items[i].object), STR("Node")))
			r = state_manifests_add(ret, all->items[i].object, err);
	if (r >= 0)
		r = state_manifests_add(ret, build_node(l, a), err);
	if (r < 0)
		return r;
	ret->state.settings.pools = !l->now.config.is_classic;
	state_manifests_seal(ret);
	return 0;
}

/* --- all pods --- */

/* Pods of kinds with replicas have a number, also with one replica, so that adding a second one
 * does not rename the first. */
static bool is_numbered(struct str kind)
{
	return str_eq(kind, STR("Deployment")) || str_eq(kind, STR("StatefulSet")) ||
	       str_eq(kind, STR("ReplicaSet")) || str_eq(kind, STR("ReplicationController"));
}

/* False when spec.replicas is not a valid number. */
static bool read_replicas(const struct manifest *m, int64_t *ret)
{
	yyjson_val *v = doc_find(m->object, "/spec/replicas");
	struct str kind = object_kind(m->object);

	*ret = 1;
	if (!v || !is_numbered(kind))
		return true;
	return doc_int(v, ret) && *ret >= 0 && *ret <= REPLICAS_MAX;
}

static struct candidate make_candidate(struct planner *pl, const struct manifest *m,
				       const struct pod *pod, int64_t index)
{
	struct candidate c = { .at = *m, .namespace = pod_namespace(pod), .name = pod_name(pod) };

	if (is_numbered(pod->kind))
		c.name = str_printf(pl->a, PRI_STR "-%lld", FMT_STR(c.name), (long long)index);
	c.uid = str_printf(pl->a, PRI_STR "/" PRI_STR, FMT_STR(c.namespace), FMT_STR(c.name));
	return c;
}

/* The names become parts of cgroup paths. */
static bool check_pod_name(struct planner *pl, const struct candidate *c)
{
	if (local_name_is_valid(c->namespace, LOCAL_LABEL_MAX) &&
	    local_name_is_valid(c->name, LOCAL_POD_MAX))
		return true;
	problem_error(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "metadata"),
		      "\"" PRI_STR "/" PRI_STR "\" is not a valid pod name", FMT_STR(c->namespace),
		      FMT_STR(c->name));
	return false;
}

/* Errors of the manifest go to the planner's problems, and the next manifest is read. */
static int add_workload(struct planner *pl, const struct manifest *m, struct err *err)
{
	yyjson_val *pod;
	struct pod view;
	int64_t n;
	int r;

	if (str_eq(object_kind(m->object), STR("CronJob"))) {
		problem_warn(pl->p, PROBLEM_AT(m->doc, m->object, NULL),
			     "CronJobs are not supported by pinfold local, ignoring");
		return 0;
	}
	if (!read_replicas(m, &n)) {
		problem_error(pl->p, PROBLEM_AT(m->doc, m->object, "spec.replicas"),
			      "not a number from 0 to %d", REPLICAS_MAX);
		return 0;
	}
	r = pod_from_workload(m->object, pl->a, &pod, err);
	if (r < 0) {
		problem_error(pl->p, PROBLEM_AT(m->doc, m->object, NULL), "%s", err->msg);
		return 0;
	}
	(void)pod_from_object(m->object, &view); /* for the name of the workload */
	for (int64_t i = 0; r >= 0 && i < n; i++) {
		struct candidate c = make_candidate(pl, m, &view, i);

		if (!check_pod_name(pl, &c))
			break;
		r = plan_add_pod(pl, &c, pod, err);
	}
	return r;
}

/* Whether a manifest describes the pod, with the name that it will get. */
static bool has_manifest(struct planner *pl, struct str uid)
{
	const struct manifest_list *all = &pl->in->manifests->all;

	for (size_t i = 0; i < all->n; i++) {
		struct pod pod;
		int64_t n;

		if (!pod_from_object(all->items[i].object, &pod))
			continue;
		if (!read_replicas(&all->items[i], &n))
			continue;
		for (int64_t k = 0; k < n; k++)
			if (str_eq(make_candidate(pl, &all->items[i], &pod, k).uid, uid))
				return true;
	}
	return false;
}

/* Before anything is placed, so that new pods can get the CPUs of removed ones. */
static int release_removed_pods(struct planner *pl, struct err *err)
{
	size_t i = 0;

	while (i < pl->ledger->n) {
		/* A copy: the release removes the assignment. The next one then has its index. */
		struct str uid = str_dup(pl->a, pl->ledger->items[i]->pod_uid);
		int r;

		if (has_manifest(pl, uid)) {
			i++;
			continue;
		}
		r = ledger_release_pod(pl->ledger, uid, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void check_duplicates(struct planner *pl)
{
	for (size_t i = 0; i < pl->plan->n; i++) {
		const struct local_container *c = &pl->plan->containers[i];
		size_t k = 0;

		while (k < i && !local_container_same(c, &pl->plan->containers[k]))
			k++;
		if (k < i)
			problem_error(pl->p, PROBLEM_AT(NULL, NULL, NULL),
				      "container " PRI_STR " is defined twice",
				      FMT_STR(local_container_id(c, pl->a)));
	}
}

/* In classic mode the shared pool is known only when all exclusive CPUs are assigned. */
static void set_pool_cpus(struct planner *pl)
{
	for (size_t i = 0; i < pl->plan->n; i++) {
		struct local_container *c = &pl->plan->containers[i];

		if (!c->is_exclusive)
			local_container_set_cpus(c, pl->ledger);
	}
}

/* Reports every container that blocks the resize, then fails. */
static int resize_pools(struct planner *pl, const struct pool_config *config, struct err *err)
{
	struct ledger_resize_plan plan;
	int r;

	if (pool_config_eq(&pl->ledger->now.config, config))
		return 0;
	r = ledger_plan_resize(pl->ledger, config, pl->a, &plan, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan.n_conflicts; i++) {
		const struct assignment *holder = plan.conflicts[i].assignment;

		problem_error(pl->p, PROBLEM_AT(NULL, NULL, NULL),
			      "the new profile takes CPUs " PRI_STR " from " PRI_STR "/" PRI_STR
			      ", which owns them: remove that pod first",
			      FMT_STR(cpuset_format(&plan.conflicts[i].cpus, pl->a)),
			      FMT_STR(holder->pod_uid), FMT_STR(holder->container));
	}
	return plan.n_conflicts ? -EBUSY : ledger_resize(pl->ledger, config, err);
}

static int plan_all(struct planner *pl, const struct pool_config *config, struct err *err)
{
	const struct manifest_list *all = &pl->in->manifests->all;
	struct pod view;
	int r;

	/* In this order: a removed pod does not block the resize, and the Node that admission sees
	 * has the capacity of the new pools. */
	r = release_removed_pods(pl, err);
	if (r >= 0)
		r = resize_pools(pl, config, err);
	if (r >= 0)
		r = read_cluster(pl->in, pl->ledger, pl->a, &pl->cluster, err);
	for (size_t i = 0; r >= 0 && i < all->n; i++)
		if (pod_from_object(all->items[i].object, &view))
			r = add_workload(pl, &all->items[i], err);
	if (r >= 0)
		set_pool_cpus(pl);
	check_duplicates(pl);
	return r;
}

int local_plan_make(const struct local_plan_input *in, const struct pool_config *config,
		    struct ledger *ledger, struct arena *a, struct local_plan *ret,
		    struct problem_list *p)
{
	struct local_plan plan = { 0 };
	struct planner pl = { .in = in, .ledger = ledger, .a = a, .p = p, .plan = &plan };
	struct err err = { 0 };
	int r;

	ledger_begin(ledger);
	r = plan_all(&pl, config, &err);
	if (r >= 0 && p->n_errors)
		r = -EINVAL;
	if (r >= 0) {
		*ret = plan;
		return 0;
	}
	ledger_rollback(ledger);
	if (!p->n_errors)
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	return r;
}
