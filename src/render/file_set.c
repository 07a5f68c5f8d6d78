/* An array in the order of addition, with a hash table of the paths. There are twice as many slots
 * as items, so that probing is short and always ends; a slot is the item's index plus one, and 0 is
 * free. Tables that are outgrown stay in the arena. */

#include "file_set.h"

#include "base/arena.h"
#include "base/hash.h"

void file_set_init(struct file_set *set, struct arena *a)
{
	*set = (struct file_set){ .a = a };
}

/* The slot of a path: its own, or the free one where it belongs. There always is a free one. */
static uint32_t *slot_of(const struct file_set *set, struct str path)
{
	size_t mask = 2 * set->cap - 1;
	size_t at = fnv1a32(FNV1A32_START, path) & mask;

	while (set->slots[at] && !str_eq(set->items[set->slots[at] - 1].path, path))
		at = (at + 1) & mask;
	return &set->slots[at];
}

const struct rendered_file *file_set_find(const struct file_set *set, struct str path)
{
	uint32_t found = set->cap ? *slot_of(set, path) : 0;

	return found ? &set->items[found - 1] : NULL;
}

static void grow(struct file_set *set)
{
	size_t cap = set->cap ? set->cap * 2 : 16; /* a power of two: see slot_of() */

	set->items = arena_realloc(set->a, set->items, set->cap * sizeof(*set->items),
				   cap * sizeof(*set->items));
	set->slots = arena_array(set->a, uint32_t, 2 * cap);
	set->cap = cap;
	for (size_t i = 0; i < set->n; i++)
		*slot_of(set, set->items[i].path) = (uint32_t)i + 1;
}

void file_set_add(struct file_set *set, struct str path, unsigned mode, struct str bytes)
{
	uint32_t *slot;

	if (set->n == set->cap)
		grow(set);
	slot = slot_of(set, path);
	/* The later file wins, as among MachineConfigs; the order does not change. */
	if (*slot) {
		set->items[*slot - 1].mode = mode;
		set->items[*slot - 1].bytes = bytes;
		return;
	}
	set->items[set->n++] = (struct rendered_file){ path, mode, bytes };
	*slot = (uint32_t)set->n;
}

void file_set_copy(struct file_set *to, const struct file_set *from)
{
	for (size_t i = 0; i < from->n; i++)
		file_set_add(to, str_dup(to->a, from->items[i].path), from->items[i].mode,
			     str_dup(to->a, from->items[i].bytes));
}
