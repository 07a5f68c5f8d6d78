#include "arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_FIRST_CHUNK ((size_t)16 << 10)
#define ARENA_MAX_CHUNK ((size_t)1 << 20)

struct arena_chunk {
	struct arena_chunk *prev;
	size_t size; /* of data */
	_Alignas(16) char data[];
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){ .limit = limit };
}

static void free_chunks_above(struct arena *a, const struct arena_chunk *keep)
{
	while (a->head != keep) {
		struct arena_chunk *prev = a->head->prev;

		free(a->head);
		a->head = prev;
	}
}

void arena_done(struct arena *a)
{
	free_chunks_above(a, NULL);
	arena_init(a, a->limit);
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *first = a->head;

	if (!first)
		return;
	while (first->prev)
		first = first->prev;
	free_chunks_above(a, first);
	a->next = first->data;
	a->end = first->data + first->size;
	a->used = 0;
	a->is_exhausted = false;
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
