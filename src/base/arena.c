#include "arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void arena_done(struct arena *a)
{
	for (struct arena_chunk *c = a->head, *prev; c; c = prev) {
		prev = c->prev;
		free(c);
	}
	arena_init(a, a->limit);
}

/* The largest chunk worth keeping: requests of one kind then settle on one chunk that fits. */
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

	for (struct arena_chunk *c = a->head, *prev; c; c = prev) {
		prev = c->prev;
		if (c != keep)
			free(c);
	}
	arena_init(a, a->limit);
	if (!keep)
		return;
	keep->prev = NULL;
	a->head = keep;
	a->next = keep->data;
	a->end = keep->data + keep->size;
}

/* Chunks double, so a large document costs few mallocs and a small one little memory. */
static void add_chunk(struct arena *a, size_t need)
{
	size_t size = a->head ? a->head->size * 2 : ARENA_FIRST_CHUNK;
	struct arena_chunk *chunk;

	if (size > ARENA_MAX_CHUNK)
		size = ARENA_MAX_CHUNK;
	if (size < need)
		size = need;
	chunk = malloc(sizeof(*chunk) + size);
	if (!chunk) {
		/* CONVENTIONS: process-wide exhaustion aborts, the supervisor restarts us. */
		fputs("pinfold: out of memory\n", stderr);
		abort();
	}
	chunk->prev = a->head;
	chunk->size = size;
	a->head = chunk;
	a->next = chunk->data;
	a->end = chunk->data + size;
}

void *arena_alloc(struct arena *a, size_t size, size_t align)
{
	size_t pad = (size_t)(-(uintptr_t)a->next) & (align - 1);
	char *p;

	assert(align && align <= 16 && !(align & (align - 1)));
	if (a->limit && (size > a->limit || a->used + pad + size > a->limit)) {
		a->is_exhausted = true;
		return NULL;
	}
	if (!a->next || pad + size > (size_t)(a->end - a->next)) {
		add_chunk(a, size);
		pad = 0;
	}
	p = a->next + pad;
	a->next = p + size;
	a->used += pad + size;
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

void *arena_realloc(struct arena *a, void *p, size_t old, size_t size)
{
	char *block = p;
	void *moved;

	if (block && block + old == a->next && size <= old + (size_t)(a->end - a->next)) {
		if (a->limit && size > old && a->used + (size - old) > a->limit) {
			a->is_exhausted = true;
			return NULL;
		}
		a->next = block + size;
		a->used = a->used - old + size;
		return block;
	}
	if (size <= old)
		return block;
	moved = arena_alloc(a, size, 16);
	if (moved && old)
		memcpy(moved, block, old);
	return moved;
}
