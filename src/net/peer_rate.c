/* A fixed table: clients of a port are few. An address that is not in it replaces the one whose
 * window began first, so that many addresses are let in rather than remembered. */

#include "peer_rate.h"

#include <stddef.h>
#include <string.h>

#include "base/macro.h"

bool peer_rate_allow(struct peer_rate *r, const unsigned char *key, uint64_t now_ms)
{
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_LEN(r->entries); i++) {
		if (r->entries[i].n && memcmp(r->entries[i].key, key, PEER_KEY_BYTES) == 0) {
			at = i;
			break;
		}
		if (!r->entries[i].n ||
		    (r->entries[at].n && r->entries[i].begin_ms < r->entries[at].begin_ms))
			at = i;
	}
	if (!r->entries[at].n || memcmp(r->entries[at].key, key, PEER_KEY_BYTES) != 0 ||
	    now_ms - r->entries[at].begin_ms >= PEER_RATE_WINDOW_MS) {
		memcpy(r->entries[at].key, key, PEER_KEY_BYTES);
		r->entries[at].begin_ms = now_ms;
		r->entries[at].n = 0;
	}
	return r->entries[at].n < PEER_RATE_LIMIT && ++r->entries[at].n;
}
