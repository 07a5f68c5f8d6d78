#pragma once

/* A count of bytes that several threads take from and give back to. Who takes memory for foreign
 * input takes its size here first, so that the sum over the process is bounded. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
	size_t limit;
	_Atomic size_t used;
};

static inline size_t budget_used(const struct budget *b)
{
	return atomic_load_explicit(&b->used, memory_order_relaxed);
}

/* Takes the bytes even where that exceeds the limit: for memory that is in use already. */
static inline void budget_force(struct budget *b, size_t n)
{
	atomic_fetch_add_explicit(&b->used, n, memory_order_relaxed);
}

static inline void budget_give(struct budget *b, size_t n)
{
	atomic_fetch_sub_explicit(&b->used, n, memory_order_relaxed);
}

static inline bool budget_take(struct budget *b, size_t n)
{
	const size_t before = atomic_fetch_add_explicit(&b->used, n, memory_order_relaxed);

	if (n <= b->limit && before <= b->limit - n)
		return true;
	budget_give(b, n);
	return false;
}
