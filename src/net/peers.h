#pragma once

/* Who uses the server how much: connections and memory by client address. When something is short,
 * the address that has most gives way. Shared by the server's threads. Addresses are not
 * identities: an IPv6 client counts by its /64, and NAT makes one of many. */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define PEER_KEY_BYTES 8

struct peer {
	LIST_ENTRY(peer) link;
	unsigned char key[PEER_KEY_BYTES]; /* IPv4: the last four bytes */
	unsigned refs;			   /* connections, under the lock */
	_Atomic unsigned n_conns;	   /* the same, for readers without it */
	_Atomic size_t bytes;		   /* taken from the server's budget */
};

LIST_HEAD(peer_list, peer);

struct peer_table {
	pthread_mutex_t lock;
	struct peer_list buckets[256];
	_Atomic unsigned n_holding; /* peers with memory from the budget */
};

/* The key of an address; of another family than IPv4 and IPv6: all 0. */
void peer_key(const struct sockaddr_storage *address, unsigned char ret[PEER_KEY_BYTES]);

void peer_table_init(struct peer_table *t);
void peer_table_done(struct peer_table *t); /* all peers have left */

/* A connection of this address begins; peer_leave() when it ends. */
struct peer *peer_join(struct peer_table *t, const struct sockaddr_storage *address);
void peer_leave(struct peer_table *t, struct peer *p);

/* Records that its connections hold more or less memory. */
void peer_hold(struct peer_table *t, struct peer *p, size_t before, size_t now);
size_t peer_bytes(const struct peer *p);
unsigned peer_conns(const struct peer *p);

/* What each peer may hold of `limit` bytes while others wait for memory. */
size_t peer_fair_share(const struct peer_table *t, size_t limit);
