#include "plan.h"

#include <errno.h>
#include <string.h>

#include "admission/admission.h"
#include "admission/annotation.h"
#include "admission/defaults.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "cgroup/cgroup.h"
#include "codec/problems.h"
#include "cpu/hints.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/qos.h"
#include "kube/shares.h"
#include "profile/layout.h"

#define GRACE_DEFAULT_S 30
#define REPLICAS_MAX 1000

/* --- the profile --- */

bool local_plan_config(const struct local_plan_input *in, struct arena *a, struct pool_config *ret,
		       struct problem_list *p)
{
	struct pool_topology machine = { .topology = in->topology };
	struct layout_options options = { .topologies = &machine,
					  .n_topologies = 1,
					  .plain_hosts = true,
					  .allow_split_cores = true };
	struct layout layout = { 0 };
	const struct partition *part;
	struct err err = { 0 };
	struct pool_config c;

	layout_resolve(in->manifests, &options, a, &layout, p);
	if (p->n_errors)
		return false;
	if (layout.n_partitions != 1) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      "%zu PerformanceProfiles for this machine: exactly one is needed",
			      layout.n_partitions);
		return false;
	}
	part = &layout.partitions[0];
	pool_config_init(&c);
	c.is_classic = !profile_has_pools(part->profile);
	c.reserved = part->cpus[PROFILE_RESERVED];
	c.shared = part->cpus[PROFILE_SHARED];
	c.guaranteed = part->cpus[PROFILE_ISOLATED];
	c.fold_rest = true; /* CPUs that the profile does not name are nobody's loss in shared */
	if (pool_config_check(&c, in->topology, &err) < 0) {
		problem_error(p, PROBLEM_AT(part->profile->at.doc, part->profile->at.object, NULL),
			      "%s", err.msg);
		return false;
	}
	*ret = c;
	return true;
}

/* --- the cluster that the directory describes --- */

static void put_quantity(yyjson_mut_doc *m, yyjson_mut_val *list, const char *name, int64_t n,
			 struct arena *a)
{
	doc_put_str(m, list, str_from(name), str_printf(a, "%lld", (long long)n));
}

/* This machine as a Node, advertising what its pools give. */
static yyjson_val *this_node(const struct ledger *l, struct arena *a)
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
	put_quantity(m, allocatable, NAME_MANAGEMENT_CORES, capacity.reserved_milli, a);
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
		r = state_manifests_add(ret, this_node(l, a), err);
	if (r < 0)
		return r;
	ret->state.settings.pools = !l->now.config.is_classic;
	state_manifests_seal(ret);
	return 0;
}

/* --- one pod --- */

struct planner {
	const struct local_plan_input *in;
	struct ledger *ledger;
	struct state_manifests cluster;
	struct arena *a;
	struct problem_list *p;
	struct local_plan *plan;
	size_t cap_containers, cap_refusals, cap_notes;
};

/* The pod under consideration: where it stands, and how admission left it. */
struct candidate {
	struct manifest at;
	struct pod pod; /* admitted */
	struct str namespace, name, uid;
	bool is_managed;
	bool is_guaranteed;
};

static void *grow(struct arena *a, void *items, size_t size, size_t n, size_t *cap)
{
	size_t wanted = *cap ? *cap * 2 : 16;

	if (n < *cap)
		return items;
	items = arena_realloc(a, items, *cap * size, wanted * size);
	*cap = wanted;
	return items;
}

static void refuse(struct planner *pl, const struct candidate *c, struct str text)
{
	struct local_plan *plan = pl->plan;

	plan->refusals = grow(pl->a, plan->refusals, sizeof(*plan->refusals), plan->n_refusals,
			      &pl->cap_refusals);
	plan->refusals[plan->n_refusals++] =
		(struct local_refusal){ c->namespace, c->name, str_dup(pl->a, text) };
}

static void note(struct planner *pl, const struct candidate *c, struct str text)
{
	struct local_plan *plan = pl->plan;

	plan->notes = grow(pl->a, plan->notes, sizeof(*plan->notes), plan->n_notes, &pl->cap_notes);
	plan->notes[plan->n_notes++] = (struct local_note){ c->namespace, c->name, text };
}

static bool is_managed(const struct pod *pod)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(pod_annotations(pod));
	yyjson_val *key;

	while ((key = yyjson_obj_iter_next(&it)))
		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)))
			return true;
	return false;
}

/* Through admission, as the API server would: defaults, the hook, the patch. */
static int admit(struct planner *pl, yyjson_val *pod, struct candidate *c, struct err *err)
{
	struct admission_result result;
	enum qos_class class;
	yyjson_val *admitted;
	int r;

	r = pod_default_resources(pod, pl->a, &pod, err);
	if (r >= 0)
		r = admit_pod(&pl->cluster.state, pod, pl->a, &result);
	if (r < 0)
		return r;
	if (!result.allowed) {
		refuse(pl, c, result.message);
		return 0;
	}
	for (size_t i = 0; i < result.n_warnings; i++)
		note(pl, c, result.warnings[i]);
	r = patch_apply(&result.patch, pod, pl->a, &admitted, err);
	if (r < 0)
		return r;
	(void)pod_from_object(admitted, &c->pod);
	if (qos_kubernetes(&c->pod, &class, err) < 0) {
		refuse(pl, c, str_from(err->msg));
		return 0;
	}
	c->is_guaranteed = class == QOS_GUARANTEED;
	c->is_managed = is_managed(&c->pod);
	return 1;
}

static struct str *read_strings(struct planner *pl, const struct candidate *c, yyjson_val *list,
				struct str *items, size_t *n)
{
	yyjson_val *item;

	DOC_EACH_ITEM (list, item) {
		if (!yyjson_is_str(item))
			problem_error(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "command"),
				      "%s is not a string", doc_type(item));
		items[(*n)++] = doc_str(item);
	}
	return items;
}

static void read_command(struct planner *pl, const struct candidate *c,
			 const struct container *from, struct local_container *to)
{
	yyjson_val *command = doc_get(from->v, STR("command"));
	yyjson_val *args = doc_get(from->v, STR("args"));

	to->argv = arena_array(pl->a, struct str, yyjson_arr_size(command) + yyjson_arr_size(args));
	read_strings(pl, c, command, to->argv, &to->n_argv);
	read_strings(pl, c, args, to->argv, &to->n_argv);
	if (!yyjson_arr_size(command) && !pl->in->simulate)
		problem_error(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "command"),
			      "container " PRI_STR " of pod " PRI_STR
			      " has none: without a cluster commands run, not images",
			      FMT_STR(from->name), FMT_STR(c->name));
}

static void read_environment(struct planner *pl, const struct candidate *c,
			     const struct container *from, struct local_container *to)
{
	yyjson_val *env = doc_get(from->v, STR("env")), *item;

	to->env = arena_array(pl->a, struct str, yyjson_arr_size(env));
	DOC_EACH_ITEM (env, item) {
		struct str name = doc_str(doc_get(item, STR("name")));

		if (doc_get(item, STR("valueFrom"))) {
			problem_warn(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "env"),
				     "variable " PRI_STR " comes from the cluster, ignoring",
				     FMT_STR(name));
			continue;
		}
		to->env[to->n_env++] = str_printf(pl->a, PRI_STR "=" PRI_STR, FMT_STR(name),
						  FMT_STR(doc_str(doc_get(item, STR("value")))));
	}
}

static enum local_restart restart_of(const struct pod *pod)
{
	struct str policy = doc_str(doc_get(pod->spec, STR("restartPolicy")));

	if (str_eq(policy, STR("OnFailure")))
		return LOCAL_RESTART_ON_FAILURE;
	return str_eq(policy, STR("Never")) ? LOCAL_RESTART_NEVER : LOCAL_RESTART_ALWAYS;
}

/* Quota in the runtime's arithmetic: no finer than the kernel takes. */
static int64_t quota_of(int64_t limit_milli)
{
	int64_t quota = limit_milli * CGROUP_PERIOD_US / 1000;

	if (limit_milli <= 0)
		return CGROUP_UNLIMITED;
	return quota < CGROUP_QUOTA_MIN_US ? CGROUP_QUOTA_MIN_US : quota;
}

static int milli_of(yyjson_val *list, int64_t *ret, struct err *err)
{
	struct quantity q;
	int r = resource_get(list, STR(NAME_CPU), &q, err);

	*ret = 0;
	return r == 1 ? quantity_milli(&q, ret, err) : r;
}

/* Weight and quota: from the annotation admission wrote, or from the resources as a kubelet reads
 * them. A container that owns its CPUs is never throttled on them. */
static int set_weight(struct planner *pl, const struct candidate *c, const struct container *from,
		      struct local_container *to, struct err *err)
{
	struct str key = str_printf(pl->a, NAME_RESOURCES_PREFIX PRI_STR, FMT_STR(from->name));
	struct str text = pod_annotation(&c->pod, key);
	struct container_cpu cpu = { .shares = CPU_SHARES_MIN };
	int64_t request, limit;
	int r = 0;

	if (c->is_managed && text.n)
		r = container_cpu_parse(text, pl->a, &cpu, err);
	if (c->is_managed) {
		to->shares = cpu.shares;
		to->quota_us = quota_of(cpu.limit_milli);
		return r;
	}
	r = milli_of(from->requests, &request, err);
	if (r >= 0)
		r = milli_of(from->limits, &limit, err);
	if (r < 0)
		return r;
	to->shares = cpu_shares_from_milli(request);
	to->quota_us = to->is_exclusive ? CGROUP_UNLIMITED : quota_of(limit);
	return 0;
}

/* On one NUMA node where that is possible, as the kubelet's best-effort policy. */
static void align(struct planner *pl, struct ledger_request *request)
{
	static const struct hint_config config = { .policy = HINT_POLICY_BEST_EFFORT };
	struct hint_nodes nodes = hint_nodes_of(pl->in->topology);
	struct hint_list hints;
	const struct hint_provider provider = { &hints, 1 };

	/* A machine with too many nodes for hints does without. */
	if (nodes.n > 1 && ledger_hints(pl->ledger, request, pl->a, &hints, NULL) >= 0)
		request->affinity = hints_decide(&config, &nodes, &provider, 1, pl->a).hint;
}

static int place(struct planner *pl, const struct candidate *c, const struct container *from,
		 struct local_container *to, struct err *err)
{
	struct ledger_request request = {
		.pod_uid = c->uid,
		.pod_namespace = c->namespace,
		.pod_name = c->name,
		.container = from->name,
		.demand = { .kind = from->kind, .is_guaranteed = c->is_guaranteed },
		.is_management = c->is_managed,
	};
	struct ledger_grant grant;
	int r;

	r = milli_of(from->requests, &request.demand.cpu_milli, err);
	if (r < 0)
		return r;
	align(pl, &request);
	r = ledger_allocate(pl->ledger, &request, &grant, err);
	/* It asks for something else now: as with any change of a pod, a new one takes its place.
	 */
	if (r >= 0 && grant.size_differs)
		r = ledger_release_container(pl->ledger, c->uid, from->name, err);
	if (r > 0)
		r = ledger_allocate(pl->ledger, &request, &grant, err);
	if (r < 0)
		return r;
	to->pool = grant.pool;
	to->is_exclusive = grant.pool == POOL_GUARANTEED;
	to->cpus = grant.cpus;
	return set_weight(pl, c, from, to, err);
}

static int add_container(struct planner *pl, const struct candidate *c,
			 const struct container *from, struct err *err)
{
	int64_t grace = GRACE_DEFAULT_S;
	struct local_container to = {
		.namespace = c->namespace,
		.pod = c->name,
		.name = from->name,
		.kind = from->kind,
		.restart = restart_of(&c->pod),
		.workdir = doc_str(doc_get(from->v, STR("workingDir"))),
		.period_us = CGROUP_PERIOD_US,
	};
	int r;

	if (!local_is_name(from->name, LOCAL_LABEL_MAX))
		return err_set(err, EINVAL, "\"" PRI_STR "\" is no name for a container",
			       FMT_STR(from->name));
	(void)doc_int(doc_get(c->pod.spec, STR("terminationGracePeriodSeconds")), &grace);
	to.grace_s = grace < 0 || grace > 3600 ? GRACE_DEFAULT_S : (unsigned)grace;
	read_command(pl, c, from, &to);
	read_environment(pl, c, from, &to);
	r = place(pl, c, from, &to, err);
	if (r < 0)
		return r;
	pl->plan->containers =
		grow(pl->a, pl->plan->containers, sizeof(to), pl->plan->n, &pl->cap_containers);
	pl->plan->containers[pl->plan->n++] = to;
	return 0;
}

/* All containers of a pod, or none: one that cannot be placed refuses the pod. */
static int add_pod(struct planner *pl, struct candidate *c, yyjson_val *pod, struct err *err)
{
	struct container_iter it;
	struct container from;
	size_t before = pl->plan->n;
	int r;

	r = admit(pl, pod, c, err);
	if (r == 0) /* refused now, but perhaps not the last time */
		return ledger_release_pod(pl->ledger, c->uid, err);
	if (r < 0)
		return r;
	for (it = container_iter(&c->pod, false); container_next(&it, &from);) {
		r = add_container(pl, c, &from, err);
		if (r < 0)
			break;
	}
	if (r < 0) {
		pl->plan->n = before;
		refuse(pl, c,
		       str_printf(pl->a, "container " PRI_STR ": %s", FMT_STR(from.name),
				  err->msg));
		return ledger_release_pod(pl->ledger, c->uid, err);
	}
	return 0;
}

/* --- all pods --- */

/* Pods of a kind that can have several carry a number, also when there is just one: a second one
 * shall not give the first another name. */
static bool is_numbered(struct str kind)
{
	return str_eq(kind, STR("Deployment")) || str_eq(kind, STR("StatefulSet")) ||
	       str_eq(kind, STR("ReplicaSet")) || str_eq(kind, STR("ReplicationController"));
}

/* False when it is no number. */
static bool replicas_of(const struct manifest *m, int64_t *ret)
{
	yyjson_val *v = doc_find(m->object, "/spec/replicas");
	struct str kind = object_kind(m->object);

	*ret = 1;
	if (!v || !is_numbered(kind))
		return true;
	return doc_int(v, ret) && *ret >= 0 && *ret <= REPLICAS_MAX;
}

static struct candidate candidate_of(struct planner *pl, const struct manifest *m,
				     const struct pod *pod, int64_t index)
{
	struct candidate c = { .at = *m, .namespace = pod_namespace(pod), .name = pod_name(pod) };

	if (is_numbered(pod->kind))
		c.name = str_printf(pl->a, PRI_STR "-%lld", FMT_STR(c.name), (long long)index);
	c.uid = str_printf(pl->a, PRI_STR "/" PRI_STR, FMT_STR(c.namespace), FMT_STR(c.name));
	return c;
}

/* Names become parts of paths. */
static bool check_candidate(struct planner *pl, const struct candidate *c)
{
	if (local_is_name(c->namespace, LOCAL_LABEL_MAX) && local_is_name(c->name, LOCAL_POD_MAX))
		return true;
	problem_error(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "metadata"),
		      "\"" PRI_STR "/" PRI_STR "\" is no name for a pod", FMT_STR(c->namespace),
		      FMT_STR(c->name));
	return false;
}

static int add_workload(struct planner *pl, const struct manifest *m, struct err *err)
{
	yyjson_val *pod;
	struct pod view;
	int64_t n;
	int r;

	if (str_eq(object_kind(m->object), STR("CronJob"))) {
		problem_warn(pl->p, PROBLEM_AT(m->doc, m->object, NULL),
			     "nothing runs on a schedule here, ignoring");
		return 0;
	}
	if (!replicas_of(m, &n)) {
		problem_error(pl->p, PROBLEM_AT(m->doc, m->object, "spec.replicas"),
			      "not a number from 0 to %d", REPLICAS_MAX);
		return 0;
	}
	r = pod_from_workload(m->object, pl->a, &pod, err);
	if (r < 0) {
		problem_error(pl->p, PROBLEM_AT(m->doc, m->object, NULL), "%s", err->msg);
		return 0;
	}
	(void)pod_from_object(m->object, &view); /* the workload's name, not its pod's */
	for (int64_t i = 0; r >= 0 && i < n; i++) {
		struct candidate c = candidate_of(pl, m, &view, i);

		if (!check_candidate(pl, &c))
			break;
		r = add_pod(pl, &c, pod, err);
	}
	return r;
}

/* Every pod's name, before anything is placed: CPUs of pods that are gone are free for others. */
static bool is_wanted(struct planner *pl, struct str uid)
{
	const struct manifest_list *all = &pl->in->manifests->all;

	for (size_t i = 0; i < all->n; i++) {
		struct pod pod;
		int64_t n;

		if (!pod_from_object(all->items[i].object, &pod))
			continue;
		if (!replicas_of(&all->items[i], &n))
			continue;
		for (int64_t k = 0; k < n; k++)
			if (str_eq(candidate_of(pl, &all->items[i], &pod, k).uid, uid))
				return true;
	}
	return false;
}

static int release_gone(struct planner *pl, struct err *err)
{
	size_t i = 0;

	while (i < pl->ledger->n) {
		struct str uid = str_dup(pl->a, pl->ledger->items[i]->pod_uid);
		int r;

		if (is_wanted(pl, uid)) {
			i++;
			continue;
		}
		r = ledger_release_pod(pl->ledger, uid, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void check_names(struct planner *pl)
{
	for (size_t i = 0; i < pl->plan->n; i++) {
		const struct local_container *c = &pl->plan->containers[i];
		size_t k = 0;

		while (k < i && !local_container_same(c, &pl->plan->containers[k]))
			k++;
		if (k < i)
			problem_error(pl->p, PROBLEM_AT(NULL, NULL, NULL),
				      "container " PRI_STR " is given twice",
				      FMT_STR(local_container_id(c, pl->a)));
	}
}

/* Where non-exclusive containers run is known only when every exclusive one has its CPUs. */
static void settle(struct planner *pl)
{
	for (size_t i = 0; i < pl->plan->n; i++) {
		struct local_container *c = &pl->plan->containers[i];

		if (!c->is_exclusive)
			(void)ledger_cpus(pl->ledger, c->pool, &c->cpus);
	}
}

/* Names every container in the way, then fails. */
static int resize(struct planner *pl, const struct pool_config *config, struct err *err)
{
	struct resize_plan plan;
	int r;

	if (pool_config_eq(&pl->ledger->now.config, config))
		return 0;
	r = ledger_plan_resize(pl->ledger, config, pl->a, &plan, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan.n_conflicts; i++) {
		const struct assignment *holder = plan.conflicts[i].assignment;

		problem_error(pl->p, PROBLEM_AT(NULL, NULL, NULL),
			      "the new profile takes CPUs " PRI_STR " from under " PRI_STR
			      "/" PRI_STR ", which runs on them: stop that pod first",
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

	r = release_gone(pl, err);
	if (r >= 0)
		r = resize(pl, config, err);
	if (r >= 0)
		r = read_cluster(pl->in, pl->ledger, pl->a, &pl->cluster, err);
	for (size_t i = 0; r >= 0 && i < all->n; i++)
		if (pod_from_object(all->items[i].object, &view))
			r = add_workload(pl, &all->items[i], err);
	if (r >= 0)
		settle(pl);
	check_names(pl);
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
