#include "resolve.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "layout.h"
#include "topology_expr.h"

/* Who chooses first when several sets are expressions. */
static const enum profile_set_id order[] = { PROFILE_RESERVED, PROFILE_SHARED, PROFILE_OVS_DPDK,
					     PROFILE_OFFLINED, PROFILE_ISOLATED };

static struct problem_at at_set(const struct partition *part, enum profile_set_id id)
{
	return PROBLEM_AT(part->profile->at.doc, part->profile->sets[id].value,
			  profile_set_field(id));
}

static bool resolve_one(struct partition *part, enum profile_set_id id,
			const struct topology_expr *expr, struct arena *a, struct problem_list *p)
{
	struct cpuset left = part->topology->online;
	struct err err = { 0 };

	for (int other = 0; other < PROFILE_SET__COUNT; other++)
		cpuset_minus(&left, &part->cpus[other]);
	if (topology_expr_resolve(expr, part->topology, &left, &part->cpus[id], &err) < 0) {
		problem_error(p, at_set(part, id), "%s", err.msg);
		return false;
	}
	part->text[id] = cpuset_format(&part->cpus[id], a);
	return true;
}

/* One pass for what takes a part, one for what takes the rest. */
static bool resolve_pass(struct partition *part, bool rest, struct arena *a, struct problem_list *p)
{
	bool ok = true, seen = false;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct profile_set *set = &part->profile->sets[order[i]];
		struct topology_expr expr;

		if (set->is_list || topology_expr_parse(set->text, a, &expr, NULL) < 0 ||
		    topology_expr_has_rest(&expr) != rest)
			continue;
		if (rest && seen)
			problem_error(p, at_set(part, order[i]), "only one set can take the rest");
		seen = true;
		ok &= resolve_one(part, order[i], &expr, a, p);
	}
	return ok;
}

bool partition_resolve(struct partition *part, struct arena *a, struct problem_list *p)
{
	bool needs_topology = false;

	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		const struct profile_set *set = &part->profile->sets[id];

		if (set->is_list) {
			part->cpus[id] = set->cpus;
			part->text[id] = set->text;
			continue;
		}
		needs_topology = true;
		if (!part->topology)
			problem_error(p, at_set(part, (enum profile_set_id)id),
				      "a topology expression requires the machine's topology "
				      "(--topology)");
	}
	if (!needs_topology)
		return true;
	return part->topology && resolve_pass(part, false, a, p) && resolve_pass(part, true, a, p);
}
