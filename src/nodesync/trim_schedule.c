/* A handshake is recognized by the number of connections, so the connection itself need not report
 * it. Returning memory right after it would be too early: the first lists follow. */

#include "trim_schedule.h"

#define CHECK_TICKS 2

bool trim_schedule_tick(struct trim_schedule *t, uint64_t n_connections)
{
	const bool is_first = t->n_ticks == 0;
	bool is_due;

	/* Not at the first tick: the agent is still starting. */
	if (t->n_ticks++ % CHECK_TICKS != 0 || is_first)
		return false;
	is_due = n_connections == t->seen && n_connections + 1 != t->trimmed;
	if (is_due)
		t->trimmed = n_connections + 1;
	t->seen = n_connections;
	return is_due;
}
