/* The epoch grows by one with each retired block. A reader notes the epoch at which it entered; a
 * block may be freed when every reader inside has noted a later epoch than the one at which the
 * block was retired, because such a reader can only have found the newer version. */

#include "grace.h"

#include <stdlib.h>
#include <string.h>

void grace_init(struct grace *g, size_t n_readers)
{
	*g = (struct grace){ .n_readers = n_readers };
	/* 0 in a reader means that it is not inside. */
	atomic_store(&g->epoch, 1);
	g->readers = aligned_alloc(_Alignof(struct grace_reader),
				   (n_readers ? n_readers : 1) * sizeof(*g->readers));
	if (!g->readers)
		abort();
	for (size_t i = 0; i < n_readers; i++)
		atomic_init(&g->readers[i].epoch, 0);
}

void grace_done(struct grace *g)
{
	for (size_t i = 0; i < g->n_retired; i++)
		free(g->retired[i].p);
	free(g->retired);
	free(g->readers);
}

void grace_collect(struct grace *g)
{
	uint64_t oldest = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < g->n_readers; i++) {
		uint64_t epoch = atomic_load(&g->readers[i].epoch);

		if (epoch && epoch < oldest)
			oldest = epoch;
	}
	/* Epochs grow, so the list is sorted: the first block in use ends the search. */
	while (n < g->n_retired && g->retired[n].epoch < oldest)
		free(g->retired[n++].p);
	g->n_retired -= n;
	if (n)
		memmove(g->retired, g->retired + n, g->n_retired * sizeof(*g->retired));
}

void grace_retire(struct grace *g, void *p)
{
	if (!p)
		return;
	if (g->n_retired == g->cap_retired) {
		g->cap_retired = g->cap_retired ? 2 * g->cap_retired : 64;
		g->retired = realloc(g->retired, g->cap_retired * sizeof(*g->retired));
		if (!g->retired)
			abort();
	}
	/* A reader that entered before this has this epoch or an older one. */
	g->retired[g->n_retired++] = (struct grace_item){ p, atomic_fetch_add(&g->epoch, 1) };
	/* Not each time: replacing a table retires thousands of blocks, and collecting reads the
	 * epochs of all readers. */
	if (g->n_retired % 64 == 0)
		grace_collect(g);
}
