/* All buffers of connections come through here: bytes are decrypted into one, parsed where they
 * are, and the response is queued in another. */

#include "buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_MIN 1024

void buffer_done(struct buffer *b)
{
	free(b->p);
	*b = (struct buffer){ 0 };
}

size_t buffer_len(const struct buffer *b)
{
	return b->end - b->start;
}

struct str buffer_str(const struct buffer *b)
{
	return (struct str){ b->p ? b->p + b->start : "", b->end - b->start };
}

/* Moves the content to the front when that frees enough space, otherwise doubles the buffer. */
char *buffer_reserve(struct buffer *b, size_t n)
{
	size_t len = buffer_len(b), cap = b->cap ? b->cap : BUFFER_MIN;

	if (b->cap - b->end >= n && b->p)
		return b->p + b->end;
	if (b->start && b->cap - len >= n && b->start >= len) {
		assert(b->p);
		/* No overlap, because at least as many bytes were consumed as are left. That also
		 * bounds the cost: a byte is moved at most once for each byte that was consumed. */
		memcpy(b->p, b->p + b->start, len);
	} else {
		while (cap - len < n)
			cap *= 2;
		if (b->start) {
			assert(b->p);
			memmove(b->p, b->p + b->start, len);
		}
		/* Large blocks are moved by the kernel, without a copy. */
		b->p = realloc(b->p, cap);
		if (!b->p)
			abort();
		b->cap = cap;
	}
	b->start = 0;
	b->end = len;
	return b->p + b->end;
}

void buffer_grow(struct buffer *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

void buffer_add(struct buffer *b, struct str bytes)
{
	if (!bytes.n)
		return;
	memcpy(buffer_reserve(b, bytes.n), bytes.p, bytes.n);
	b->end += bytes.n;
}

void buffer_consume(struct buffer *b, size_t n)
{
	assert(n <= buffer_len(b));
	b->start += n;
	/* An empty buffer starts at the front again, so that a connection with short requests never
	 * reallocates. */
	if (b->start == b->end)
		b->start = b->end = 0;
}

void buffer_trim(struct buffer *b, size_t keep)
{
	if (b->start == b->end && b->cap > keep)
		buffer_done(b);
}
