#pragma once

/* A queue of bytes for a connection: written at the end, consumed at the front, freed when empty so
 * that an idle connection holds no memory. Text that a request builds is base/str.h strbuf. */

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

/* Both abort when the process is out of memory (D21); the owner bounds what is queued. */
void buffer_add(struct buffer *b, struct str bytes);
char *buffer_reserve(struct buffer *b,
		     size_t n); /* space for n more bytes; commit with buffer_grow */
void buffer_grow(struct buffer *b, size_t n);

struct str buffer_str(const struct buffer *b);
size_t buffer_len(const struct buffer *b);
void buffer_consume(struct buffer *b, size_t n);

/* Frees an empty buffer that is larger than `keep` bytes. */
void buffer_trim(struct buffer *b, size_t keep);
