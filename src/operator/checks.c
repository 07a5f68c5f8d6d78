/* An Event of a finding is a write of its own key with a long interval: the writer sends it once an
 * hour as long as the finding lasts. */

#include "checks.h"

#include <string.h>

#include "base/arena.h"
#include "findings.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "openshift_objects.h"
#include "reconcile.h"

#define JOINING_S 120
#define EVENT_INTERVAL_MS ((uint64_t)3600 * 1000)

bool cluster_is_partitioned(const struct operator_snapshot *s)
{
	const struct stored_object *o =
		object_store_find(&s->stores[OPERATOR_INFRASTRUCTURES], STR(NAME_INFRASTRUCTURE));

	return o && str_eq(doc_str(doc_find(operator_stored_object(o, s->arena),
					    "/status/" NAME_PARTITIONING_KEY)),
			   STR(NAME_PARTITIONING_ALL));
}

static bool is_joining(const struct operator_snapshot *s, const struct operator_node *node)
{
	int64_t created_s;

	return object_time_read(doc_str(doc_find(node->object, "/metadata/creationTimestamp")),
				&created_s) &&
	       s->now_s - created_s < JOINING_S;
}

static bool has_resource(const struct operator_node *node)
{
	yyjson_val *list = doc_find(node->object, "/status/allocatable");
	const struct str amount = doc_text(doc_get(list, STR(NAME_MANAGEMENT_CORES)));

	return amount.n && !str_eq(amount, STR("0"));
}

void check_nodes(const struct operator_snapshot *s, struct cluster_findings *f)
{
	if (!cluster_is_partitioned(s))
		return;
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct operator_node *node = &s->nodes[i];

		if (has_resource(node) || is_joining(s, node))
			continue;
		cluster_findings_add(
			f, &(struct cluster_finding){
				   .check = CLUSTER_NODE_RESOURCE,
				   .api = STR("v1"),
				   .kind = STR("Node"),
				   .name = node->name,
				   .uid = node->uid,
				   .problem = STR("the cluster partitions all nodes, and this one "
						  "does not publish " NAME_MANAGEMENT_CORES) });
	}
}

static void add_profile(struct cluster_findings *f, enum cluster_check check,
			const struct operator_profile *p, struct str problem)
{
	cluster_findings_add(f, &(struct cluster_finding){ .check = check,
							   .api = STR(NAME_PROFILE_API),
							   .kind = STR(NAME_PROFILE_KIND),
							   .name = p->name,
							   .uid = p->uid,
							   .problem = problem });
}

/* Another profile that selects the node. */
static const struct operator_profile *find_other(const struct operator_snapshot *s,
						 const struct operator_profile *p,
						 const struct operator_node *node)
{
	for (size_t i = 0; i < s->n_profiles; i++)
		if (&s->profiles[i] != p && !s->profiles[i].is_deleting &&
		    operator_profile_selects(s, &s->profiles[i], node))
			return &s->profiles[i];
	return NULL;
}

static void check_profile(const struct operator_snapshot *s, const struct operator_profile *p,
			  struct cluster_findings *f)
{
	const struct operator_node *shared = NULL;
	size_t n_selected = 0, n_shared = 0;

	for (size_t i = 0; i < s->n_nodes; i++) {
		if (!operator_profile_selects(s, p, &s->nodes[i]))
			continue;
		n_selected++;
		if (s->nodes[i].n_profiles < 2)
			continue;
		shared = n_shared++ ? shared : &s->nodes[i];
	}
	if (!n_selected)
		add_profile(f, CLUSTER_PROFILE_NODES, p,
			    yyjson_obj_size(doc_find(p->object, "/spec/nodeSelector")) ?
				    STR("no node has the labels of spec.nodeSelector") :
				    STR("spec.nodeSelector is empty and selects no node"));
	if (shared)
		add_profile(f, CLUSTER_PROFILE_OVERLAP, p,
			    str_printf(s->arena,
				       "node " PRI_STR " is also selected by profile " PRI_STR
				       "; nodes with several profiles: %zu",
				       FMT_STR(shared->name),
				       FMT_STR(find_other(s, p, shared)->name), n_shared));
}

void check_profiles(const struct operator_snapshot *s, struct cluster_findings *f)
{
	for (size_t i = 0; i < s->n_profiles; i++)
		if (!s->profiles[i].is_deleting)
			check_profile(s, &s->profiles[i], f);
}

/* Profiles that cannot become OpenShift objects. */
static void check_objects(const struct operator_snapshot *s, struct cluster_findings *f)
{
	for (size_t i = 0; s->openshift && i < s->openshift->n_problems; i++)
		add_profile(f, CLUSTER_PROFILE_OBJECTS, s->openshift->problems[i].profile,
			    s->openshift->problems[i].text);
}

void check_cluster(const struct operator_snapshot *s, struct cluster_findings *f)
{
	check_nodes(s, f);
	check_profiles(s, f);
	check_objects(s, f);
	if (s->scanned)
		cluster_findings_append(f, s->scanned);
}

static void add_event(const struct operator_snapshot *s, const struct cluster_finding *finding,
		      struct operator_writes *w)
{
	const struct object_event event = { .api = finding->api,
					    .kind = finding->kind,
					    .namespace = finding->namespace,
					    .name = finding->name,
					    .uid = finding->uid,
					    .reason =
						    str_from(cluster_checks[finding->check].reason),
					    .message = finding->problem,
					    .component = STR("pinfold-operator"),
					    .is_warning = true,
					    .now_s = s->now_s,
					    .random = (uint32_t)w->n };
	struct str path, body;
	struct operator_write *write;

	if (object_event_write(&event, w->arena, &path, &body, NULL) < 0)
		return;
	write = operator_writes_add(w);
	write->key = str_printf(w->arena, "%s " PRI_STR "/" PRI_STR,
				cluster_checks[finding->check].reason, FMT_STR(finding->namespace),
				FMT_STR(finding->name));
	write->what = "check event";
	write->interval_ms = EVENT_INTERVAL_MS;
	write->request = (struct api_request){
		.method = "POST", .path = path, .content_type = API_JSON, .body = body
	};
}

void reconcile_checks(const struct operator_snapshot *s, struct operator_writes *w,
		      struct reconcile_figures *figures)
{
	struct cluster_findings found = { .arena = s->arena };

	check_cluster(s, &found);
	for (size_t i = 0; i < found.n; i++)
		add_event(s, &found.items[i], w);
	memcpy(figures->findings, found.counts, sizeof(figures->findings));
}
