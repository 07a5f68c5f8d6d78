/* Lists first, then expressions that select a part, then the one that selects the rest: an
 * expression must not select a CPU that another set names by number. */

#include "resolve.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "layout.h"
#include "topology_expr.h"

/* Which set selects first when several are expressions: the platform's, as it needs CPU 0. */
static const enum profile_set_id order[] = { PROFILE_RESERVED, PROFILE_SHARED, PROFILE_OVS_DPDK,
					     PROFILE_OFFLINED, PROFILE_ISOLATED };

static bool resolve_one(struct partition *part, enum profile_set_id id,
			const struct topology_expr *expr, struct arena *a, struct problem_list *p)
{
	struct cpuset left = part->topology->online;
	struct err err = { 0 };

	for (int other = 0; other < PROFILE_SET__COUNT; other++)
		cpuset_minus(&left, &part->cpus[other]);
	if (topology_expr_resolve(expr, part->topology, &left, &part->cpus[id], &err) < 0) {
		problem_error(p, profile_set_at(part->profile, id), "%s", err.msg);
		return false;
	}
	part->text[id] = cpuset_format(&part->cpus[id], a);
	return true;
}

/* Whether the set is an expression, with "rest" or without. The profile's reader reported those
 * that do not parse. */
static bool find_expression(const struct profile *profile, enum profile_set_id id, bool rest,
			    struct arena *a, struct topology_expr *ret)
{
	const struct profile_set *set = &profile->sets[id];

	return !set->is_list && topology_expr_parse(set->text, a, ret, NULL) >= 0 &&
	       topology_expr_has_rest(ret) == rest;
}

static bool resolve_pass(struct partition *part, bool rest, struct arena *a, struct problem_list *p)
{
	bool ok = true;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct topology_expr expr;

		if (find_expression(part->profile, order[i], rest, a, &expr))
			ok &= resolve_one(part, order[i], &expr, a, p);
	}
	return ok;
}

static void check_rest(const struct profile *profile, struct arena *a, struct problem_list *p)
{
	struct topology_expr expr;
	bool seen = false;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		if (!find_expression(profile, order[i], true, a, &expr))
			continue;
		if (seen)
			problem_error(p, profile_set_at(profile, order[i]),
				      "only one set can take the rest");
		seen = true;
	}
}

bool partition_take_lists(struct partition *part, struct arena *a, struct problem_list *p)
{
	bool are_all = true;

	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		const struct profile_set *set = &part->profile->sets[id];

		are_all &= set->is_list;
		if (!set->is_list)
			continue;
		part->cpus[id] = set->cpus;
		part->text[id] = set->text;
	}
	check_rest(part->profile, a, p);
	return are_all;
}

bool partition_resolve(struct partition *part, struct arena *a, struct problem_list *p)
{
	if (partition_take_lists(part, a, p))
		return true;
	for (int id = 0; !part->topology && id < PROFILE_SET__COUNT; id++)
		if (!part->profile->sets[id].is_list)
			problem_error(p, profile_set_at(part->profile, (enum profile_set_id)id),
				      "a topology expression requires the machine's topology "
				      "(--topology)");
	return part->topology && resolve_pass(part, false, a, p) && resolve_pass(part, true, a, p);
}
