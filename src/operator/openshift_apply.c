/* An object that carries the operator's label is its own: it is applied with force, which restores
 * it. One that another controller made is applied without force, so that a field that the other
 * one owns is reported and not fought over. The defaults, which the installer made, are taken over.
 */

#include "openshift_apply.h"

#include "base/arena.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "openshift_objects.h"
#include "snapshot.h"
#include "writes.h"

#define APPLY_INTERVAL_MS 30000

static bool is_same_scalar(yyjson_val *have, yyjson_val *want)
{
	if (doc_is_number(want))
		return doc_is_number(have) && str_eq(doc_text(have), doc_text(want));
	return yyjson_equals(have, want);
}

bool object_contains(yyjson_val *have, yyjson_val *want)
{
	yyjson_val *key, *value;

	if (yyjson_is_arr(want)) {
		size_t n = 0;

		if (yyjson_arr_size(have) != yyjson_arr_size(want))
			return false;
		DOC_EACH_ITEM (want, value)
			if (!object_contains(yyjson_arr_get(have, n++), value))
				return false;
		return yyjson_is_arr(have);
	}
	if (!yyjson_is_obj(want))
		return is_same_scalar(have, want);
	DOC_EACH_PAIR (want, key, value) {
		yyjson_val *other = doc_get(have, doc_str(key));

		/* The API server drops empty objects. */
		if (!other && yyjson_is_obj(value) && !yyjson_obj_size(value))
			continue;
		if (!other || !object_contains(other, value))
			return false;
	}
	return yyjson_is_obj(have);
}

static struct object_ref ref_of(enum operator_kind kind, yyjson_val *object)
{
	return (struct object_ref){ .api = str_from(openshift_api(kind)),
				    .resource = str_from(openshift_resource(kind)),
				    .namespace = doc_str(doc_find(object, "/metadata/namespace")),
				    .name = object_name(object) };
}

/* The stored copy has neither apiVersion nor kind. */
static bool is_applied(yyjson_val *have, yyjson_val *want)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (want, key, value) {
		if (str_eq(doc_str(key), STR("apiVersion")) || str_eq(doc_str(key), STR("kind")))
			continue;
		if (!object_contains(doc_get(have, doc_str(key)), value))
			return false;
	}
	return true;
}

static void apply(const struct operator_snapshot *s, const struct openshift_object *o,
		  struct operator_writes *w)
{
	const struct object_ref ref = ref_of(o->kind, o->want);
	const struct str key = operator_object_key(o->want, s->arena);
	const struct stored_object *stored = object_store_find(&s->stores[o->kind], key);
	yyjson_val *have = stored ? operator_stored_object(stored, s->arena) : NULL;
	const bool is_own = have && operator_object_is_own(have);
	struct operator_write *write;

	if (is_own && is_applied(have, o->want))
		return;
	write = operator_writes_add(w);
	write->key = str_printf(s->arena, "%s " PRI_STR, openshift_resource(o->kind), FMT_STR(key));
	write->what = OPENSHIFT_WRITE;
	write->interval_ms = APPLY_INTERVAL_MS;
	write->kind = o->kind;
	write->object = key;
	write->request = (struct api_request){
		.method = "PATCH",
		.path = is_own || !o->profile ?
				object_apply_path(&ref, STR(NAME_FIELD_MANAGER), s->arena) :
				str_printf(s->arena, PRI_STR "?fieldManager=" NAME_FIELD_MANAGER,
					   FMT_STR(object_path(&ref, s->arena))),
		.content_type = API_PATCH_APPLY
	};
	(void)doc_write_val(o->want, false, s->arena, &write->request.body, NULL);
}

static bool has_profile(const struct operator_snapshot *s, struct str name)
{
	for (size_t i = 0; i < s->n_profiles; i++)
		if (str_eq(s->profiles[i].name, name))
			return !s->profiles[i].is_deleting;
	return false;
}

/* Objects of a profile that has problems stay: only the end of the profile ends them. */
static void delete_orphans(const struct operator_snapshot *s, enum operator_kind kind,
			   struct operator_writes *w)
{
	const struct object_store *store = &s->stores[kind];

	for (size_t i = 0; i < store->n; i++) {
		yyjson_val *object = operator_stored_object(&store->items[i], s->arena);
		const struct str profile =
			doc_str(doc_get(object_annotations(object), STR(NAME_OF_PROFILE)));
		struct object_ref ref = ref_of(kind, object);
		struct operator_write *write;

		if (!operator_object_is_own(object) || !profile.n || has_profile(s, profile) ||
		    doc_find(object, "/metadata/deletionTimestamp"))
			continue;
		write = operator_writes_add(w);
		write->key = str_printf(s->arena, "%s %s", openshift_resource(kind),
					store->items[i].key);
		write->what = "openshift object deletion";
		write->request = (struct api_request){ .method = "DELETE",
						       .path = object_path(&ref, s->arena) };
	}
}

static bool publishes_cores(const struct operator_node *node)
{
	const struct str amount = doc_text(
		doc_get(doc_find(node->object, "/status/allocatable"), STR(NAME_MANAGEMENT_CORES)));

	return amount.n && !str_eq(amount, STR("0"));
}

/* A single node that publishes the resource without the flag was partitioned by an older release.
 */
static bool is_unflagged_single_node(const struct operator_snapshot *s, yyjson_val *status)
{
	const struct str mode = doc_str(doc_get(status, STR(NAME_PARTITIONING_KEY)));

	return str_eq(doc_str(doc_get(status, STR(NAME_TOPOLOGY_KEY))),
		      STR(NAME_TOPOLOGY_SINGLE)) &&
	       (!mode.n || str_eq(mode, STR(NAME_PARTITIONING_NONE))) && s->n_nodes == 1 &&
	       publishes_cores(&s->nodes[0]);
}

static void set_flag(const struct operator_snapshot *s, struct operator_writes *w)
{
	const struct stored_object *o =
		object_store_find(&s->stores[OPERATOR_INFRASTRUCTURES], STR(NAME_INFRASTRUCTURE));
	yyjson_mut_doc *m = doc_build(s->arena);
	yyjson_mut_val *body = yyjson_mut_obj(m);
	struct operator_write *write;

	if (!o || !is_unflagged_single_node(s, doc_get(operator_stored_object(o, s->arena),
						       STR("status"))))
		return;
	doc_put_str(m, doc_put_obj(m, body, STR("status")), STR(NAME_PARTITIONING_KEY),
		    STR(NAME_PARTITIONING_ALL));
	write = operator_writes_merge(
		w, STR("/apis/" NAME_CONFIG_API "/infrastructures/" NAME_INFRASTRUCTURE "/status"),
		body, OPERATOR_INFRASTRUCTURES, STR(NAME_INFRASTRUCTURE));
	write->key = STR("cluster flag");
	write->what = "cluster flag";
}

void reconcile_openshift(const struct operator_snapshot *s, struct operator_writes *w)
{
	if (!s->openshift)
		return;
	set_flag(s, w);
	for (size_t i = 0; i < s->openshift->n; i++)
		apply(s, &s->openshift->items[i], w);
	/* A list of profiles that is not known to be complete deletes nothing. */
	if (!s->has_current_profiles)
		return;
	delete_orphans(s, OPERATOR_MACHINE_CONFIGS, w);
	delete_orphans(s, OPERATOR_KUBELET_CONFIGS, w);
	delete_orphans(s, OPERATOR_TUNEDS, w);
	delete_orphans(s, OPERATOR_RUNTIME_CLASSES, w);
}
