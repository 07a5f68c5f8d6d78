/* The merge of hint lists into one mask, with the results of the kubelet and without its cost. The
 * order of candidates is significant: of equally good masks the first one wins. */

#include "hints_merge.h"

#include <string.h>

#include "base/arena.h"

static unsigned bits(uint64_t mask)
{
	return (unsigned)__builtin_popcountll(mask);
}

bool hint_mask_is_narrower(uint64_t a, uint64_t b)
{
	return bits(a) != bits(b) ? bits(a) < bits(b) : a < b;
}

/* A shift by 64 or more is undefined in C, and node ids are not limited to 63 here. */
static bool mask_has(uint64_t mask, uint32_t id)
{
	return id < 64 && (mask >> id & 1);
}

double hint_average_distance(const struct hint_nodes *nodes, uint64_t mask)
{
	double sum = 0, count = 0;

	for (unsigned i = 0; nodes->distances && i < nodes->n; i++)
		for (unsigned j = 0; j < nodes->n; j++) {
			if (!mask_has(mask, nodes->ids[i]) || !mask_has(mask, nodes->ids[j]))
				continue;
			sum += nodes->distances[(size_t)i * nodes->n + j];
			count++;
		}
	return count > 0 ? sum / count : 0;
}

uint64_t hint_closest_mask(const struct hint_nodes *nodes, uint64_t a, uint64_t b)
{
	double distance_a, distance_b;

	if (bits(a) != bits(b))
		return hint_mask_is_narrower(a, b) ? a : b;
	distance_a = hint_average_distance(nodes, a);
	distance_b = hint_average_distance(nodes, b);
	if (distance_a != distance_b)
		return distance_a < distance_b ? a : b;
	return a < b ? a : b;
}

unsigned hint_best_non_preferred(const struct hint_list *lists, size_t n)
{
	unsigned most = 0;

	for (size_t i = 0; i < n; i++) {
		/* Above every possible number of bits: the list has no hint with a mask. */
		unsigned least = 65;

		for (size_t j = 0; j < lists[i].n; j++)
			if (lists[i].items[j].has_mask && bits(lists[i].items[j].mask) < least)
				least = bits(lists[i].items[j].mask);
		if (least <= 64 && least > most)
			most = least;
	}
	return most;
}

/* docs/reference/topology-manager.md#better-fit: true when the candidate fits better. */
static bool fits_better(const struct hint_rule *rule, uint64_t current, uint64_t candidate)
{
	if (current == candidate)
		return false;
	if (rule->prefer_closest)
		return hint_closest_mask(rule->nodes, current, candidate) == candidate;
	return hint_mask_is_narrower(candidate, current);
}

/* Neither is preferred: as close as possible to the number of nodes that is needed anyway. */
static bool is_better_non_preferred(const struct hint_rule *rule, uint64_t current,
				    uint64_t candidate)
{
	const unsigned c = bits(current), k = bits(candidate), wanted = rule->best_non_preferred;

	if (c > wanted || c == k)
		return fits_better(rule, current, candidate);
	if (c == wanted || k > wanted)
		return false;
	return k > c;
}

bool hint_is_better(const struct hint_rule *rule, const struct numa_hint *current,
		    const struct numa_hint *candidate)
{
	if (!candidate->mask)
		return false;
	if (!current)
		return true;
	if (current->preferred != candidate->preferred)
		return candidate->preferred;
	if (candidate->preferred)
		return fits_better(rule, current->mask, candidate->mask);
	return is_better_non_preferred(rule, current->mask, candidate->mask);
}

struct hint_list hint_list_single_numa(const struct hint_list *list, struct arena *a)
{
	struct numa_hint *kept = arena_array(a, struct numa_hint, list->n ? list->n : 1);
	struct hint_list ret = { .items = kept };

	for (size_t i = 0; kept && i < list->n; i++)
		if (list->items[i].preferred &&
		    (!list->items[i].has_mask || bits(list->items[i].mask) <= 1))
			kept[ret.n++] = list->items[i];
	return ret;
}

/* The result of merging one hint of each list so far. Combinations with equal results are equal
 * from here on, so only the first is kept. The kubelet walks all combinations (the product of the
 * list sizes); here the work grows with the number of different masks. */
struct merge_state {
	uint64_t mask;	 /* the intersection of all hints */
	uint64_t common; /* the mask that all hints have; 0 when the result is not preferred */
	bool has_common;
	bool preferred;
};

struct states {
	struct arena *a;
	struct merge_state *items; /* in the kubelet's order of combinations: ties keep the first */
	size_t n, cap;
	uint32_t *slots; /* index + 1 by hash, 0 is empty; 2 * cap of them */
};

static size_t state_slot(const struct states *s, const struct merge_state *x)
{
	uint64_t h = x->mask * UINT64_C(0x9e3779b97f4a7c15) ^
		     x->common * UINT64_C(0xbf58476d1ce4e5b9) ^ (x->preferred ? 128 : 0) ^
		     (x->has_common ? 512 : 0);
	/* Open addressing; the table is at most half full, so that a free slot is always found. */
	size_t at = (size_t)((h ^ h >> 32) & (2 * s->cap - 1));

	for (; s->slots[at]; at = (at + 1) & (2 * s->cap - 1)) {
		const struct merge_state *y = &s->items[s->slots[at] - 1];

		if (y->mask == x->mask && y->common == x->common &&
		    y->has_common == x->has_common && y->preferred == x->preferred)
			break;
	}
	return at;
}

static bool states_grow(struct states *s)
{
	const size_t cap = s->cap ? 2 * s->cap : 64;
	struct merge_state *items =
		arena_realloc(s->a, s->items, s->cap * sizeof(*items), cap * sizeof(*items));
	uint32_t *slots = arena_array(s->a, uint32_t, 2 * cap);

	if (!items || !slots)
		return false;
	s->items = items;
	s->slots = slots;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++)
		s->slots[state_slot(s, &s->items[i])] = (uint32_t)i + 1;
	return true;
}

static void states_add(struct states *s, const struct merge_state *x)
{
	size_t at;

	if (s->n == s->cap && !states_grow(s))
		return; /* a->failed is set; the owner of the arena checks it */
	at = state_slot(s, x);
	if (s->slots[at])
		return;
	s->items[s->n++] = *x;
	s->slots[at] = (uint32_t)s->n;
}

static struct merge_state state_with(const struct merge_state *s, const struct numa_hint *hint)
{
	struct merge_state next = *s;

	if (hint->has_mask) {
		next.preferred = next.preferred && (!s->has_common || s->common == hint->mask);
		next.mask &= hint->mask;
		next.common = hint->mask;
		next.has_common = true;
	}
	next.preferred = next.preferred && hint->preferred;
	if (!next.preferred) {
		next.common = 0;
		next.has_common = false;
	}
	return next;
}

uint64_t hint_nodes_mask(const struct hint_nodes *nodes)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < nodes->n && nodes->ids[i] < 64; i++)
		mask |= UINT64_C(1) << nodes->ids[i];
	return mask;
}

struct numa_hint hint_lists_merge(const struct hint_rule *rule, const struct hint_list *lists,
				  size_t n, struct arena *a)
{
	const uint64_t all = hint_nodes_mask(rule->nodes);
	struct numa_hint best = { .mask = all, .has_mask = true }, *current = NULL;
	struct states states = { .a = a };

	/* Start with all nodes and grow list by list: state s of the lists so far with every hint
	 * of the next list. Iterating the older states outside keeps the kubelet's order of
	 * combinations. */
	states_add(&states, &(struct merge_state){ .mask = all, .preferred = true });
	for (size_t i = 0; i < n; i++) {
		struct states next = { .a = a };

		for (size_t s = 0; s < states.n; s++)
			for (size_t j = 0; j < lists[i].n; j++) {
				struct merge_state with =
					state_with(&states.items[s], &lists[i].items[j]);

				states_add(&next, &with);
			}
		states = next;
	}
	for (size_t s = 0; s < states.n; s++) {
		struct numa_hint candidate = { .mask = states.items[s].mask,
					       .has_mask = true,
					       .preferred = states.items[s].preferred };

		if (hint_is_better(rule, current, &candidate)) {
			best = candidate;
			current = &best;
		}
	}
	return best;
}
