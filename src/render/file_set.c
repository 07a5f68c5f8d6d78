#include "file_set.h"

#include "base/arena.h"

void file_set_init(struct file_set *set, struct arena *a)
{
	*set = (struct file_set){ .a = a };
}

const struct rendered_file *file_set_find(const struct file_set *set, struct str path)
{
	for (size_t i = 0; i < set->n; i++)
		if (str_eq(set->items[i].path, path))
			return &set->items[i];
	return NULL;
}

void file_set_add(struct file_set *set, struct str path, unsigned mode, struct str bytes)
{
	const struct rendered_file *old = file_set_find(set, path);

	if (old) {
		set->items[old - set->items] = (struct rendered_file){ old->path, mode, bytes };
		return;
	}
	if (set->n == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 16;

		set->items = arena_realloc(set->a, set->items, set->cap * sizeof(*set->items),
					   cap * sizeof(*set->items));
		set->cap = cap;
	}
	set->items[set->n++] = (struct rendered_file){ path, mode, bytes };
}
