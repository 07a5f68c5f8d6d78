/* Blocks have a power of two as size and a header with its exponent. A freed block goes to the
 * list of its size; the region never shrinks. Of a freed block only that list is copied: most of
 * the region are arenas that are freed at the end of a step. */

#include "heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REGION_SIZE ((size_t)16 << 20)
#define CLASSES 25

struct header {
	_Alignas(16) unsigned class; /* keeps malloc's alignment */
	bool is_free;
};
#define HEADER sizeof(struct header)

struct region {
	size_t used;
	void *free_lists[CLASSES]; /* by exponent; the first bytes of a free block are the next */
	_Alignas(16) char bytes[REGION_SIZE];
};

static struct region region;
static bool is_used;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void heap_use(bool is_on)
{
	is_used = is_on;
}

void heap_reset(void)
{
	region.used = 0;
	memset(region.free_lists, 0, sizeof(region.free_lists));
}

static size_t region_head(void)
{
	return offsetof(struct region, bytes);
}

static void copy_blocks(const char *from, char *to, size_t n)
{
	struct header h;

	memcpy(to, from, region_head());
	for (size_t at = region_head(); at < n; at += HEADER + ((size_t)1 << h.class)) {
		memcpy(&h, from + at, HEADER);
		memcpy(to + at, from + at,
		       HEADER + (h.is_free ? sizeof(void *) : (size_t)1 << h.class));
	}
}

void heap_save(struct heap_copy *ret)
{
	ret->n = region_head() + region.used;
	if (ret->n > ret->cap) {
		ret->cap = ret->n * 2;
		__real_free(ret->bytes);
		ret->bytes = __real_malloc(ret->cap);
		if (!ret->bytes)
			abort();
	}
	copy_blocks((char *)&region, ret->bytes, ret->n);
}

void heap_restore(const struct heap_copy *from)
{
	copy_blocks(from->bytes, (char *)&region, from->n);
}

void heap_copy_done(struct heap_copy *c)
{
	__real_free(c->bytes);
	*c = (struct heap_copy){ 0 };
}

static bool is_ours(const void *p)
{
	const char *c = p;

	return c >= region.bytes && c < region.bytes + REGION_SIZE;
}

static struct header *header_of(void *p)
{
	return (struct header *)((char *)p - HEADER);
}

void *__wrap_malloc(size_t n)
{
	unsigned class = 5;
	void *p;

	if (!is_used)
		return __real_malloc(n);
	while (((size_t)1 << class) < n)
		class ++;
	if (class >= CLASSES)
		abort();
	p = region.free_lists[class];
	if (p) {
		memcpy(&region.free_lists[class], p, sizeof(void *));
		header_of(p)->is_free = false;
		return p;
	}
	if (region.used + HEADER + ((size_t)1 << class) > REGION_SIZE)
		abort();
	p = region.bytes + region.used + HEADER;
	region.used += HEADER + ((size_t)1 << class);
	*header_of(p) = (struct header){ .class = class };
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p;

	if (!is_used)
		return __real_calloc(n, size);
	if (size && n > REGION_SIZE / size)
		abort();
	p = __wrap_malloc(n * size);
	memset(p, 0, n * size);
	return p;
}

void __wrap_free(void *p)
{
	if (!p)
		return;
	if (!is_ours(p)) {
		__real_free(p);
		return;
	}
	memcpy(p, &region.free_lists[header_of(p)->class], sizeof(void *));
	region.free_lists[header_of(p)->class] = p;
	header_of(p)->is_free = true;
}

void *__wrap_realloc(void *p, size_t n)
{
	size_t size;
	void *q;

	if (!p)
		return __wrap_malloc(n);
	if (!is_ours(p))
		return __real_realloc(p, n);
	size = (size_t)1 << header_of(p)->class;
	if (n <= size)
		return p;
	q = __wrap_malloc(n);
	memcpy(q, p, size);
	__wrap_free(p);
	return q;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	if (size && n > REGION_SIZE / size)
		abort();
	return __wrap_realloc(p, n * size);
}

char *__wrap_strndup(const char *s, size_t n)
{
	const size_t length = strnlen(s, n);
	char *p = __wrap_malloc(length + 1);

	memcpy(p, s, length);
	p[length] = 0;
	return p;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}
