#pragma once

/* A queue of bytes for a connection: written at the end, consumed at the front, freed when empty so
 * that an idle connection holds no memory. Not for text that a request builds: that is strbuf. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct buffer {
	char *p;
	size_t start; /* bytes already consumed */
	size_t end;   /* one past the last byte */
	size_t cap;
};

void buffer_done(struct buffer *b);

/* Both abort when the process is out of memory: what may be queued is bounded by the owner. */
void buffer_add(struct buffer *b, struct str bytes);
char *buffer_reserve(struct buffer *b, size_t n); /* room for n more; commit with buffer_grow */
void buffer_grow(struct buffer *b, size_t n);

struct str buffer_str(const struct buffer *b);
size_t buffer_len(const struct buffer *b);
void buffer_consume(struct buffer *b, size_t n);

/* Gives back the memory of an empty buffer that has more than `keep` bytes of it. */
void buffer_trim(struct buffer *b, size_t keep);
