#pragma once

/* Memory for one unit of work: a request, an NRI call, a watch event, a render run. All blocks are
 * freed at once, never one by one. With a limit, exceeding it fails that unit of work; when malloc
 * fails, the process aborts. Not for long-lived state that grows: nothing is reused before the
 * arena is reset. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct budget;

struct arena {
	struct arena_chunk *head;
	char *next;   /* first free byte of the newest chunk */
	char *end;    /* one past its last byte */
	size_t limit; /* bytes that may be used before allocation fails; 0 means no limit */
	size_t used;  /* bytes allocated, alignment included */
	bool failed;  /* the limit was exceeded; stays set until the arena is reset */

	/* Chunks beyond `own_bytes` are taken from the budget; see arena_use_budget(). */
	struct budget *budget;
	size_t own_bytes, held_bytes, taken_bytes;
};

void arena_init(struct arena *a, size_t limit);
void arena_done(struct arena *a);

/* From now on the arena takes memory beyond `own_bytes` from the budget and gives it back when it
 * is reset. An exhausted budget fails the unit of work, as the limit does. Before the first
 * allocation. */
void arena_use_budget(struct arena *a, struct budget *budget, size_t own_bytes);

/* Frees all blocks but keeps the largest chunk (up to 256 KiB), so that a loop of requests does not
 * call malloc each time. */
void arena_reset(struct arena *a);

/* NULL only when the limit is exceeded, and from then on always: a unit of work that ran out of
 * memory must not continue with part of its data. `align` is a power of two, at most 16. */
void *arena_alloc(struct arena *a, size_t size, size_t align) __attribute__((alloc_size(2)));
void *arena_zalloc(struct arena *a, size_t size, size_t align) __attribute__((alloc_size(2)));

/* Resizes the block `p` of `old` bytes; the newest block mostly in place. */
void *arena_realloc(struct arena *a, void *p, size_t old, size_t size);

/* Makes space for one more item after `n` items of `size` bytes: returns the same block or, when
 * `n` has reached *cap, a larger block and doubles *cap. NULL as with arena_alloc(). */
void *arena_reserve(struct arena *a, void *items, size_t n, size_t *cap, size_t size);

/* The same for a list without a stored capacity: it is full whenever `n` is a power of two. */
void *arena_one_more(struct arena *a, void *items, size_t n, size_t size);

/* Both zero their memory, so a new struct starts as { 0 }. */
#define arena_new(a, type) ((type *)arena_zalloc((a), sizeof(type), _Alignof(type)))
#define arena_array(a, type, n) ((type *)arena_zalloc_array((a), sizeof(type), (n), _Alignof(type)))

void *arena_zalloc_array(struct arena *a, size_t size, size_t n, size_t align);
