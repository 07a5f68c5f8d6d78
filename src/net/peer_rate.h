#pragma once

/* How many connections each client address has begun lately. A server with one thread closes those
 * beyond the limit before it reads them, so that a client which connects without a pause does not
 * keep the others waiting. Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "peers.h"

#define PEER_RATE_LIMIT 100 /* connections of one address in a window */
#define PEER_RATE_WINDOW_MS 1000

struct peer_rate {
	struct {
		unsigned char key[PEER_KEY_BYTES];
		uint64_t begin_ms; /* of the window */
		unsigned n;	   /* connections in it; 0: not used */
	} entries[32];
};

/* Counts a connection. False when its address has reached the limit. */
bool peer_rate_allow(struct peer_rate *r, const unsigned char *key, uint64_t now_ms);
