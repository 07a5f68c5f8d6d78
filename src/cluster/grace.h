#pragma once

/* Memory that threads read without locks while one thread replaces it. A reader says when it enters
 * and leaves; the writer publishes a new version first, retires the old one, and it is freed when
 * no reader that could have seen it is still inside. Readers never wait; a reader that stays inside
 * only keeps memory. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct grace_reader {
	_Alignas(64) _Atomic uint64_t epoch; /* 0: outside */
};

struct grace_item {
	void *p;
	uint64_t epoch;
};

struct grace {
	_Atomic uint64_t epoch;
	struct grace_reader *readers;
	size_t n_readers;
	struct grace_item *retired; /* oldest first; the writer's own */
	size_t n_retired, cap_retired;
};

void grace_init(struct grace *g, size_t n_readers);
void grace_done(struct grace *g); /* no reader may be inside */

/* Each reader has a number of its own, from 0; it may be inside only once at a time. */
static inline void grace_enter(struct grace *g, size_t reader)
{
	/* Sequentially consistent, as are the loads of what is published: either the writer sees us
	 * inside, or we see what it published. */
	atomic_store(&g->readers[reader].epoch, atomic_load(&g->epoch));
}

static inline void grace_leave(struct grace *g, size_t reader)
{
	atomic_store_explicit(&g->readers[reader].epoch, 0, memory_order_release);
}

/* The writer only. `p` came from malloc and can no longer be found by who enters from now on. */
void grace_retire(struct grace *g, void *p);
void grace_collect(struct grace *g); /* frees what nobody can see; grace_retire() does, too */
