/* A hash table with a lock that is taken once for each connection, at its start and its end. The
 * counts are atomic: requests only add to them. */

#include "peers.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

void peer_table_init(struct peer_table *t)
{
	(void)pthread_mutex_init(&t->lock, NULL);
	for (size_t i = 0; i < ARRAY_LEN(t->buckets); i++)
		LIST_INIT(&t->buckets[i]);
}

void peer_table_done(struct peer_table *t)
{
	(void)pthread_mutex_destroy(&t->lock);
}

/* An IPv6 client has a /64 at least, so the network counts, not the address. */
void peer_key(const struct sockaddr_storage *address, unsigned char ret[PEER_KEY_BYTES])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in6 in6;
	struct sockaddr_in in4;

	memset(ret, 0, PEER_KEY_BYTES);
	if (address->ss_family == AF_INET6) {
		memcpy(&in6, address, sizeof(in6));
		if (memcmp(&in6.sin6_addr, mapped, sizeof(mapped)) == 0)
			memcpy(ret + 4, (const char *)&in6.sin6_addr + 12, 4);
		else
			memcpy(ret, &in6.sin6_addr, 8);
	} else if (address->ss_family == AF_INET) {
		memcpy(&in4, address, sizeof(in4));
		memcpy(ret + 4, &in4.sin_addr, 4);
	}
}

static struct peer_list *bucket_of(struct peer_table *t, const unsigned char *key)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < PEER_KEY_BYTES; i++)
		hash = (hash ^ key[i]) * 16777619u;
	return &t->buckets[hash % ARRAY_LEN(t->buckets)];
}

struct peer *peer_join(struct peer_table *t, const struct sockaddr_storage *address)
{
	unsigned char key[PEER_KEY_BYTES];
	struct peer_list *bucket;
	struct peer *p;

	peer_key(address, key);
	bucket = bucket_of(t, key);
	pthread_mutex_lock(&t->lock);
	for (p = LIST_FIRST(bucket); p; p = LIST_NEXT(p, link))
		if (memcmp(p->key, key, sizeof(key)) == 0)
			break;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			abort();
		memcpy(p->key, key, sizeof(key));
		LIST_INSERT_HEAD(bucket, p, link);
	}
	p->refs++;
	atomic_store_explicit(&p->n_conns, p->refs, memory_order_relaxed);
	pthread_mutex_unlock(&t->lock);
	return p;
}

void peer_leave(struct peer_table *t, struct peer *p)
{
	bool is_last;

	pthread_mutex_lock(&t->lock);
	is_last = --p->refs == 0;
	atomic_store_explicit(&p->n_conns, p->refs, memory_order_relaxed);
	if (is_last)
		LIST_REMOVE(p, link);
	pthread_mutex_unlock(&t->lock);
	if (is_last)
		free(p);
}

void peer_hold(struct peer_table *t, struct peer *p, size_t before, size_t now)
{
	/* Unsigned arithmetic: adding the difference also subtracts. */
	size_t had = atomic_fetch_add_explicit(&p->bytes, now - before, memory_order_relaxed);
	size_t has = had + (now - before);

	if (!had && has)
		atomic_fetch_add_explicit(&t->n_holding, 1, memory_order_relaxed);
	else if (had && !has)
		atomic_fetch_sub_explicit(&t->n_holding, 1, memory_order_relaxed);
}

size_t peer_bytes(const struct peer *p)
{
	return atomic_load_explicit(&p->bytes, memory_order_relaxed);
}

unsigned peer_conns(const struct peer *p)
{
	return atomic_load_explicit(&p->n_conns, memory_order_relaxed);
}

size_t peer_fair_share(const struct peer_table *t, size_t limit)
{
	unsigned n = atomic_load_explicit(&t->n_holding, memory_order_relaxed);

	return n ? limit / n : limit;
}
