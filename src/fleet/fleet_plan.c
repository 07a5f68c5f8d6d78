/* A decision is a rendering of two profiles, some milliseconds. A fleet has a few kinds of
 * machines, so the result is kept by the hash of what it depends on. */

#include "fleet_plan.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "kube/pod.h"
#include "partition/node_partition.h"
#include "partition/node_profile.h"
#include "partition/profile_select.h"
#include "profile/layout.h"
#include "profile/selector.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/plan.h"
#include "sim/sim_machine.h"

static const char *const effect_names[] = {
	[FLEET_UNTOUCHED] = "untouched", [FLEET_NOTHING] = "nothing", [FLEET_RESTART] = "restart",
	[FLEET_REBOOT] = "reboot",	 [FLEET_INVALID] = "invalid",
};
_Static_assert(ARRAY_LEN(effect_names) == FLEET_EFFECT__COUNT, "every effect has a name");

const char *fleet_effect_name(enum fleet_effect effect)
{
	return effect_names[effect];
}

/* --- which profile a node has and would have --- */

static yyjson_val *selected(yyjson_val *const *profiles, size_t n, yyjson_val *labels,
			    size_t *ret_count, struct arena *a)
{
	size_t *at = arena_array(a, size_t, n + 1);

	*ret_count = profile_select(profiles, n, labels, at);
	return *ret_count == 1 ? profiles[at[0]] : NULL;
}

static bool replaces(yyjson_val *planned, yyjson_val *present, struct arena *a)
{
	return str_eq(object_name(planned), object_name(present)) ||
	       str_eq(labels_format(doc_find(planned, "/spec/nodeSelector"), a),
		      labels_format(doc_find(present, "/spec/nodeSelector"), a));
}

/* The profiles of the cluster, with the planned ones in place of those they replace. */
static size_t merge(const struct fleet_plan *plan, const struct fleet_node *node, struct arena *a,
		    yyjson_val ***ret)
{
	size_t n = 0;

	*ret = arena_array(a, yyjson_val *, plan->n_planned + node->n_profiles + 1);
	for (size_t i = 0; i < plan->n_planned; i++)
		(*ret)[n++] = plan->planned[i];
	for (size_t i = 0; i < node->n_profiles; i++) {
		bool is_replaced = false;

		for (size_t j = 0; j < plan->n_planned; j++)
			is_replaced |= replaces(plan->planned[j], node->profiles[i], a);
		if (!is_replaced)
			(*ret)[n++] = node->profiles[i];
	}
	return n;
}

static bool is_planned(const struct fleet_plan *plan, const yyjson_val *profile)
{
	for (size_t i = 0; i < plan->n_planned; i++)
		if (plan->planned[i] == profile)
			return true;
	return false;
}

/* --- what the difference costs --- */

/* Files of a profile on this machine; none without a profile. False with the reason. */
static bool render(const struct fleet_plan *plan, yyjson_val *profile, const struct topology *t,
		   struct arena *a, struct layout *layout, struct file_set *files,
		   struct str *ret_why)
{
	const struct host_options options = { .distro = plan->distro };
	struct problem_list problems;
	struct err err = { 0 };

	problem_list_init(&problems, a);
	file_set_init(files, a);
	if (!profile)
		return true;
	if (!node_profile_layout(profile, t, a, layout, &problems) || problems.n_errors) {
		*ret_why = node_profile_errors(&problems, a);
		return false;
	}
	if (host_render(layout, &options, files, &problems, &err) < 0) {
		*ret_why = str_dup(a, str_from(err.msg));
		return false;
	}
	if (problems.n_errors)
		*ret_why = node_profile_errors(&problems, a);
	return !problems.n_errors;
}

static enum fleet_effect effect_of(const struct plan *plan)
{
	enum plan_effect highest = PLAN_NOTHING;

	for (size_t i = 0; i < plan->n_files; i++)
		if (plan->files[i].effect > highest)
			highest = plan->files[i].effect;
	return highest == PLAN_REBOOT  ? FLEET_REBOOT :
	       highest == PLAN_RESTART ? FLEET_RESTART :
					 FLEET_NOTHING;
}

static enum fleet_effect compare(const struct fleet_plan *plan, yyjson_val *before,
				 yyjson_val *after, const struct fleet_node *node, struct arena *a,
				 struct str *ret_why)
{
	struct layout *old = arena_new(a, struct layout), *new = arena_new(a, struct layout);
	struct file_set old_files, new_files;
	struct err err = { 0 };
	struct topology t;
	struct manifests none;
	struct plan p;

	manifests_init(&none, a);
	if (sim_topology_guess(node->partition, node->n_cpus, a, &t, &err) < 0) {
		*ret_why = str_dup(a, str_from(err.msg));
		return FLEET_INVALID;
	}
	if (!render(plan, after, &t, a, new, &new_files, ret_why))
		return FLEET_INVALID;
	/* A present profile that cannot be rendered has changed nothing that is known. */
	if (!render(plan, before, &t, a, old, &old_files, ret_why))
		file_set_init(&old_files, a);
	*ret_why = STR("");
	plan_make(&old_files, &new_files, new, &none, a, &p);
	return effect_of(&p);
}

/* --- one decision for each kind of node --- */

static uint64_t hash_object(yyjson_val *v, uint64_t hash, struct arena *a)
{
	struct str text = STR("");

	if (v)
		(void)doc_write_val(v, false, a, &text, NULL);
	return xxh64(text, hash + 1);
}

static uint64_t key_of(const struct fleet_node *node, yyjson_val *before, yyjson_val *after,
		       size_t n_selected, struct arena *a)
{
	const struct node_partition_status *s = node->partition ? &node->partition->status : NULL;
	uint64_t hash = node->n_cpus * 31 + n_selected;

	hash = hash_object(doc_get(before, STR("spec")), hash, a);
	hash = hash_object(doc_find(before, "/metadata/annotations"), hash, a);
	hash = hash_object(doc_get(after, STR("spec")), hash, a);
	for (size_t i = 0; s && i < s->n_numa; i++)
		hash = xxh64(s->numa[i].cpus, hash + (uint64_t)s->numa[i].id);
	return hash;
}

static const struct fleet_decision *remember(struct fleet_plan *plan, struct fleet_decision d)
{
	plan->known =
		arena_reserve(plan->a, plan->known, plan->n_known, &plan->cap_known, sizeof(d));
	d.why = str_dup(plan->a, d.why);
	plan->known[plan->n_known] = d;
	return &plan->known[plan->n_known++];
}

const struct fleet_decision *fleet_plan_node(struct fleet_plan *plan, const struct fleet_node *node)
{
	static const struct fleet_decision untouched = { 0, FLEET_UNTOUCHED, { "", 0 } };
	CLEANUP(arena_done) struct arena a;
	yyjson_val *before, *after, **merged;
	struct fleet_decision d = { .effect = FLEET_INVALID };
	size_t n_before, n_after, n;

	arena_init(&a, 0);
	n = merge(plan, node, &a, &merged);
	before = selected(node->profiles, node->n_profiles, node->labels, &n_before, &a);
	after = selected(merged, n, node->labels, &n_after, &a);
	if (n_after == 0 || (n_after == 1 && !is_planned(plan, after)))
		return &untouched;
	d.key = key_of(node, before, after, n_after, &a);
	for (size_t i = 0; i < plan->n_known; i++)
		if (plan->known[i].key == d.key)
			return &plan->known[i];
	if (n_after > 1)
		d.why = STR("more than one profile would select the node");
	else
		d.effect = compare(plan, before, after, node, &a, &d.why);
	return remember(plan, d);
}
