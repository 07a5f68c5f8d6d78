#pragma once

/* When to return memory to the kernel (base/trim.h): the start of the agent and every new
 * connection to the API server need much memory once. Pure. */

#include <stdbool.h>
#include <stdint.h>

struct trim_schedule {
	uint64_t n_ticks;
	uint64_t seen;	  /* connections at the last check */
	uint64_t trimmed; /* 1 + connections when memory was last returned; 0: never */
};

/* Once a second. True when nothing has connected for two seconds since the last new connection, and
 * memory was not returned since then. */
bool trim_schedule_tick(struct trim_schedule *t, uint64_t n_connections);
