/* Sequences of elements with a length: the fields of a protobuf message, HTTP/2 frames, ttrpc
 * messages in the frames of NRI's multiplexer. One element is removed, repeated, moved, or changed
 * in its head or its body. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "mutate.h"
#include "rpc/ttrpc.h"

#define MAX_ELEMENTS 256
#define MAX_HEAD 32 /* two multiplexer headers and one of ttrpc are 26 */

struct element {
	size_t at, n_head, n_body;
};

struct wire_form {
	/* The element at the start of the bytes; false when there is no whole one. */
	bool (*split)(const uint8_t *data, size_t n, struct element *ret);
	/* Sets the length in a head; returns the size of the head, which may grow. */
	size_t (*set_length)(uint8_t *head, size_t n_head, size_t n_body);
	void (*change_head)(uint8_t *head, size_t n_head, struct dice *d);
	size_t (*change_body)(const uint8_t *head, uint8_t *body, size_t n, size_t max,
			      struct dice *d);
};

static size_t split_all(const struct wire_form *f, const uint8_t *data, size_t size,
			struct element *ret)
{
	size_t n = 0, at = 0;

	while (n < MAX_ELEMENTS && f->split(data + at, size - at, &ret[n])) {
		ret[n].at = at;
		at += ret[n].n_head + ret[n].n_body;
		n++;
	}
	return n;
}

struct bytes {
	uint8_t *p;
	size_t n, max;
};

/* Replaces n_old bytes at `at`; does nothing when there is no space. */
static void splice(struct bytes *b, size_t at, size_t n_old, const uint8_t *with, size_t n_new)
{
	if (b->n - n_old + n_new > b->max)
		return;
	memmove(b->p + at + n_new, b->p + at + n_old, b->n - at - n_old);
	if (n_new > 0)
		memcpy(b->p + at, with, n_new);
	b->n = b->n - n_old + n_new;
}

/* The element with another head or body, at `out`, which has space for MAX_HEAD + n_body + extra
 * bytes. */
static size_t change(const struct wire_form *f, const uint8_t *element, const struct element *e,
		     size_t extra, struct dice *d, uint8_t *out)
{
	uint8_t head[MAX_HEAD] = { 0 };
	uint8_t *body = out + MAX_HEAD;
	size_t n_body = e->n_body, n_head;

	memcpy(head, element, e->n_head);
	if (n_body > 0)
		memcpy(body, element + e->n_head, n_body);
	if (dice_roll(d, 4) == 0)
		f->change_head(head, e->n_head, d);
	else
		n_body = f->change_body(head, body, n_body, n_body + extra, d);
	n_head = f->set_length(head, e->n_head, n_body);
	memcpy(out, head, n_head);
	memmove(out + n_head, body, n_body);
	return n_head + n_body;
}

static size_t mutate(const struct wire_form *f, uint8_t *data, size_t size, size_t max,
		     struct dice *d)
{
	struct element elements[MAX_ELEMENTS];
	struct bytes b = { data, size, max };
	const size_t n = split_all(f, data, size, elements), extra = 64;
	const struct element *e;
	size_t length;
	uint8_t *copy;

	if (!n)
		return LLVMFuzzerMutate(data, size, max);
	e = &elements[dice_roll(d, n)];
	length = e->n_head + e->n_body;
	copy = malloc(MAX_HEAD + length + extra);
	if (!copy)
		return size;
	memcpy(copy, data + e->at, length);
	switch (dice_roll(d, 8)) {
	case 0:
		splice(&b, e->at, length, NULL, 0);
		break;
	case 1:
		splice(&b, e->at, 0, copy, length);
		break;
	case 2: /* to the end */
		splice(&b, e->at, length, NULL, 0);
		splice(&b, b.n, 0, copy, length);
		break;
	default:
		splice(&b, e->at, length, copy, change(f, data + e->at, e, extra, d, copy));
	}
	free(copy);
	return b.n;
}

/* --- protobuf --- */

enum { PB_VARINT = 0, PB_LENGTH = 2 };

/* Of a number of up to ten bytes; 0 when there is none. */
static size_t varint_size(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && i < 10; i++)
		if (!(p[i] & 0x80))
			return i + 1;
	return 0;
}

static size_t varint_put(uint8_t *p, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		p[n++] = (uint8_t)(value | 0x80);
	p[n++] = (uint8_t)value;
	return n;
}

static bool pb_split(const uint8_t *data, size_t n, struct element *ret)
{
	const size_t key = varint_size(data, n);
	size_t size, length = 0;

	if (!key)
		return false;
	size = varint_size(data + key, n - key);
	*ret = (struct element){ 0, key, size };
	switch (data[0] & 7) {
	case PB_VARINT:
		return size > 0;
	case PB_LENGTH:
		if (!size || size > 4)
			return false;
		for (size_t i = 0; i < size; i++)
			length |= (size_t)(data[key + i] & 0x7f) << (7 * i);
		*ret = (struct element){ 0, key + size, length };
		return length <= n - key - size;
	default:
		return false;
	}
}

static size_t pb_set_length(uint8_t *head, size_t n_head, size_t n_body)
{
	const size_t key = varint_size(head, n_head);

	return (head[0] & 7) == PB_LENGTH ? key + varint_put(head + key, n_body) : key;
}

/* Another field number of one byte, with the type that the body has. */
static void pb_change_head(uint8_t *head, size_t n_head, struct dice *d)
{
	(void)n_head;
	head[0] = (uint8_t)((head[0] & 0x87) | (1 + dice_roll(d, 15)) << 3);
}

static size_t pb_change_body(const uint8_t *head, uint8_t *body, size_t n, size_t max,
			     struct dice *d)
{
	static const uint64_t numbers[] = { 0,		1,	   2,	       262144, INT32_MAX,
					    UINT32_MAX, INT64_MAX, UINT64_MAX, 1024 };

	if ((head[0] & 7) == PB_VARINT)
		return varint_put(body, numbers[dice_roll(d, ARRAY_LEN(numbers))]);
	if (dice_roll(d, 3) > 0)
		return mutate_protobuf(body, n, max, d);
	return LLVMFuzzerMutate(body, n, max);
}

static const struct wire_form protobuf = { pb_split, pb_set_length, pb_change_head,
					   pb_change_body };

size_t mutate_protobuf(uint8_t *data, size_t size, size_t max, struct dice *d)
{
	return mutate(&protobuf, data, size, max, d);
}

/* --- HTTP/2 frames: RFC 9113 section 4.1 --- */

#define HTTP2_HEAD 9

static bool http2_split(const uint8_t *data, size_t n, struct element *ret)
{
	if (n < HTTP2_HEAD)
		return false;
	*ret = (struct element){ 0, HTTP2_HEAD,
				 (size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2] };
	return ret->n_body <= n - HTTP2_HEAD;
}

static size_t http2_set_length(uint8_t *head, size_t n_head, size_t n_body)
{
	head[0] = (uint8_t)(n_body >> 16);
	head[1] = (uint8_t)(n_body >> 8);
	head[2] = (uint8_t)n_body;
	return n_head;
}

/* Type, flags, or one of the first streams. */
static void http2_change_head(uint8_t *head, size_t n_head, struct dice *d)
{
	static const uint8_t flags[] = { 0, 1, 4, 5, 8, 0x20, 0x25 };

	switch (dice_roll(d, 3)) {
	case 0:
		head[3] = (uint8_t)dice_roll(d, 11);
		break;
	case 1:
		head[4] = flags[dice_roll(d, ARRAY_LEN(flags))];
		break;
	default:
		head[n_head - 1] = (uint8_t)dice_roll(d, 8);
	}
}

static size_t http2_change_body(const uint8_t *head, uint8_t *body, size_t n, size_t max,
				struct dice *d)
{
	(void)head;
	(void)d;
	return LLVMFuzzerMutate(body, n, max);
}

static const struct wire_form http2 = { http2_split, http2_set_length, http2_change_head,
					http2_change_body };

size_t mutate_http2(uint8_t *data, size_t size, size_t max, struct dice *d)
{
	return mutate(&http2, data, size, max, d);
}

/* --- NRI: a message of ttrpc in one frame of the multiplexer, or its header and its data in two
 * --- */

#define ONE_FRAME (MUX_HEADER_SIZE + TTRPC_HEADER_SIZE)
#define TWO_FRAMES (ONE_FRAME + MUX_HEADER_SIZE)

static bool nri_split(const uint8_t *data, size_t n, struct element *ret)
{
	size_t frame, message;

	if (n < ONE_FRAME)
		return false;
	frame = be32_get(data + 4);
	message = be32_get(data + MUX_HEADER_SIZE);
	if (frame == TTRPC_HEADER_SIZE + message)
		*ret = (struct element){ 0, ONE_FRAME, message };
	else if (frame == TTRPC_HEADER_SIZE && n >= TWO_FRAMES &&
		 be32_get(data + ONE_FRAME + 4) == message)
		*ret = (struct element){ 0, TWO_FRAMES, message };
	else
		return false;
	return message <= n - ret->n_head;
}

static size_t nri_set_length(uint8_t *head, size_t n_head, size_t n_body)
{
	const uint32_t n = (uint32_t)n_body;

	be32_put(head + MUX_HEADER_SIZE, n);
	if (n_head == ONE_FRAME)
		be32_put(head + 4, TTRPC_HEADER_SIZE + n);
	else
		be32_put(head + ONE_FRAME + 4, n);
	return n_head;
}

/* The connection, the stream, or the type. */
static void nri_change_head(uint8_t *head, size_t n_head, struct dice *d)
{
	static const uint8_t at[] = { 3, MUX_HEADER_SIZE + 7, MUX_HEADER_SIZE + 8,
				      MUX_HEADER_SIZE + 9 };

	(void)n_head;
	head[at[dice_roll(d, ARRAY_LEN(at))]] = (uint8_t)dice_roll(d, 5);
}

static size_t nri_change_body(const uint8_t *head, uint8_t *body, size_t n, size_t max,
			      struct dice *d)
{
	(void)head;
	return mutate_protobuf(body, n, max, d);
}

static const struct wire_form nri = { nri_split, nri_set_length, nri_change_head, nri_change_body };

size_t mutate_nri(uint8_t *data, size_t size, size_t max, struct dice *d)
{
	return mutate(&nri, data, size, max, d);
}
