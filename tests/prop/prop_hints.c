/* Merging over states gives the result of walking the whole product of all lists
 * (docs/reference/topology-manager.md#merge). */

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/hints.h"
#include "cpu/hints_merge.h"
#include "prop.h"

#define MAX_LISTS 4
#define MAX_HINTS 6

struct product {
	const struct hint_rule *rule;
	const struct hint_list *lists;
	size_t n;
	struct numa_hint best;
	bool found;
};

/* One hint of each list, the first list outermost. */
static void walk(struct product *p, size_t depth, const struct numa_hint *chosen)
{
	struct numa_hint merged = { .has_mask = true, .preferred = true };
	uint64_t first = 0;
	bool has_first = false;

	if (depth < p->n) {
		struct numa_hint next[MAX_LISTS];

		for (size_t i = 0; i < depth; i++)
			next[i] = chosen[i];
		for (size_t i = 0; i < p->lists[depth].n; i++) {
			next[depth] = p->lists[depth].items[i];
			walk(p, depth + 1, next);
		}
		return;
	}
	for (unsigned i = 0; i < p->rule->nodes->n; i++)
		merged.mask |= UINT64_C(1) << p->rule->nodes->ids[i];
	for (size_t i = 0; i < p->n; i++) {
		merged.preferred = merged.preferred && chosen[i].preferred;
		if (!chosen[i].has_mask)
			continue;
		if (has_first && chosen[i].mask != first)
			merged.preferred = false;
		first = has_first ? first : chosen[i].mask;
		has_first = true;
		merged.mask &= chosen[i].mask;
	}
	if (hint_is_better(p->rule, p->found ? &p->best : NULL, &merged)) {
		p->best = merged;
		p->found = true;
	}
}

TEST(merging_gives_the_result_of_the_whole_product)
{
	static const uint32_t ids[] = { 0, 1, 2, 5 };
	CLEANUP(arena_done) struct arena a;
	struct prop p;

	arena_init(&a, 0);
	PROP_LOOP (&p) {
		const bool measured = prop_one_in(&p, 2);
		struct numa_hint hints[MAX_LISTS][MAX_HINTS];
		struct hint_list lists[MAX_LISTS] = { 0 };
		uint32_t distances[16];
		struct hint_nodes nodes = { .n = 4, .ids = ids, .distances = distances };
		struct hint_rule rule = { .nodes = &nodes, .prefer_closest = measured };
		struct product product = { .rule = &rule, .lists = lists };
		struct numa_hint got, want = { .mask = 0x27, .has_mask = true };

		for (size_t i = 0; i < 16; i++)
			distances[i] = (uint32_t)prop_between(&p, 10, 13);
		product.n = prop_below(&p, MAX_LISTS + 1);
		for (size_t i = 0; i < product.n; i++) {
			lists[i].items = hints[i];
			lists[i].n = prop_below(&p, MAX_HINTS + 1);
			for (size_t j = 0; j < lists[i].n; j++) {
				hints[i][j].has_mask = !prop_one_in(&p, 6);
				hints[i][j].mask =
					hints[i][j].has_mask ? prop_below(&p, 64) & 0x2f : 0;
				hints[i][j].preferred = !prop_one_in(&p, 3);
			}
		}
		rule.best_non_preferred = hint_best_non_preferred(lists, product.n);
		got = hint_lists_merge(&rule, lists, product.n, &a);
		walk(&product, 0, NULL);
		if (product.found)
			want = product.best;
		CHECK_UINT(got.mask, want.mask);
		CHECK_UINT(got.preferred, want.preferred);
		arena_reset(&a);
	}
}
