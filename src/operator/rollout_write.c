/* The requests of a rollout. Those that take a place name the version of the object that the
 * decision was made from, so that a decision that is out of date is refused, and end on the server
 * before another replica can be the leader. */

#include "base/arena.h"
#include "cluster/lease.h"
#include "kube/names.h"
#include "rollout.h"

/* The holder stops acting LEASE_HOLD_MS after it renewed the Lease; a request that it has just sent
 * must not be executed after the Lease has expired. */
#define FENCE "?timeout=4s"
_Static_assert(LEASE_HOLD_MS + 4000 < LEASE_DURATION_S * 1000, "requests end before the Lease");

#define PODS_INTERVAL_MS 2000

static const char component[] = "pinfold-operator";

static struct str path_of(const char *api, const char *resource, struct str name, struct arena *a)
{
	const struct object_ref ref = { .api = str_from(api),
					.resource = str_from(resource),
					.name = name };

	return str_printf(a, PRI_STR FENCE, FMT_STR(object_path(&ref, a)));
}

static yyjson_mut_val *patch_begin(yyjson_mut_doc *m, yyjson_mut_val *root, struct str version)
{
	yyjson_mut_val *meta = doc_put_obj(m, root, STR("metadata"));

	doc_put_str(m, meta, STR("resourceVersion"), version);
	return meta;
}

static struct object_event *node_event(const struct operator_snapshot *s,
				       const struct operator_node *node, const char *reason,
				       struct str message)
{
	struct object_event *e = arena_new(s->arena, struct object_event);

	*e = (struct object_event){ .api = STR("v1"),
				    .kind = STR("Node"),
				    .name = node->name,
				    .uid = node->name, /* as kubelets do */
				    .reason = str_from(reason),
				    .message = message,
				    .component = str_from(component),
				    .now_s = s->now_s,
				    .random = (uint32_t)s->now_ms };
	return e;
}

/* `value` "": the annotation is removed. */
static void write_node(const struct operator_snapshot *s, const struct operator_node *node,
		       const char *what, const char *annotation, struct str value,
		       const bool *unschedulable, struct operator_writes *w,
		       struct object_event *event)
{
	struct arena *a = s->arena;
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = patch_begin(m, root, node->version);
	yyjson_mut_val *annotations = doc_put_obj(m, meta, STR("annotations"));
	struct operator_write *write;

	doc_put(m, annotations, str_from(annotation),
		value.n ? doc_new_str(m, value) : yyjson_mut_null(m));
	if (unschedulable)
		doc_put(m, doc_put_obj(m, root, STR("spec")), STR("unschedulable"),
			*unschedulable ? yyjson_mut_true(m) : yyjson_mut_null(m));
	write = operator_writes_merge(w, path_of("v1", "nodes", node->name, a), root,
				      OPERATOR_NODES, node->name);
	write->what = what;
	write->key = str_printf(a, "%s " PRI_STR, what, FMT_STR(node->name));
	write->event = event;
}

static void write_cordon(const struct operator_snapshot *s, const struct rollout_node *r,
			 struct operator_writes *w)
{
	const bool yes = true;
	struct str kept = operator_annotation(r->node->annotations, NAME_ROLLOUT);
	struct str value = r->node->is_unschedulable && !kept.n ? STR(NAME_ROLLOUT_KEPT) :
								  STR(NAME_ROLLOUT_CORDONED);

	write_node(s, r->node, "cordon", NAME_ROLLOUT, value, &yes, w,
		   node_event(s, r->node, "RolloutCordoned",
			      str_printf(s->arena,
					 "cordoned for a change that needs it empty: " PRI_STR,
					 FMT_STR(r->change->message))));
}

static void write_uncordon(const struct operator_snapshot *s, const struct rollout_node *r,
			   struct operator_writes *w)
{
	const bool no = false;
	/* A node that an administrator had cordoned before stays so. */
	bool is_ours = str_eq(operator_annotation(r->node->annotations, NAME_ROLLOUT),
			      STR(NAME_ROLLOUT_CORDONED));

	write_node(s, r->node, "uncordon", NAME_ROLLOUT, STR(""), is_ours ? &no : NULL, w,
		   node_event(s, r->node, "RolloutEnded",
			      is_ours ? STR("pods may be scheduled to the node again") :
					STR("the node stays cordoned, as it was before")));
}

static void write_grant(const struct operator_snapshot *s, const struct rollout_node *r,
			const char *what, struct str hash, struct operator_writes *w,
			struct object_event *event)
{
	struct arena *a = s->arena;
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct operator_write *write;

	(void)patch_begin(m, root, r->node->partition->version);
	doc_put(m, doc_put_obj(m, root, STR("spec")), STR("granted"),
		hash.n ? doc_new_str(m, hash) : yyjson_mut_null(m));
	write = operator_writes_merge(
		w, path_of(NAME_PARTITION_API, NAME_PARTITION_RESOURCE, r->node->name, a), root,
		OPERATOR_PARTITIONS, r->node->name);
	write->what = what;
	write->key = str_printf(a, "%s " PRI_STR, what, FMT_STR(r->node->name));
	write->event = event;
}

static void read_pods(const struct rollout_node *r, struct operator_writes *w)
{
	struct operator_write *write = operator_writes_add(w);
	struct str name = r->node->name;

	write->request.method = "GET";
	write->request.path = str_printf(
		w->arena, "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%%3D" PRI_STR,
		FMT_STR(name));
	write->what = "pods of a node";
	write->key = str_printf(w->arena, "pods of " PRI_STR, FMT_STR(name));
	write->kind = OPERATOR_NODE_PODS;
	write->object = name;
	write->interval_ms = PODS_INTERVAL_MS;
}

static void read_again(const struct rollout_node *r, enum operator_kind kind, struct str path,
		       struct operator_writes *w)
{
	struct operator_write *write = operator_writes_add(w);

	write->request.method = "GET";
	write->request.path = path;
	write->what = "check after a failure";
	write->key = str_printf(w->arena, "check of " PRI_STR, FMT_STR(path));
	write->kind = kind;
	write->object = r->node->name;
}

/* The server no longer executes the write that failed. */
static void check_outcome(const struct operator_snapshot *s, const struct rollout_node *r,
			  struct operator_writes *w)
{
	const struct operator_node *node = r->node;

	if (node->node_doubt_ms && s->now_ms >= node->node_doubt_ms)
		read_again(r, OPERATOR_NODES, path_of("v1", "nodes", node->name, s->arena), w);
	if (node->partition_doubt_ms && s->now_ms >= node->partition_doubt_ms)
		read_again(r, OPERATOR_PARTITIONS,
			   path_of(NAME_PARTITION_API, NAME_PARTITION_RESOURCE, node->name,
				   s->arena),
			   w);
}

static void write_eviction(const struct drain_pod *pod, struct operator_writes *w)
{
	struct arena *a = w->arena;
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *part;
	struct operator_write *write = operator_writes_add(w);
	const struct object_ref ref = { .api = STR("v1"),
					.resource = STR("pods"),
					.namespace = pod->namespace,
					.name = pod->name,
					.subresource = STR("eviction") };

	doc_put_str(m, root, STR("apiVersion"), STR("policy/v1"));
	doc_put_str(m, root, STR("kind"), STR("Eviction"));
	part = doc_put_obj(m, root, STR("metadata"));
	doc_put_str(m, part, STR("namespace"), pod->namespace);
	doc_put_str(m, part, STR("name"), pod->name);
	/* Not a pod of the same name that was created meanwhile, perhaps on another node. */
	part = doc_put_obj(m, doc_put_obj(m, root, STR("deleteOptions")), STR("preconditions"));
	doc_put_str(m, part, STR("uid"), pod->uid);
	write->request = (struct api_request){ .method = "POST",
					       .path = object_path(&ref, a),
					       .content_type = API_JSON };
	(void)doc_write(root, false, a, &write->request.body, NULL);
	write->what = "eviction";
	write->key = str_printf(a, "eviction of " PRI_STR "/" PRI_STR, FMT_STR(pod->namespace),
				FMT_STR(pod->name));
	/* A pod that was evicted is seen again until it is gone. */
	write->interval_ms = (uint64_t)PODS_INTERVAL_MS * 2;
}

static void write_drain(const struct rollout_node *r, struct operator_writes *w)
{
	for (size_t i = 0; i < r->drain.n_evict; i++)
		write_eviction(&r->drain.evict[i], w);
	read_pods(r, w);
}

/* Administrators and their tools find the node by this annotation (D37). */
static void write_reboot_required(const struct operator_snapshot *s, const struct rollout_node *r,
				  struct operator_writes *w)
{
	struct str have = operator_annotation(r->node->annotations, NAME_REBOOT_REQUIRED);
	struct str want = !r->reboot ? STR("") : r->reboot->hash.n ? r->reboot->hash : STR("true");

	if (str_eq(have, want))
		return;
	write_node(s, r->node, "reboot sentinel", NAME_REBOOT_REQUIRED, want, NULL, w,
		   r->reboot ? node_event(s, r->node, "RebootRequired", r->reboot->message) : NULL);
}

static void write_step(const struct operator_snapshot *s, const struct rollout_node *r,
		       struct operator_writes *w)
{
	switch (r->step) {
	case ROLLOUT_CHECK:
		check_outcome(s, r, w);
		break;
	case ROLLOUT_CORDON:
		write_cordon(s, r, w);
		break;
	case ROLLOUT_DRAIN:
		write_drain(r, w);
		break;
	case ROLLOUT_GRANT:
		write_grant(s, r, "grant", r->change->hash, w,
			    node_event(s, r->node, "RolloutGranted", r->change->message));
		break;
	case ROLLOUT_WITHDRAW:
		write_grant(s, r, "grant withdrawal", STR(""), w, NULL);
		break;
	case ROLLOUT_UNCORDON:
		write_uncordon(s, r, w);
		break;
	default:
		break;
	}
}

void rollout_write(const struct operator_snapshot *s, const struct rollout *r,
		   struct operator_writes *w)
{
	for (size_t i = 0; i < r->n; i++) {
		write_step(s, &r->nodes[i], w);
		if (r->nodes[i].step != ROLLOUT_CHECK)
			write_reboot_required(s, &r->nodes[i], w);
	}
}
