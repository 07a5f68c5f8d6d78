/* The fingerprint as the podfingerprint library computes it. The scheduler plugin computes it from
 * the pods that it knows on the node: only when both texts are equal, the published numbers include
 * all of them. Every detail of the format therefore counts
 * (docs/reference/podresources.md#pod-fingerprint). */

#include "fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"

void fingerprint_init(struct fingerprint *f)
{
	*f = (struct fingerprint){ 0 };
}

void fingerprint_done(struct fingerprint *f)
{
	free(f->pods);
	*f = (struct fingerprint){ 0 };
}

void fingerprint_add(struct fingerprint *f, struct str pod_namespace, struct str pod_name)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		f->pods = reallocarray(f->pods, f->cap, sizeof(*f->pods));
		if (!f->pods)
			abort();
	}
	f->pods[f->n++] = xxh64(pod_name, xxh64(pod_namespace, 0));
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void fingerprint_sign(struct fingerprint *f, char ret[FINGERPRINT_MAX])
{
	unsigned char *bytes = malloc(f->n * 8 + 1);

	if (!bytes)
		abort();
	if (f->n)
		/* The hashes are sorted, not the names. */
		qsort(f->pods, f->n, sizeof(*f->pods), by_value);
	for (size_t i = 0; i < f->n * 8; i++) /* little-endian on every machine */
		bytes[i] = (unsigned char)(f->pods[i / 8] >> (i % 8 * 8));
	(void)snprintf(ret, FINGERPRINT_MAX, "pfp0v001%016" PRIx64,
		       xxh64((struct str){ (const char *)bytes, f->n * 8 }, 0));
	free(bytes);
}
