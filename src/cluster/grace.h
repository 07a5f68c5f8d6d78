#pragma once

/* Epoch-based reclamation: threads read memory without locks while one thread replaces it. Readers
 * enter and leave a critical section; the writer publishes the new version, then retires the old
 * one, which is freed when every reader that entered before has left. Readers never wait; a reader
 * that stays inside only delays freeing. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct grace_reader {
	_Alignas(64) _Atomic uint64_t epoch; /* 0: not inside */
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
	/* Sequentially consistent, like the loads of published pointers: either the writer sees
	 * this reader inside, or this reader sees what the writer published. */
	atomic_store(&g->readers[reader].epoch, atomic_load(&g->epoch));
}

static inline void grace_leave(struct grace *g, size_t reader)
{
	atomic_store_explicit(&g->readers[reader].epoch, 0, memory_order_release);
}

/* The writer only. `p` came from malloc and is no longer reachable for readers that enter from now
 * on. */
void grace_retire(struct grace *g, void *p);
void grace_collect(
	struct grace *g); /* frees what no reader can see; grace_retire() calls it, too */
