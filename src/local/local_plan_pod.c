/* The plan of one pod: admission, the commands of its containers, and their CPU settings. */

#include <errno.h>

#include "admission/admission.h"
#include "admission/annotation.h"
#include "admission/defaults.h"
#include "base/arena.h"
#include "base/err.h"
#include "cgroup/cgroup.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "kube/shares.h"
#include "local_plan_private.h"

#define GRACE_DEFAULT_S 30

static void add_refusal(struct planner *pl, const struct candidate *c, struct str text)
{
	struct local_plan *plan = pl->plan;

	plan->refusals = arena_reserve(pl->a, plan->refusals, plan->n_refusals, &pl->cap_refusals,
				       sizeof(*plan->refusals));
	plan->refusals[plan->n_refusals++] =
		(struct local_refusal){ c->namespace, c->name, str_dup(pl->a, text) };
}

static void add_note(struct planner *pl, const struct candidate *c, struct str text)
{
	struct local_plan *plan = pl->plan;

	plan->notes = arena_reserve(pl->a, plan->notes, plan->n_notes, &pl->cap_notes,
				    sizeof(*plan->notes));
	plan->notes[plan->n_notes++] = (struct local_note){ c->namespace, c->name, text };
}

/* --- admission --- */

/* The workload type of an admitted pod: admission refuses pods with two, and removes the annotation
 * from pods that it does not convert. "": none. */
static struct str type_of(const struct pod *pod)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(pod_annotations(pod));
	yyjson_val *key;

	while ((key = yyjson_obj_iter_next(&it)))
		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)))
			return str_skip(doc_str(key), sizeof(NAME_TARGET_PREFIX) - 1);
	return STR("");
}

/* As the API server does it: defaults, the mutating webhook, its patch. Returns 1 when admitted, 0
 * when refused. */
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
		add_refusal(pl, c, result.message);
		return 0;
	}
	for (size_t i = 0; i < result.n_warnings; i++)
		add_note(pl, c, result.warnings[i]);
	r = patch_apply(&result.patch, pod, pl->a, &admitted, err);
	if (r < 0)
		return r;
	(void)pod_from_object(admitted, &c->pod);
	/* Of the patched pod, as the kubelet sees it. */
	if (qos_kubernetes(&c->pod, &class, err) < 0) {
		add_refusal(pl, c, str_from(err->msg));
		return 0;
	}
	c->is_guaranteed = class == QOS_GUARANTEED;
	c->type = type_of(&c->pod);
	c->is_managed = c->type.n && pool_config_has_type(&pl->ledger->now.config, c->type);
	if (c->type.n && !c->is_managed)
		add_note(pl, c,
			 str_printf(pl->a, "workload type " PRI_STR " has no CPUs on this machine",
				    FMT_STR(c->type)));
	return 1;
}

/* --- command --- */

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
	/* Kubernetes takes a missing command from the image, which does not exist here. */
	yyjson_val *command = doc_get(from->v, STR("command"));
	yyjson_val *args = doc_get(from->v, STR("args"));

	to->argv = arena_array(pl->a, struct str, yyjson_arr_size(command) + yyjson_arr_size(args));
	read_strings(pl, c, command, to->argv, &to->n_argv);
	read_strings(pl, c, args, to->argv, &to->n_argv);
	if (!yyjson_arr_size(command) && !pl->in->simulate)
		problem_error(pl->p, PROBLEM_AT(c->at.doc, c->at.object, "command"),
			      "container " PRI_STR " of pod " PRI_STR
			      " has no command: pinfold local runs commands, not images",
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
				     "variable " PRI_STR
				     " has valueFrom, which needs a cluster, ignoring",
				     FMT_STR(name));
			continue;
		}
		to->env[to->n_env++] = str_printf(pl->a, PRI_STR "=" PRI_STR, FMT_STR(name),
						  FMT_STR(doc_str(doc_get(item, STR("value")))));
	}
}

static enum local_restart restart_policy(const struct pod *pod)
{
	struct str policy = doc_str(doc_get(pod->spec, STR("restartPolicy")));

	if (str_eq(policy, STR("OnFailure")))
		return LOCAL_RESTART_ON_FAILURE;
	return str_eq(policy, STR("Never")) ? LOCAL_RESTART_NEVER : LOCAL_RESTART_ALWAYS;
}

/* --- CPU settings --- */

/* As the kubelet computes it: the kernel refuses quotas below 1 ms. */
static int64_t quota_from_limit(int64_t limit_milli)
{
	int64_t quota = limit_milli * CGROUP_PERIOD_US / 1000;

	if (limit_milli <= 0)
		return CGROUP_UNLIMITED;
	return quota < CGROUP_QUOTA_MIN_US ? CGROUP_QUOTA_MIN_US : quota;
}

/* 0 when the list has no CPU. */
static int read_cpu_milli(yyjson_val *list, int64_t *ret, struct err *err)
{
	struct quantity q;
	int r = resource_get(list, STR(NAME_CPU), &q, err);

	*ret = 0;
	return r == 1 ? quantity_milli(&q, ret, err) : r;
}

/* From the annotation that admission wrote, or from the resources as the kubelet reads them. A
 * container with exclusive CPUs has no quota: throttling it there would leave its CPUs idle. */
static int set_shares_and_quota(struct planner *pl, const struct candidate *c,
				const struct container *from, struct local_container *to,
				struct err *err)
{
	struct str key = str_printf(pl->a, NAME_RESOURCES_PREFIX PRI_STR, FMT_STR(from->name));
	struct str text = pod_annotation(&c->pod, key);
	struct container_cpu cpu = { .shares = CPU_SHARES_MIN };
	int64_t request, limit;
	int r = 0;

	if (c->is_managed && text.n)
		r = container_cpu_parse(text, pl->a, &cpu, err);
	if (c->is_managed) {
		to->settings.shares = cpu.shares;
		to->settings.quota_us = quota_from_limit(cpu.limit_milli);
		return r;
	}
	r = read_cpu_milli(from->requests, &request, err);
	if (r >= 0)
		r = read_cpu_milli(from->limits, &limit, err);
	if (r < 0)
		return r;
	to->settings.shares = cpu_shares_from_milli(request);
	to->settings.quota_us = to->is_exclusive ? CGROUP_UNLIMITED : quota_from_limit(limit);
	return 0;
}

static int assign_cpus(struct planner *pl, const struct candidate *c, const struct container *from,
		       struct local_container *to, struct err *err)
{
	struct ledger_request request = {
		.pod_uid = c->uid,
		.pod_namespace = c->namespace,
		.pod_name = c->name,
		.container = from->name,
		.demand = { .kind = from->kind, .is_guaranteed = c->is_guaranteed },
		.is_management = c->is_managed,
		.pod = c->members,
	};
	struct ledger_grant grant;
	int r;

	r = read_cpu_milli(from->requests, &request.demand.cpu_milli, err);
	if (r < 0)
		return r;
	/* A container that has CPUs keeps them, so that `apply` moves no running container. */
	r = ledger_allocate(pl->ledger, &request, &grant, err);
	/* Its request changed: the container is replaced, as with any change of a pod. */
	if (r >= 0 && grant.size_differs)
		r = ledger_release_container(pl->ledger, c->uid, from->name, err);
	if (r > 0)
		r = ledger_allocate(pl->ledger, &request, &grant, err);
	if (r < 0)
		return r;
	to->pool = grant.pool;
	to->is_exclusive = grant.pool == POOL_GUARANTEED;
	to->settings.cpus = grant.cpus;
	to->settings.mems = grant.memory_nodes;
	if (c->is_managed)
		to->type = c->type;
	return set_shares_and_quota(pl, c, from, to, err);
}

/* --- one pod --- */

static int add_container(struct planner *pl, const struct candidate *c,
			 const struct container *from, struct err *err)
{
	int64_t grace = GRACE_DEFAULT_S;
	struct local_container to = {
		.namespace = c->namespace,
		.pod = c->name,
		.name = from->name,
		.kind = from->kind,
		.restart = restart_policy(&c->pod),
		.workdir = doc_str(doc_get(from->v, STR("workingDir"))),
		.settings = { .has_quota = true, .period_us = CGROUP_PERIOD_US },
	};
	int r;

	if (!local_name_is_valid(from->name, LOCAL_LABEL_MAX))
		return err_set(err, EINVAL, "\"" PRI_STR "\" is not a valid container name",
			       FMT_STR(from->name));
	(void)doc_int(doc_get(c->pod.spec, STR("terminationGracePeriodSeconds")), &grace);
	/* As in Kubernetes: a negative number is one second, a long time is a long time. */
	to.grace_s = grace < 0 ? 1 : grace > INT32_MAX ? INT32_MAX : (unsigned)grace;
	read_command(pl, c, from, &to);
	read_environment(pl, c, from, &to);
	r = assign_cpus(pl, c, from, &to, err);
	if (r < 0)
		return r;
	pl->plan->containers = arena_reserve(pl->a, pl->plan->containers, pl->plan->n,
					     &pl->cap_containers, sizeof(to));
	pl->plan->containers[pl->plan->n++] = to;
	return 0;
}

/* For NUMA scope pod. A request that cannot be read refuses its container later. */
static void collect_members(struct planner *pl, struct candidate *c)
{
	struct ledger_member *members = NULL;
	struct container_iter it;
	struct container from;
	size_t n = 0, cap = 0;

	for (it = container_iter(&c->pod, false); container_next(&it, &from); n++) {
		members = arena_reserve(pl->a, members, n, &cap, sizeof(*members));
		members[n] = (struct ledger_member){
			.container = from.name,
			.demand = { .kind = from.kind,
				    .is_guaranteed = c->is_guaranteed && !c->is_managed },
		};
		(void)read_cpu_milli(from.requests, &members[n].demand.cpu_milli, NULL);
	}
	c->members = (struct ledger_pod){ .members = members, .n = n, .reserves = true };
}

int plan_add_pod(struct planner *pl, struct candidate *c, yyjson_val *pod, struct err *err)
{
	struct container_iter it;
	struct container from;
	size_t before = pl->plan->n;
	int r;

	r = admit(pl, pod, c, err);
	if (r == 0) /* an earlier plan may have admitted it */
		return ledger_release_pod(pl->ledger, c->uid, err);
	if (r < 0)
		return r;
	collect_members(pl, c);
	for (it = container_iter(&c->pod, false); container_next(&it, &from);) {
		r = add_container(pl, c, &from, err);
		if (r < 0)
			break;
	}
	if (r < 0) { /* the whole pod, as the kubelet rejects pods, not containers */
		pl->plan->n = before;
		add_refusal(pl, c,
			    str_printf(pl->a, "container " PRI_STR ": %s", FMT_STR(from.name),
				       err->msg));
		return ledger_release_pod(pl->ledger, c->uid, err);
	}
	return 0;
}
