/* Every Node and NodePartition of a cluster. Nodes with the same finding are one finding, so that a
 * thousand nodes stay readable. */

#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "partition/cluster_nodes.h"
#include "partition/node_partition.h"
#include "preflight_cluster.h"
#include "preflight_node.h"

#define NAMES_MAX 5 /* named in a message; the others are counted */

/* Names of nodes for one message. */
struct name_list {
	struct strbuf b;
	size_t n;
};

static void name_list_init(struct name_list *l, struct arena *a)
{
	*l = (struct name_list){ 0 };
	strbuf_init(&l->b, a);
}

static void name_list_add(struct name_list *l, struct str name)
{
	if (l->n++ < NAMES_MAX)
		strbuf_printf(&l->b, "%s" PRI_STR, l->b.n ? ", " : "", FMT_STR(name));
}

static struct str name_list_text(const struct name_list *l, struct arena *a)
{
	if (l->n <= NAMES_MAX)
		return strbuf_str(&l->b);
	return str_printf(a, PRI_STR " and %zu more", FMT_STR(strbuf_str(&l->b)), l->n - NAMES_MAX);
}

static struct str name_of(yyjson_val *node)
{
	return doc_str(doc_find(node, "/metadata/name"));
}

static bool has_condition(yyjson_val *node, struct str type, bool *ret_exists)
{
	yyjson_val *condition = object_condition(node, type);

	*ret_exists = condition != NULL;
	return str_eq(doc_str(doc_get(condition, STR("status"))), STR("True"));
}

static void add_list(struct preflight_report *r, enum preflight_check check,
		     enum preflight_level level, const char *what, const struct name_list *l,
		     struct str remedy)
{
	if (l->n)
		preflight_add(r, check, level,
			      str_printf(r->a, "%s: " PRI_STR, what,
					 FMT_STR(name_list_text(l, r->a))),
			      remedy);
}

static bool is_silent(yyjson_val *node, int64_t now_s)
{
	yyjson_val *condition = object_condition(node, STR(NAME_CONDITION_READY));
	int64_t seen_s;

	return object_time_read(doc_str(doc_get(condition, STR("lastHeartbeatTime"))), &seen_s) &&
	       now_s - seen_s > AGENT_SILENT_S;
}

static void check_ready(yyjson_val *nodes, int64_t now_s, struct preflight_report *r)
{
	struct name_list unready, unpartitioned, no_agent, silent;
	bool exists;
	yyjson_val *node;
	size_t n = 0;

	name_list_init(&unready, r->a);
	name_list_init(&unpartitioned, r->a);
	name_list_init(&no_agent, r->a);
	name_list_init(&silent, r->a);
	DOC_EACH_ITEM (nodes, node) {
		n++;
		if (!has_condition(node, STR("Ready"), &exists))
			name_list_add(&unready, name_of(node));
		if (!has_condition(node, STR(NAME_CONDITION_READY), &exists))
			name_list_add(exists ? &unpartitioned : &no_agent, name_of(node));
		else if (is_silent(node, now_s))
			name_list_add(&silent, name_of(node));
	}
	add_list(r, PREFLIGHT_NODES_READY_CHECK, PREFLIGHT_FAILURE, "nodes are not ready", &unready,
		 STR("kubectl describe node NAME; on the node: systemctl status kubelet"));
	if (!unready.n)
		preflight_add(r, PREFLIGHT_NODES_READY_CHECK, n ? PREFLIGHT_OK : PREFLIGHT_WARNING,
			      str_printf(r->a, PRI_STR " ready",
					 FMT_STR(str_count(r->a, n, "node is", "nodes are"))),
			      n ? STR("") : STR("join nodes to the cluster"));
	add_list(r, PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_FAILURE,
		 "condition " NAME_CONDITION_READY " is not true", &unpartitioned,
		 STR("kubectl describe node NAME shows the reason; on the node: pinfold check"));
	add_list(r, PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_WARNING,
		 "no agent has reported (no condition " NAME_CONDITION_READY ")", &no_agent,
		 STR("kubectl -n pinfold-agent get pods -o wide; a node without pools has no agent "
		     "that runs"));
	add_list(r, PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_FAILURE,
		 "agents have not reported for 15 minutes", &silent,
		 STR("kubectl -n pinfold-agent get pods -o wide; on the node: systemctl status "
		     "pinfold-agent"));
	if (n && !unpartitioned.n && !no_agent.n && !silent.n)
		preflight_add(r, PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_OK,
			      STR("every node is partitioned"), STR(""));
}

/* "containerd://2.0.5". */
static struct runtime_support support_of(yyjson_val *node)
{
	struct str text = doc_str(doc_find(node, "/status/nodeInfo/containerRuntimeVersion"));
	size_t at = 0;

	while (at < text.n && text.p[at] != ':')
		at++;
	return preflight_runtime_support((struct str){ text.p, at }, str_skip(text, at + 3));
}

static void check_versions(yyjson_val *nodes, struct preflight_report *r)
{
	struct name_list no_nri, off, old;
	yyjson_val *node;
	unsigned v[2];
	size_t n = 0;

	name_list_init(&no_nri, r->a);
	name_list_init(&off, r->a);
	name_list_init(&old, r->a);
	DOC_EACH_ITEM (nodes, node) {
		const struct runtime_support s = support_of(node);

		if (!doc_find(node, "/status/nodeInfo/kubeletVersion"))
			continue; /* the kubelet has not reported yet */
		n++;
		if (s.level == PREFLIGHT_FAILURE)
			name_list_add(&no_nri, name_of(node));
		else if (s.nri_is_on == FACT_NO)
			name_list_add(&off, name_of(node));
		if (preflight_version(doc_str(doc_find(node, "/status/nodeInfo/kubeletVersion")),
				      v) &&
		    preflight_is_older(v, 1, 26))
			name_list_add(&old, name_of(node));
	}
	add_list(r, PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_FAILURE,
		 "the container runtime has no NRI", &no_nri,
		 STR("upgrade to containerd 2.0 or CRI-O 1.30, or use the OCI hook"));
	add_list(
		r, PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_WARNING,
		"NRI is off by default in the container runtime", &off,
		STR("turn it on (docs/check.md#nri-enabled), or upgrade to containerd 2.0 or CRI-O "
		    "1.30"));
	add_list(r, PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_FAILURE, "the kubelet is too old",
		 &old, STR("upgrade the kubelet to 1.26 or later"));
	if (n && !no_nri.n && !off.n && !old.n)
		preflight_add(r, PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_OK,
			      STR("kubelets and container runtimes are new enough"), STR(""));
}

/* KubeVirt sets the label from the kubelet's CPU manager, which has policy none where the agent
 * assigns. */
static void check_kubevirt(yyjson_val *nodes, struct preflight_report *r)
{
	struct name_list none;
	bool has_kubevirt = false;
	yyjson_val *node;

	name_list_init(&none, r->a);
	DOC_EACH_ITEM (nodes, node) {
		yyjson_val *labels = doc_find(node, "/metadata/labels");

		if (!doc_get(labels, STR("kubevirt.io/schedulable")))
			continue;
		has_kubevirt = true;
		if (str_eq(doc_str(doc_get(labels, STR("cpumanager"))), STR("false")))
			name_list_add(&none, name_of(node));
	}
	add_list(r, PREFLIGHT_KUBEVIRT_CHECK, PREFLIGHT_WARNING,
		 "KubeVirt's label cpumanager is false: virtual machines with dedicated CPUs stay "
		 "Pending",
		 &none,
		 STR("where they are needed, let the kubelet assign (`pinfold render --cpu-manager "
		     "static`)"));
	if (has_kubevirt && !none.n)
		preflight_add(r, PREFLIGHT_KUBEVIRT_CHECK, PREFLIGHT_OK,
			      STR("virtual machines with dedicated CPUs can be scheduled"),
			      STR(""));
}

/* One finding for a condition of NodePartitions that is true or false against expectation. */
struct partition_lists {
	struct name_list other_version, conflicts;
	size_t n;
};

static void add_partition(struct partition_lists *l, const struct node_partition *p,
			  struct str version)
{
	if (!p->has_status)
		return;
	l->n++;
	if (!str_eq(p->status.agent_version, version))
		name_list_add(&l->other_version, p->name);
	if (p->status.conditions[PARTITION_CONFLICT].status == CONDITION_TRUE)
		name_list_add(&l->conflicts, p->name);
}

static void check_partitions(const struct cluster_facts *f, struct preflight_report *r)
{
	struct partition_lists l = { 0 };
	yyjson_val *item;

	name_list_init(&l.other_version, r->a);
	name_list_init(&l.conflicts, r->a);
	DOC_EACH_ITEM (doc_get(f->objects[PREFLIGHT_PARTITIONS_OBJECT].object, STR("items")),
		       item) {
		struct node_partition p;

		if (node_partition_decode(item, r->a, &p, NULL) == 0)
			add_partition(&l, &p, f->version);
	}
	if (!l.n)
		return;
	add_list(r, PREFLIGHT_AGENT_VERSIONS_CHECK, PREFLIGHT_WARNING,
		 str_printf(r->a, "agents have another version than this program (" PRI_STR ")",
			    FMT_STR(f->version))
			 .p,
		 &l.other_version,
		 STR("finish the upgrade: kubectl -n pinfold-agent rollout status "
		     "daemonset/pinfold-agent"));
	if (!l.other_version.n)
		preflight_add(r, PREFLIGHT_AGENT_VERSIONS_CHECK, PREFLIGHT_OK,
			      str_printf(r->a, "all agents have version " PRI_STR,
					 FMT_STR(f->version)),
			      STR(""));
	add_list(r, PREFLIGHT_PROFILES_CHECK, PREFLIGHT_FAILURE,
		 "more than one PerformanceProfile selects the node", &l.conflicts,
		 STR("change spec.nodeSelector of the profiles; the last profile stays in force"));
	if (!l.conflicts.n)
		preflight_add(r, PREFLIGHT_PROFILES_CHECK, PREFLIGHT_OK,
			      STR("no node is selected by two profiles"), STR(""));
}

/* A node whose agent is missing is not pinned, so that one missing is a failure. Agents that are
 * systemd units have no DaemonSet. */
static void check_agent_pods(const struct object_fact *o, struct preflight_report *r)
{
	int64_t generation = 0, observed = 0, wanted = 0, ready = 0;
	enum preflight_level level;

	if (!o->object && o->err.code == ENOENT)
		return;
	if (!o->object) {
		preflight_add(r, PREFLIGHT_AGENT_PODS_CHECK, PREFLIGHT_NOTE,
			      str_printf(r->a, "not checked: %s", o->err.msg),
			      STR("use credentials that may read DaemonSet "
				  "pinfold-agent/pinfold-agent"));
		return;
	}
	(void)doc_int(doc_find(o->object, "/metadata/generation"), &generation);
	(void)doc_int(doc_find(o->object, "/status/observedGeneration"), &observed);
	(void)doc_int(doc_find(o->object, "/status/desiredNumberScheduled"), &wanted);
	(void)doc_int(doc_find(o->object, "/status/numberReady"), &ready);
	level = observed < generation || ready < wanted ? PREFLIGHT_FAILURE :
		!wanted					? PREFLIGHT_WARNING :
							  PREFLIGHT_OK;
	preflight_add(
		r, PREFLIGHT_AGENT_PODS_CHECK, level,
		observed < generation ?
			STR("the DaemonSet of the agent is new or has changed, and its pods "
			    "have not been created yet") :
			str_printf(r->a, "%" PRId64 " of %" PRId64 " agent pods are ready", ready,
				   wanted),
		level == PREFLIGHT_OK ?
			STR("") :
			STR("kubectl -n pinfold-agent describe pods; kubectl -n pinfold-agent "
			    "logs daemonset/pinfold-agent"));
}

void preflight_nodes(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct object_fact *list = &f->objects[PREFLIGHT_NODES_OBJECT];
	yyjson_val *nodes = doc_get(list->object, STR("items"));

	check_agent_pods(&f->objects[PREFLIGHT_DAEMONSET_OBJECT], r);
	if (!list->object) {
		preflight_add(r, PREFLIGHT_NODES_READY_CHECK, PREFLIGHT_NOTE,
			      str_printf(r->a, "not checked: %s", list->err.msg),
			      STR("use credentials that may list nodes"));
		return;
	}
	check_ready(nodes, f->now_s, r);
	check_versions(nodes, r);
	check_kubevirt(nodes, r);
	check_partitions(f, r);
}
