/* The status document and the metrics are written from the same state, so the tables of names here
 * are used for both. */

#include "status.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "host/host_live.h"
#include "kube/names.h"
#include "net/prometheus.h"
#include "nodesync/node_sync.h"
#include "pin/isolate.h"
#include "pin/manager.h"
#include "pin/manager_state.h"
#include "staticpod/static_pods.h"

/* The name is the key in the document; the metric is pinfold_NAME_total. */
static const struct {
	const char *name, *help;
	size_t offset; /* of a uint64_t in struct manager_counters */
} counter_rows[] = {
	{ "containers_refused", "Containers that were not created because no CPUs fit them.",
	  offsetof(struct manager_counters, refused) },
	{ "resizes_refused", "In-place resizes refused because they would change exclusive CPUs.",
	  offsetof(struct manager_counters, resizes_refused) },
	{ "updates_overridden", "Updates by the kubelet whose CPU settings were replaced.",
	  offsetof(struct manager_counters, updates_overridden) },
	{ "containers_adopted_late", "Containers found running without their CPU settings.",
	  offsetof(struct manager_counters, adopted_late) },
	{ "drift_corrected", "Cgroups whose CPU settings were changed externally and restored.",
	  offsetof(struct manager_counters, drift_corrected) },
	{ "annotations_rejected", "Annotations that were not accepted.",
	  offsetof(struct manager_counters, annotations_rejected) },
	{ "cgroup_write_failures", "Cgroups that could not be written.",
	  offsetof(struct manager_counters, write_failures) },
	{ "synchronizations", "Synchronizations with the runtime.",
	  offsetof(struct manager_counters, syncs) },
	{ "runtime_disconnects", "Lost connections to the runtime.",
	  offsetof(struct manager_counters, disconnects) },
};

static uint64_t counter(const struct manager *m, size_t row)
{
	return *(const uint64_t *)((const char *)&m->counters + counter_rows[row].offset);
}

static size_t count_containers(const struct manager *m, enum pool pool)
{
	size_t n = 0;

	for (size_t i = 0; i < m->registry.n_containers; i++)
		n += m->registry.containers[i]->pool == pool;
	return n;
}

/* What assigns exclusive CPUs, and whether it keeps to the pools. */
static void describe_cpu_manager(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
				 struct arena *a)
{
	yyjson_mut_val *manager = doc_put_obj(doc, root, STR("cpuManager"));

	doc_put_str(doc, manager, STR("assigns"),
		    m->kubelet_manages ? STR("kubelet") : STR("agent"));
	if (!cpuset_is_empty(&m->kubelet_taken))
		doc_put_str(doc, manager, STR("sharedCpusAssigned"),
			    cpuset_format(&m->kubelet_taken, a));
}

static void describe_pools(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
			   struct arena *a)
{
	yyjson_mut_val *pools = doc_put_obj(doc, root, STR("pools"));
	struct ledger_capacity capacity;
	struct cpuset cpus;

	ledger_capacity(m->ledger, &capacity);
	for (enum pool p = 0; p < POOL__COUNT; p++) {
		/* In the order of enum pool. */
		const int64_t milli[] = { capacity.management_milli, capacity.shared_milli,
					  capacity.guaranteed_milli };
		yyjson_mut_val *pool = doc_put_obj(doc, pools, str_from(pool_name(p)));

		(void)ledger_cpus(m->ledger, p, &cpus);
		doc_put_str(doc, pool, STR("cpus"), cpuset_format(&cpus, a));
		doc_put_int(doc, pool, STR("count"), cpuset_count(&cpus));
		doc_put_int(doc, pool, STR("millicores"), milli[p]);
		doc_put_int(doc, pool, STR("containers"), (int64_t)count_containers(m, p));
		if (p == POOL_SHARED && manager_shared_is_empty(m, &cpus))
			doc_put_bool(doc, pool, STR("empty"), true);
		if (p == POOL_GUARANTEED) {
			ledger_free(m->ledger, &cpus);
			doc_put_str(doc, pool, STR("free"), cpuset_format(&cpus, a));
		}
	}
}

static size_t count_of_type(const struct manager *m, const char *type)
{
	size_t n = 0;

	for (size_t i = 0; i < m->registry.n_containers; i++)
		n += m->registry.containers[i]->pool == POOL_MANAGEMENT &&
		     str_eq(registry_type_of(m->registry.containers[i]), str_from(type));
	return n;
}

/* Every workload type of the node, management first. */
typedef void (*type_fn)(const struct manager *m, const char *type, void *data);

static void each_type(const struct manager *m, type_fn fn, void *data)
{
	const struct pool_config *c = &m->ledger->now.config;

	fn(m, NAME_TYPE_MANAGEMENT, data);
	for (size_t i = 0; i < c->n_types; i++)
		if (strcmp(c->types[i].name, NAME_TYPE_MANAGEMENT) != 0)
			fn(m, c->types[i].name, data);
}

struct type_list {
	yyjson_mut_doc *doc;
	yyjson_mut_val *types;
	struct arena *a;
};

static void describe_type(const struct manager *m, const char *type, void *data)
{
	const struct type_list *list = data;
	yyjson_mut_val *v = doc_put_obj(list->doc, list->types, str_dup(list->a, str_from(type)));
	struct cpuset cpus;

	manager_type_cpus(m, str_from(type), &cpus);
	doc_put_str(list->doc, v, STR("cpus"), cpuset_format(&cpus, list->a));
	doc_put_int(list->doc, v, STR("count"), cpuset_count(&cpus));
	doc_put_int(list->doc, v, STR("containers"), (int64_t)count_of_type(m, type));
}

static void describe_types(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
			   struct arena *a)
{
	each_type(m, describe_type,
		  &(struct type_list){ doc, doc_put_obj(doc, root, STR("workloadTypes")), a });
}

static void describe_container(const struct container_entry *c, yyjson_mut_doc *doc,
			       yyjson_mut_val *list, struct arena *a)
{
	yyjson_mut_val *v = yyjson_mut_obj(doc);

	/* The same keys as in `local status` and in a hook's response (placement_describe()). */
	doc_put_str(doc, v, STR("namespace"), str_from(c->pod->namespace));
	doc_put_str(doc, v, STR("pod"), str_from(c->pod->name));
	doc_put_str(doc, v, STR("uid"), str_from(c->pod->uid));
	doc_put_str(doc, v, STR("container"), str_from(c->name));
	doc_put_str(doc, v, STR("id"), str_from(c->id));
	doc_put_str(doc, v, STR("pool"), str_from(pool_name(c->pool)));
	if (c->pool == POOL_MANAGEMENT)
		doc_put_str(doc, v, STR("type"), registry_type_of(c));
	if (c->is_exclusive)
		doc_put_bool(doc, v, STR("exclusive"), true);
	cpu_settings_put(c->settings, doc, v, a);
	if (c->is_isolated)
		doc_put_bool(doc, v, STR("isolated"), true);
	if (c->isolation_error)
		doc_put_str(doc, v, STR("isolationError"), str_from(c->isolation_error));
	doc_put_str(doc, v, STR("cgroup"), str_from(c->cgroup));
	if (c->n_drift_corrected)
		doc_put_int(doc, v, STR("repairs"), c->n_drift_corrected);
	yyjson_mut_arr_append(list, v);
}

static void describe_pod(const struct pod_entry *p, yyjson_mut_doc *doc, yyjson_mut_val *list)
{
	yyjson_mut_val *v = yyjson_mut_obj(doc);

	doc_put_str(doc, v, STR("namespace"), str_from(p->namespace));
	doc_put_str(doc, v, STR("pod"), str_from(p->name));
	doc_put_str(doc, v, STR("uid"), str_from(p->uid));
	doc_put_str(doc, v, STR("cgroup"), str_from(p->cgroup));
	doc_put_str(doc, v, STR("pauseCgroup"), str_from(p->pause_cgroup));
	doc_put_int(doc, v, STR("pausePid"), p->pause_pid);
	if (p->shares)
		doc_put_int(doc, v, STR("shares"), (int64_t)p->shares);
	if (p->lift_quota) /* D13 */
		doc_put_bool(doc, v, STR("noQuota"), true);
	yyjson_mut_arr_append(list, v);
}

static void describe_refusals(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *list = doc_put_arr(doc, root, STR("refused"));

	for (size_t i = 0; i < m->refusals.n; i++) {
		const struct refusal *r = &m->refusals.items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);

		doc_put_str(doc, v, STR("namespace"), str_from(r->namespace));
		doc_put_str(doc, v, STR("pod"), str_from(r->pod));
		doc_put_str(doc, v, STR("container"), str_from(r->container));
		doc_put_str(doc, v, STR("reason"), str_from(ledger_reject_reason(-r->why.code)));
		doc_put_str(doc, v, STR("message"), str_from(r->why.msg));
	}
}

yyjson_mut_val *status_describe(const struct manager *m, yyjson_mut_doc *doc, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	yyjson_mut_val *runtime = doc_put_obj(doc, root, STR("runtime")), *list;

	if (m->status.node.n)
		doc_put_str(doc, root, STR("node"), m->status.node);
	doc_put_bool(doc, runtime, STR("connected"), m->runtime.is_connected);
	doc_put_str(doc, runtime, STR("name"), str_from(m->runtime.name));
	doc_put_str(doc, runtime, STR("version"), str_from(m->runtime.version));
	if (!m->runtime.is_connected)
		doc_put_str(doc, runtime, STR("problem"), str_from(m->runtime.problem));
	if (m->runtime.crio != CRIO_NO_WORKLOAD) {
		yyjson_mut_val *own = doc_put_obj(doc, runtime, STR("workload"));

		doc_put_str(doc, own, STR("cpus"),
			    str_from(m->runtime.crio_cpus ? m->runtime.crio_cpus : ""));
		if (m->runtime.crio_type)
			doc_put_str(doc, own, STR("type"), str_from(m->runtime.crio_type));
		doc_put_str(doc, own, STR("state"), str_from(crio_state_name(m->runtime.crio)));
	}
	doc_put_str(doc, root, STR("mode"),
		    m->kubelet_manages		     ? STR("kubelet") :
		    m->ledger->now.config.is_classic ? STR("classic") :
						       STR("pools"));
	if (!m->kubelet_manages) {
		const struct hint_config *c = &m->ledger->now.config.topology;

		doc_put_str(doc, root, STR("topologyPolicy"),
			    str_from(hint_policy_name(c->policy)));
		doc_put_str(doc, root, STR("topologyScope"), str_from(hint_scope_name(c->scope)));
	}
	describe_cpu_manager(m, doc, root, a);
	pools_status_describe(&m->status.pools, &m->status.profile, doc, root);
	describe_pools(m, doc, root, a);
	describe_types(m, doc, root, a);
	list = doc_put_arr(doc, root, STR("containers"));
	for (size_t i = 0; i < m->registry.n_containers; i++)
		describe_container(m->registry.containers[i], doc, list, a);
	list = doc_put_arr(doc, root, STR("pods"));
	for (size_t i = 0; i < m->registry.n_pods; i++)
		describe_pod(m->registry.pods[i], doc, list);
	if (m->refusals.n)
		describe_refusals(m, doc, root);
	isolate_describe(m, doc, root, a);
	resize_describe(&m->status.resize, doc, root);
	reboot_describe(&m->status.reboot, a, doc, root);
	if (m->status.static_pods)
		static_pods_describe(m->status.static_pods, doc, root);
	if (m->status.host)
		host_describe(m->status.host, doc, root, a);
	if (m->status.link)
		node_sync_describe(m->status.link, doc, root);
	list = doc_put_obj(doc, root, STR("counters"));
	for (size_t i = 0; i < ARRAY_LEN(counter_rows); i++)
		doc_put_int(doc, list, str_from(counter_rows[i].name), (int64_t)counter(m, i));
	return root;
}

static void write_type_cpus(const struct manager *m, const char *type, void *data)
{
	struct cpuset cpus;

	manager_type_cpus(m, str_from(type), &cpus);
	prometheus_uint(data, "pinfold_workload_type_cpus",
			(struct prometheus_label[]){ { "type", type }, { 0 } },
			cpuset_count(&cpus));
}

static void write_type_containers(const struct manager *m, const char *type, void *data)
{
	prometheus_uint(data, "pinfold_workload_type_containers",
			(struct prometheus_label[]){ { "type", type }, { 0 } },
			count_of_type(m, type));
}

static void write_type_metrics(const struct manager *m, struct strbuf *b)
{
	prometheus_family(b, "pinfold_workload_type_cpus", "gauge",
			  "Online CPUs of a workload type, a part of the management pool.");
	each_type(m, write_type_cpus, b);
	prometheus_family(b, "pinfold_workload_type_containers", "gauge",
			  "Running containers of a workload type.");
	each_type(m, write_type_containers, b);
}

static void write_pool_metrics(const struct manager *m, struct strbuf *b)
{
	struct cpuset cpus;

	prometheus_family(b, "pinfold_pool_cpus", "gauge", "Online CPUs of a pool.");
	for (enum pool p = 0; p < POOL__COUNT; p++) {
		(void)ledger_cpus(m->ledger, p, &cpus);
		prometheus_uint(b, "pinfold_pool_cpus",
				(struct prometheus_label[]){ { "pool", pool_name(p) }, { 0 } },
				cpuset_count(&cpus));
	}
	prometheus_family(b, "pinfold_pool_containers", "gauge", "Running containers of a pool.");
	for (enum pool p = 0; p < POOL__COUNT; p++)
		prometheus_uint(b, "pinfold_pool_containers",
				(struct prometheus_label[]){ { "pool", pool_name(p) }, { 0 } },
				count_containers(m, p));
	prometheus_family(b, "pinfold_shared_pool_empty", "gauge",
			  "Whether shared containers use management CPUs, because no CPU of their "
			  "pool is left.");
	prometheus_uint(b, "pinfold_shared_pool_empty", NULL, manager_shared_is_empty(m, &cpus));
	ledger_free(m->ledger, &cpus);
	prometheus_family(b, "pinfold_exclusive_cpus_free", "gauge",
			  "CPUs that can be assigned exclusively.");
	prometheus_uint(b, "pinfold_exclusive_cpus_free", NULL, cpuset_count(&cpus));
}

static void write_source_metrics(const struct manager *m, struct strbuf *b)
{
	prometheus_family(b, "pinfold_pools_source", "gauge",
			  "Where the pools come from: 1 for the source in effect.");
	for (enum pools_origin o = 0; o < POOLS_FROM__COUNT; o++)
		prometheus_uint(b, "pinfold_pools_source",
				(struct prometheus_label[]){ { "source", pools_origin_name(o) },
							     { 0 } },
				m->status.pools.origin == o);
	prometheus_family(b, "pinfold_profile_state", "gauge",
			  "What the profiles of the cluster say about this node: 1 for the state.");
	for (enum profile_state p = 0; p < PROFILE_STATE__COUNT; p++)
		prometheus_uint(b, "pinfold_profile_state",
				(struct prometheus_label[]){ { "state", profile_state_name(p) },
							     { 0 } },
				m->status.profile.state == p);
}

void status_metrics(const struct manager *m, struct strbuf *b)
{
	const struct prometheus_histogram latency = { manager_bounds_ns, MANAGER_BUCKETS,
						      m->latency.counts, m->latency.sum_ns };

	prometheus_family(b, "pinfold_runtime_connected", "gauge",
			  "Whether the container runtime is connected over NRI.");
	prometheus_uint(b, "pinfold_runtime_connected", NULL, m->runtime.is_connected);
	write_pool_metrics(m, b);
	write_type_metrics(m, b);
	write_source_metrics(m, b);
	prometheus_family(b, "pinfold_containers_placed_total", "counter",
			  "Containers created, by pool.");
	for (enum pool p = 0; p < POOL__COUNT; p++)
		prometheus_uint(b, "pinfold_containers_placed_total",
				(struct prometheus_label[]){ { "pool", pool_name(p) }, { 0 } },
				m->counters.placed[p]);
	for (size_t i = 0; i < ARRAY_LEN(counter_rows); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "pinfold_%s_total", counter_rows[i].name);
		prometheus_family(b, name, "counter", counter_rows[i].help);
		prometheus_uint(b, name, NULL, counter(m, i));
	}
	prometheus_family(b, "pinfold_nri_call_seconds", "histogram",
			  "Time the runtime waited for a response of the agent.");
	prometheus_histogram(b, "pinfold_nri_call_seconds", NULL, &latency);
	if (m->status.host)
		host_metrics(m->status.host, b);
	if (m->status.link)
		node_sync_metrics(m->status.link, b);
	prometheus_process(b);
}
