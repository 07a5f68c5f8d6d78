#include "node_profile.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "profile/layout.h"
#include "profile_select.h"

static struct str annotation_of(const struct profile *profile, struct str name)
{
	return doc_str(doc_get(doc_find(profile->at.object, "/metadata/annotations"), name));
}

/* The poll threads of Open vSwitch are no container, so no pool has their CPUs. */
static void warn_of_ovs(const struct partition *part, struct problem_list *p)
{
	if (!cpuset_is_empty(&part->cpus[PROFILE_OVS_DPDK]))
		problem_warn(p, profile_set_at(part->profile, PROFILE_OVS_DPDK),
			     "containers of the shared pool may run on these CPUs, too");
}

bool partition_pools(const struct partition *part, struct pool_config *ret, struct problem_list *p)
{
	const struct profile *profile = part->profile;
	struct err err = { 0 };
	struct pool_config c;

	pool_config_init(&c);
	c.is_classic = !profile_has_pools(profile);
	if (!profile_pins_nothing(profile)) /* otherwise management pods may use all CPUs */
		c.reserved = part->cpus[PROFILE_RESERVED];
	if (!c.is_classic)
		c.shared = part->cpus[PROFILE_SHARED];
	c.guaranteed = part->cpus[PROFILE_ISOLATED];
	profile_alignment(profile, &c.topology, &c.options);
	c.fold_rest = true;
	c.defers_resize =
		str_eq(annotation_of(profile, STR(NAME_RESIZE)), STR(NAME_POOLS_RESIZE_DEFER));
	for (; c.n_types < profile->n_types; c.n_types++)
		c.types[c.n_types] = profile->types[c.n_types];
	if (pool_config_check(&c, part->topology, &err) < 0) {
		problem_error(p, PROBLEM_AT(profile->at.doc, profile->at.object, NULL), "%s",
			      err.msg);
		return false;
	}
	warn_of_ovs(part, p);
	*ret = c;
	return true;
}

bool node_profile_layout(yyjson_val *profile, const struct topology *t, struct arena *a,
			 struct layout *ret, struct problem_list *p)
{
	const struct pool_topology machine = { .topology = t };
	const struct layout_options options = { .topologies = &machine,
						.n_topologies = 1,
						.plain_hosts = true,
						.allow_split_cores = true };
	struct manifests ms;

	manifests_init(&ms, a);
	manifest_list_add(&ms.profiles, a, (struct manifest){ .object = profile });
	layout_resolve(&ms, &options, a, ret, p);
	return p->n_errors == 0;
}

bool node_profile_pools(yyjson_val *profile, const struct topology *t, struct arena *a,
			struct pool_config *ret, struct problem_list *p)
{
	struct layout layout;

	return node_profile_layout(profile, t, a, &layout, p) &&
	       partition_pools(&layout.partitions[0], ret, p);
}

/* The problems of one level as one text. */
static struct str problems_of(const struct problem_list *p, enum problem_level level,
			      struct arena *a)
{
	const char *before = "";
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < p->n; i++) {
		const struct problem *each = &p->items[i];

		if (each->level != level)
			continue;
		strbuf_printf(&b, "%s" PRI_STR "%s" PRI_STR, before, FMT_STR(each->field),
			      each->field.n ? ": " : "", FMT_STR(each->text));
		before = "; ";
	}
	return strbuf_str(&b);
}

struct str node_profile_errors(const struct problem_list *p, struct arena *a)
{
	return problems_of(p, PROBLEM_ERROR, a);
}

const char *profile_state_name(enum profile_state state)
{
	static const char *const names[] = {
		[PROFILE_UNKNOWN] = "unknown",	 [PROFILE_NONE] = "none",
		[PROFILE_SELECTED] = "selected", [PROFILE_CONFLICT] = "conflict",
		[PROFILE_INVALID] = "invalid",
	};
	_Static_assert(ARRAY_LEN(names) == PROFILE_STATE__COUNT, "every state has a name");

	return names[state];
}

#define TOO_LARGE_KEY "tooLarge" /* of a trimmed profile */

static struct str name_of(yyjson_val *profile)
{
	return doc_str(doc_find(profile, "/metadata/name"));
}

static struct str conflict_message(yyjson_val *const *profiles, const size_t *found, size_t n,
				   struct arena *a)
{
	struct str *names = arena_array(a, struct str, n);
	struct strbuf b;

	for (size_t i = 0; i < n; i++)
		names[i] = name_of(profiles[found[i]]);
	/* The order of a list is not that of a watch, and the message must not change with it. */
	qsort(names, n, sizeof(*names), str_order);
	strbuf_init(&b, a);
	strbuf_add(&b, STR("more than one profile selects the node: "));
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? ", " : "", FMT_STR(names[i]));
	return strbuf_str(&b);
}

void node_profile_decide(yyjson_val *const *profiles, size_t n, yyjson_val *labels,
			 const struct topology *t, struct arena *a, struct node_profile *ret)
{
	size_t *found = arena_array(a, size_t, n);
	const size_t n_found = profile_select(profiles, n, labels, found);
	struct problem_list p;

	*ret = (struct node_profile){ .state = PROFILE_NONE };
	if (n_found > 1) {
		ret->state = PROFILE_CONFLICT;
		ret->message = conflict_message(profiles, found, n_found, a);
	}
	if (n_found != 1)
		return;
	problem_list_init(&p, a);
	ret->profile = profiles[found[0]];
	ret->name = name_of(ret->profile);
	(void)doc_int(doc_find(ret->profile, "/metadata/generation"), &ret->generation);
	ret->state = PROFILE_INVALID;
	if (doc_get(ret->profile, STR(TOO_LARGE_KEY)))
		ret->message = str_printf(a, "the profile is larger than %zu KiB",
					  NODE_PROFILE_MAX_BYTES >> 10);
	else if (node_profile_pools(ret->profile, t, a, &ret->pools, &p)) {
		ret->state = PROFILE_SELECTED;
		ret->message = problems_of(&p, PROBLEM_WARNING, a);
	} else {
		ret->message = node_profile_errors(&p, a);
	}
}

/* Those that a profile is read by (names.h). */
static bool is_own_annotation(struct str name)
{
	return str_starts(name, STR("pinfold.io/")) ||
	       str_starts(name, STR(NAME_PROFILE_ANNOTATION)) ||
	       str_eq(name, STR(NAME_KUBELET_EXPERIMENTAL));
}

static void copy_member(yyjson_mut_doc *m, yyjson_mut_val *to, yyjson_val *from, struct str key)
{
	yyjson_val *v = doc_get(from, key);

	if (v)
		(void)doc_put(m, to, key, yyjson_val_mut_copy(m, v));
}

static void trim_metadata(yyjson_mut_doc *m, yyjson_mut_val *root, yyjson_val *metadata)
{
	yyjson_mut_val *to = doc_put_obj(m, root, STR("metadata")), *annotations;
	yyjson_val *key, *value;

	copy_member(m, to, metadata, STR("name"));
	copy_member(m, to, metadata, STR("uid"));
	copy_member(m, to, metadata, STR("generation"));
	annotations = doc_put_obj(m, to, STR("annotations"));
	DOC_EACH_PAIR (doc_get(metadata, STR("annotations")), key, value)
		if (is_own_annotation(doc_str(key)))
			(void)doc_put(m, annotations, doc_str(key), yyjson_val_mut_copy(m, value));
}

int node_profile_trim(yyjson_val *profile, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	yyjson_val *metadata = doc_get(profile, STR("metadata"));
	int r;

	(void)doc_put_str(m, root, STR("apiVersion"), STR(NAME_PROFILE_API));
	(void)doc_put_str(m, root, STR("kind"), STR(NAME_PROFILE_KIND));
	trim_metadata(m, root, metadata);
	copy_member(m, root, profile, STR("spec"));
	r = doc_write(root, false, a, ret, err);
	if (r < 0 || ret->n <= NODE_PROFILE_MAX_BYTES)
		return r;
	root = yyjson_mut_obj(m);
	(void)doc_put_bool(m, root, STR(TOO_LARGE_KEY), true);
	trim_metadata(m, root, NULL);
	copy_member(m, yyjson_mut_obj_get(root, "metadata"), metadata, STR("name"));
	copy_member(m, yyjson_mut_obj_get(root, "metadata"), metadata, STR("generation"));
	copy_member(m, doc_put_obj(m, root, STR("spec")), doc_get(profile, STR("spec")),
		    STR("nodeSelector"));
	return doc_write(root, false, a, ret, err);
}
