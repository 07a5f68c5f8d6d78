/* A list of chunks; blocks are cut from the newest by moving a pointer. There is no header per
 * block, so its size is known to the caller only, which passes it to arena_realloc(). */

#include "arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"

/* Chunks stop doubling at 1 MiB, so that the unused end of the last one stays small against the
 * whole. A kept chunk occupies memory while the process is idle, so its limit is lower. */
#define ARENA_FIRST_CHUNK ((size_t)16 << 10)
#define ARENA_MAX_CHUNK ((size_t)1 << 20)
#define ARENA_MAX_KEPT ((size_t)256 << 10)

struct arena_chunk {
	struct arena_chunk *prev;
	size_t size; /* of data */
	_Alignas(16) char data[];
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){ .limit = limit };
}

void arena_use_budget(struct arena *a, struct budget *budget, size_t own_bytes)
{
	assert(!a->head);
	a->budget = budget;
	a->own_bytes = own_bytes;
}

/* Counts chunks of `bytes` in total. False, without a change, when the budget has too little. */
static bool hold(struct arena *a, size_t bytes)
{
	size_t wanted = bytes > a->own_bytes ? bytes - a->own_bytes : 0;

	if (a->budget) {
		if (wanted > a->taken_bytes && !budget_take(a->budget, wanted - a->taken_bytes))
			return false;
		if (wanted < a->taken_bytes)
			budget_give(a->budget, a->taken_bytes - wanted);
		a->taken_bytes = wanted;
	}
	a->held_bytes = bytes;
	return true;
}

static void free_chunks_above(struct arena *a, const struct arena_chunk *keep)
{
	while (a->head != keep) {
		struct arena_chunk *prev = a->head->prev;

		a->held_bytes -= a->head->size;
		free(a->head);
		a->head = prev;
	}
}

/* Without blocks, and nothing failed; limit and budget stay. */
static void start_again(struct arena *a, struct arena_chunk *first)
{
	*a = (struct arena){ .limit = a->limit,
			     .budget = a->budget,
			     .own_bytes = a->own_bytes,
			     .taken_bytes = a->taken_bytes,
			     .head = first };
	(void)hold(a, first ? first->size : 0); /* never more than before */
	if (!first)
		return;
	a->next = first->data;
	a->end = first->data + first->size;
}

void arena_done(struct arena *a)
{
	free_chunks_above(a, NULL);
	start_again(a, NULL);
}

/* The largest chunk up to ARENA_MAX_KEPT: after a few requests of one kind the kept chunk holds a
 * whole request, and no further malloc is needed. */
static struct arena_chunk *chunk_to_keep(const struct arena *a)
{
	struct arena_chunk *best = NULL;

	for (struct arena_chunk *c = a->head; c; c = c->prev)
		if (c->size <= ARENA_MAX_KEPT && (!best || c->size > best->size))
			best = c;
	return best;
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *keep = chunk_to_keep(a);

	if (keep) {
		free_chunks_above(a, keep);
		a->head = keep->prev;
		keep->prev = NULL;
	}
	free_chunks_above(a, NULL);
	start_again(a, keep);
}

static struct arena_chunk *resize_chunk(struct arena_chunk *chunk, size_t size)
{
	chunk = size < PTRDIFF_MAX ? realloc(chunk, sizeof(*chunk) + size) : NULL;
	if (!chunk) {
		/* Exhaustion of the whole process is not handled: systemd or the kubelet restarts
		 * it, and its state is on disk or listed again by the runtime. */
		(void)fputs("pinfold: out of memory\n", stderr);
		abort();
	}
	chunk->size = size;
	return chunk;
}

/* Chunks double, so a large document costs few mallocs and a small one little memory. False when
 * the budget is exhausted. */
static bool add_chunk(struct arena *a, size_t need)
{
	size_t size = a->head ? a->head->size * 2 : ARENA_FIRST_CHUNK;
	struct arena_chunk *chunk;

	if (size > ARENA_MAX_CHUNK)
		size = ARENA_MAX_CHUNK;
	if (size < need)
		size = need;
	if (size < PTRDIFF_MAX && !hold(a, a->held_bytes + size)) {
		a->failed = true;
		return false;
	}
	chunk = resize_chunk(NULL, size);
	chunk->prev = a->head;
	a->head = chunk;
	a->next = chunk->data;
	a->end = chunk->data + size;
	return true;
}

/* Once failed, every later allocation fails too, also one that would fit: the caller checks once at
 * the end and must not get a result with a hole in the middle. */
static bool may_use(struct arena *a, size_t more)
{
	if (a->limit && (more > a->limit || a->used > a->limit - more))
		a->failed = true;
	return !a->failed;
}

void *arena_alloc(struct arena *a, size_t size, size_t align)
{
	/* Bytes up to the next multiple of `align`, which is a power of two: -x modulo align. */
	size_t pad = (size_t)(-(uintptr_t)a->next) & (align - 1);
	size_t need;
	char *p;

	assert(align && align <= 16 && !(align & (align - 1)));
	if (__builtin_add_overflow(pad, size, &need))
		need = SIZE_MAX;
	if (!may_use(a, need))
		return NULL;
	/* The rest of the old chunk is given up. A new chunk starts aligned to 16, the largest
	 * `align`. */
	if (!a->next || need > (size_t)(a->end - a->next)) {
		if (!add_chunk(a, size))
			return NULL;
		pad = 0;
		need = size;
	}
	p = a->next + pad;
	a->next += need;
	a->used += need;
	return p;
}

void *arena_zalloc(struct arena *a, size_t size, size_t align)
{
	void *p = arena_alloc(a, size, align);

	return p ? memset(p, 0, size) : NULL;
}

void *arena_zalloc_array(struct arena *a, size_t size, size_t n, size_t align)
{
	size_t total;

	if (__builtin_mul_overflow(size, n, &total))
		return NULL;
	return arena_zalloc(a, total, align);
}

/* The newest block ends where the free space begins, so it can grow in place. If it is the only
 * block of its chunk, the chunk itself is reallocated: a text of many megabytes then leaves no
 * copies behind. */
static void *resize_newest(struct arena *a, char *block, size_t old, size_t size)
{
	if (size > old && !may_use(a, size - old))
		return NULL;
	if (size > (size_t)(a->end - block)) {
		if (size < PTRDIFF_MAX && !hold(a, a->held_bytes - a->head->size + size)) {
			a->failed = true;
			return NULL;
		}
		a->head = resize_chunk(a->head, size);
		block = a->head->data;
		a->end = block + size;
	}
	a->next = block + size;
	a->used = a->used - old + size;
	return block;
}

void *arena_realloc(struct arena *a, void *p, size_t old, size_t size)
{
	char *block = p;
	void *moved;

	if (block && block + old == a->next &&
	    (size <= (size_t)(a->end - block) || block == a->head->data))
		return resize_newest(a, block, old, size);
	if (block && size <= old)
		return block; /* blocks below others cannot be returned to the chunk */
	/* The type of the items is not known here, so the strictest alignment is used. */
	moved = arena_alloc(a, size, 16);
	if (moved && block)
		memcpy(moved, block, old);
	return moved;
}

void *arena_reserve(struct arena *a, void *items, size_t n, size_t *cap, size_t size)
{
	const size_t wanted = *cap ? *cap * 2 : 8;

	if (n < *cap)
		return items;
	items = arena_realloc(a, items, *cap * size, wanted * size);
	if (items)
		*cap = wanted;
	return items;
}

void *arena_one_more(struct arena *a, void *items, size_t n, size_t size)
{
	/* Capacities are 1, 2, 4, ...: a list of n items is full exactly when n is 0 or a power of
	 * two. */
	if ((n & (n - 1)) != 0)
		return items;
	return arena_realloc(a, items, n * size, (n ? 2 * n : 1) * size);
}
