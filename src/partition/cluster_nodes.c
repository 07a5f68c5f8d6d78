#include "cluster_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"

static const char *const fault_names[] = {
	[FAULT_NO_PARTITION] = "NoPartition",
	[FAULT_NO_NODE] = "NoNode",
	[FAULT_NOT_READY] = "NotReady",
	[FAULT_CONFLICT] = "Conflict",
	[FAULT_HOST] = "HostNotConfigured",
	[FAULT_PENDING] = "Pending",
	[FAULT_DRIFT] = "DriftNotCorrected",
	[FAULT_AGENT] = "AgentNotReady",
	[FAULT_SILENT] = "AgentSilent",
	[FAULT_NO_CORES] = "NoCores",
	[FAULT_VERSION] = "VersionDiffers",
	[FAULT_UNREADABLE] = "Unreadable",
	[FAULT_SHARED_EMPTY] = NAME_REASON_SHARED_EMPTY,
};
_Static_assert(ARRAY_LEN(fault_names) == FAULT__COUNT, "every fault has a name");

const char *node_fault_name(enum node_fault fault)
{
	return fault_names[fault];
}

void cluster_nodes_init(struct cluster_nodes *c, struct arena *a)
{
	*c = (struct cluster_nodes){ .a = a };
}

/* A linear search over thousands of nodes for each of them would take long: entries of the same
 * name are merged by cluster_nodes_sort(). */
static struct cluster_node *add(struct cluster_nodes *c, struct str name)
{
	c->items = arena_reserve(c->a, c->items, c->n, &c->cap, sizeof(*c->items));
	c->items[c->n] = (struct cluster_node){ .name = str_dup(c->a, name) };
	return &c->items[c->n++];
}

void cluster_nodes_add_node(struct cluster_nodes *c, yyjson_val *node)
{
	struct cluster_node *n = add(c, object_name(node));
	yyjson_val *ready = object_condition(node, STR("Ready"));
	yyjson_val *agent = object_condition(node, STR(NAME_CONDITION_READY));

	n->exists = true;
	n->is_ready = str_eq(doc_str(doc_get(ready, STR("status"))), STR("True"));
	n->has_cores = doc_get(doc_find(node, "/status/allocatable"),
			       STR(NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX)) != NULL;
	n->agent_status = str_dup(c->a, doc_str(doc_get(agent, STR("status"))));
	n->agent_reason = str_dup(c->a, doc_str(doc_get(agent, STR("reason"))));
	n->agent_message = str_dup(c->a, doc_str(doc_get(agent, STR("message"))));
	(void)object_time_read(doc_str(doc_get(agent, STR("lastHeartbeatTime"))), &n->agent_seen_s);
}

/* One object that cannot be read, of a newer agent perhaps, must not hide all other nodes. */
void cluster_nodes_add_partition(struct cluster_nodes *c, yyjson_val *object)
{
	yyjson_val *copy = doc_freeze(yyjson_val_mut_copy(doc_build(c->a), object), c->a);
	struct cluster_node *n = add(c, object_name(object));
	struct err err = { 0 };

	n->has_partition = true;
	if (node_partition_decode(copy, c->a, &n->partition, &err) < 0)
		n->unreadable = str_dup(c->a, str_from(err.msg));
}

static int by_name(const void *a, const void *b)
{
	const struct cluster_node *x = a, *y = b;
	int r = str_cmp(x->name, y->name);

	return r ? r : (int)y->exists - (int)x->exists; /* the Node before its NodePartition */
}

void cluster_nodes_sort(struct cluster_nodes *c)
{
	size_t n = 0;

	if (!c->n)
		return;
	qsort(c->items, c->n, sizeof(*c->items), by_name);
	for (size_t i = 0; i < c->n; i++) {
		struct cluster_node *last = n ? &c->items[n - 1] : NULL;

		if (last && str_eq(last->name, c->items[i].name)) {
			last->has_partition |= c->items[i].has_partition;
			last->partition = c->items[i].partition;
			last->unreadable = c->items[i].unreadable;
		} else {
			c->items[n++] = c->items[i];
		}
	}
	c->n = n;
}

struct checking {
	const struct cluster_nodes *c;
	const struct cluster_node *node;
	struct node_findings *findings;
	struct str version; /* that most agents have */
	int64_t now_s;
	bool is_strict;
};

static void add_finding(struct checking *k, struct node_finding finding)
{
	struct node_findings *f = k->findings;

	f->items = arena_reserve(k->c->a, f->items, f->n, &f->cap, sizeof(*f->items));
	f->items[f->n++] = finding;
	f->n_notes += finding.is_note;
}

static void report(struct checking *k, enum node_fault fault, struct str text)
{
	add_finding(k, (struct node_finding){ .node = k->node, .fault = fault, .text = text });
}

/* Host files, and restarts for them, that the agent only reports because the profile says so, are
 * no fault of the node (D47). */
static bool is_host_unmanaged(const struct checking *k, const struct node_partition_status *s)
{
	const struct condition *host = &s->conditions[PARTITION_HOST_CONFIGURED];

	return !k->is_strict && host->status == CONDITION_FALSE &&
	       str_eq(host->reason, STR(NAME_REASON_NOT_MANAGED));
}

static struct str explained(struct checking *k, const char *what, struct str reason,
			    struct str message)
{
	struct strbuf b;

	strbuf_init(&b, k->c->a);
	strbuf_printf(&b, "%s", what);
	if (reason.n)
		strbuf_printf(&b, ": " PRI_STR, FMT_STR(reason));
	if (message.n)
		strbuf_printf(&b, ": " PRI_STR, FMT_STR(message));
	return strbuf_str(&b);
}

static void check_conditions(struct checking *k, const struct node_partition_status *s)
{
	const struct condition *ready = &s->conditions[PARTITION_READY];
	const struct condition *conflict = &s->conditions[PARTITION_CONFLICT];
	const struct condition *host = &s->conditions[PARTITION_HOST_CONFIGURED];

	if (ready->status != CONDITION_TRUE)
		report(k, FAULT_NOT_READY,
		       explained(k, "not partitioned as configured", ready->reason,
				 ready->message));
	/* As the profile says, but not without a cost to the platform (D23). */
	else if (str_eq(ready->reason, STR(NAME_REASON_SHARED_EMPTY)))
		add_finding(k, (struct node_finding){ .node = k->node,
						      .fault = FAULT_SHARED_EMPTY,
						      .is_note = !k->is_strict,
						      .text = ready->message });
	if (conflict->status == CONDITION_TRUE)
		report(k, FAULT_CONFLICT,
		       explained(k, "several profiles select the node", conflict->reason,
				 conflict->message));
	if (host->status == CONDITION_FALSE)
		add_finding(k, (struct node_finding){
				       .node = k->node,
				       .fault = FAULT_HOST,
				       .is_note = is_host_unmanaged(k, s),
				       .text = explained(
					       k, "the host is not configured as the profile says",
					       host->reason, host->message) });
}

/* The agent applies only changes with a hash. A resize waits for containers, and a boot parameter
 * contradicts the pools: neither is a host file. */
static bool is_of_host_files(const struct pending_change *c)
{
	return !c->hash.n && c->need != NEED_RESIZE && c->need != NEED_OTHER &&
	       !str_eq(c->reason, STR(PENDING_BOOT_PARAMETER));
}

static void check_pending(struct checking *k, const struct node_partition_status *s,
			  const struct pending_change *change)
{
	const char *what = str_printf(k->c->a, "a change waits for a " PRI_STR,
				      FMT_STR(pending_change_what(change)))
				   .p;

	add_finding(k, (struct node_finding){
			       .node = k->node,
			       .fault = FAULT_PENDING,
			       .is_note = is_of_host_files(change) && is_host_unmanaged(k, s),
			       .text = explained(k, what, change->reason, change->message) });
}

static void check_partition(struct checking *k)
{
	const struct node_partition_status *s = &k->node->partition.status;

	if (!k->node->partition.has_status) {
		report(k, FAULT_NOT_READY, STR("the agent has not reported a status yet"));
		return;
	}
	check_conditions(k, s);
	for (size_t i = 0; i < s->n_pending; i++)
		check_pending(k, s, &s->pending[i]);
	if (s->drift_failed)
		report(k, FAULT_DRIFT,
		       str_printf(k->c->a,
				  "%lld external changes of CPU settings were not corrected",
				  (long long)s->drift_failed));
}

static void check_agent(struct checking *k)
{
	const struct cluster_node *n = k->node;

	if (n->agent_status.n && !str_eq(n->agent_status, STR("True")))
		report(k, FAULT_AGENT,
		       explained(k, "the agent is not ready", n->agent_reason, n->agent_message));
	else if (n->agent_seen_s && k->now_s - n->agent_seen_s > AGENT_SILENT_S)
		report(k, FAULT_SILENT,
		       str_printf(k->c->a, "the agent has not reported for %lld minutes",
				  (long long)(k->now_s - n->agent_seen_s) / 60));
	if (k->c->is_partitioned && !n->has_cores)
		report(k, FAULT_NO_CORES,
		       STR("does not advertise " NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX
			   ": management pods are not scheduled here"));
}

static void check_node(struct checking *k)
{
	const struct str version = k->node->partition.status.agent_version;

	if (!k->node->exists) {
		report(k, FAULT_NO_NODE, STR("there is a NodePartition, but no Node"));
		return;
	}
	if (!k->node->has_partition)
		report(k, FAULT_NO_PARTITION,
		       STR("there is no NodePartition: no agent reports for this node"));
	else if (k->node->unreadable.n)
		report(k, FAULT_UNREADABLE,
		       explained(k, "the NodePartition cannot be read", STR(""),
				 k->node->unreadable));
	else
		check_partition(k);
	check_agent(k);
	if (k->node->has_partition && version.n && !str_eq(version, k->version))
		report(k, FAULT_VERSION,
		       str_printf(k->c->a,
				  "the agent has version " PRI_STR ", most others have " PRI_STR,
				  FMT_STR(version), FMT_STR(k->version)));
}

/* Of equally frequent versions the one that comes first. */
static struct str common_version(const struct cluster_nodes *c)
{
	struct str best = STR("");
	size_t best_n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct str version = c->items[i].partition.status.agent_version;
		size_t n = 0;

		/* A cluster has a few versions, and only the first node of each is counted for. */
		for (size_t j = 0; j < i && n == 0; j++)
			n = str_eq(c->items[j].partition.status.agent_version, version);
		if (n || !version.n)
			continue;
		for (size_t j = i; j < c->n; j++)
			n += str_eq(c->items[j].partition.status.agent_version, version);
		if (n > best_n) {
			best = version;
			best_n = n;
		}
	}
	return best;
}

void cluster_nodes_check(const struct cluster_nodes *c, int64_t now_s, bool is_strict,
			 struct node_findings *ret)
{
	struct checking k = {
		.c = c,
		.findings = ret,
		.version = c->version.n ? c->version : common_version(c),
		.now_s = now_s,
		.is_strict = is_strict,
	};

	*ret = (struct node_findings){ 0 };
	for (size_t i = 0; i < c->n; i++) {
		k.node = &c->items[i];
		check_node(&k);
	}
}
