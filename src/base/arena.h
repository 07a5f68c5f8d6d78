#pragma once

/* Memory for one unit of work: a request, an NRI call, a watch event, a render run. Everything is
 * freed at once, never piecemeal. With a limit, running out fails that one unit of work; without
 * one, running out aborts the process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	char *next;   /* first free byte of the newest chunk */
	char *end;    /* one past its last byte */
	size_t limit; /* bytes this owner may use before allocation fails; 0 means no limit */
	size_t used;  /* bytes handed out, rounding included */
	bool failed;  /* the limit was reached; stays so until the arena is reset */
};

void arena_init(struct arena *a, size_t limit);
void arena_done(struct arena *a);

/* Forgets everything but keeps the largest chunk (up to 256 KiB), so that a loop of requests does
 * not return to malloc. */
void arena_reset(struct arena *a);

/* NULL only when the limit is reached, and from then on always: a unit of work that ran out once
 * must not go on with half of its data. `align` is a power of two, at most 16. */
void *arena_alloc(struct arena *a, size_t size, size_t align) __attribute__((alloc_size(2)));
void *arena_zalloc(struct arena *a, size_t size, size_t align) __attribute__((alloc_size(2)));

/* Grows or shrinks the block `p` of `old` bytes; the newest one mostly in place. */
void *arena_realloc(struct arena *a, void *p, size_t old, size_t size);

/* Room for one more behind `n` items of `size` bytes each: the same block or, when `n` has reached
 * *cap, a larger one and *cap doubled. NULL as with arena_alloc(). */
void *arena_room(struct arena *a, void *items, size_t n, size_t *cap, size_t size);

/* The same for a list that keeps no capacity: it is full whenever `n` is a power of two. */
void *arena_one_more(struct arena *a, void *items, size_t n, size_t size);

/* Both zero their memory, so a new struct starts as { 0 }. */
#define arena_new(a, type) ((type *)arena_zalloc((a), sizeof(type), _Alignof(type)))
#define arena_array(a, type, n) ((type *)arena_zalloc_array((a), sizeof(type), (n), _Alignof(type)))

void *arena_zalloc_array(struct arena *a, size_t size, size_t n, size_t align);
