/* Wire format: a field is a key (number << 3 | type) and, by type, a varint, 4 or 8 bytes, or a
 * length and that many bytes. Decoding walks the bytes once and looks each number up in the
 * message's table; encoding walks the table, so fields are written in the order of their numbers.
 */

#include "pb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define VARINT_MAX 10 /* bytes of a 64-bit number */

/* One encoded field. */
struct wire {
	uint32_t number;
	unsigned type;
	uint64_t varint;
	struct str bytes;
};

/* The content of a wrapper message ("OptionalInt64"). */
struct wrapped {
	int64_t value;
};
static const struct pb_field wrapped_fields[] = {
	PB_FIELD(struct wrapped, 1, PB_INT64, value),
};
static const struct pb_message wrapped_message = PB_TABLE(struct wrapped, wrapped_fields);

static int bad(struct err *err, const char *what)
{
	return err_set(err, EBADMSG, "%s", what);
}

static int read_varint(struct str *in, uint64_t *ret, struct err *err)
{
	uint64_t value = 0;

	for (size_t i = 0; i < VARINT_MAX && i < in->n; i++) {
		const uint8_t byte = (uint8_t)in->p[i];

		/* Seven bits per byte, lowest first. The tenth byte has space for one bit only. */
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if (i == VARINT_MAX - 1 && byte > 1)
			return bad(err, "a number is larger than 64 bits");
		*in = str_skip(*in, i + 1);
		*ret = value;
		return 0;
	}
	return bad(err, in->n < VARINT_MAX ? "the message ends inside a number" :
					     "a number is larger than 64 bits");
}

static int read_bytes(struct str *in, uint64_t n, struct str *ret, struct err *err)
{
	if (n > in->n)
		return bad(err, "the message ends inside a field");
	*ret = (struct str){ in->p, (size_t)n };
	*in = str_skip(*in, (size_t)n);
	return 0;
}

static int read_field(struct str *in, struct wire *ret, struct err *err)
{
	struct wire w = { 0 };
	uint64_t key, n;
	int r;

	r = read_varint(in, &key, err);
	if (r < 0)
		return r;
	/* Numbers have 29 bits and zero is reserved: anything else is not protobuf. */
	if (key >> 3 == 0 || key > UINT32_MAX)
		return bad(err, "a field has an impossible number");
	w.number = (uint32_t)(key >> 3);
	w.type = (unsigned)(key & 7);
	switch (w.type) {
	case WIRE_VARINT:
		r = read_varint(in, &w.varint, err);
		break;
	case WIRE_FIXED64:
		r = read_bytes(in, 8, &w.bytes, err);
		break;
	case WIRE_FIXED32:
		r = read_bytes(in, 4, &w.bytes, err);
		break;
	case WIRE_BYTES:
		r = read_varint(in, &n, err);
		if (r == 0)
			r = read_bytes(in, n, &w.bytes, err);
		break;
	default:
		r = bad(err, "a field has an impossible type");
	}
	if (r == 0)
		*ret = w;
	return r;
}

static const struct pb_field *field_find(const struct pb_message *m, uint32_t number)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->fields[i].number == number)
			return &m->fields[i];
	return NULL;
}

static unsigned wire_type(enum pb_kind kind)
{
	return kind <= PB_INT64 ? WIRE_VARINT : WIRE_BYTES;
}

/* Parsers must accept repeated numbers packed and unpacked (proto3). */
static bool accepts(enum pb_kind kind, unsigned type)
{
	return type == wire_type(kind) || (kind == PB_INT64S && type == WIRE_VARINT);
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "the message needs more memory than allowed");
}

void pb_clear(const struct pb_message *m, void *value)
{
	memset(value, 0, m->size);
	for (size_t i = 0; i < m->n; i++)
		if (m->fields[i].kind == PB_STRING)
			*(const char **)((char *)value + m->fields[i].offset) = "";
}

static int set_string(const char **ret, struct str bytes, struct arena *a, struct err *err)
{
	const char *text;

	/* Strings become C strings. One with a NUL would be cut and could pass as another name. */
	if (memchr(bytes.p, 0, bytes.n))
		return bad(err, "a text holds a zero byte");
	text = str_dup(a, bytes).p;
	if (a->failed) /* the text is "" then: another name */
		return no_memory(err);
	*ret = text;
	return 0;
}

static int set_message(const struct pb_field *f, void **ret, struct str bytes, struct arena *a,
		       struct err *err)
{
	if (!*ret) {
		void *sub = arena_alloc(a, f->message->size, _Alignof(max_align_t));

		if (!sub)
			return no_memory(err);
		pb_clear(f->message, sub);
		*ret = sub;
	}
	return pb_decode(f->message, bytes, a, *ret, err);
}

static int add_message(const struct pb_field *f, char *struct_p, struct str bytes, struct arena *a,
		       struct err *err)
{
	char **items = (char **)(struct_p + f->offset);
	size_t *n = (size_t *)(struct_p + f->second);
	const size_t size = f->message->size;
	/* The list may move when it grows, so pointers to earlier items must not be kept while
	 * decoding. */
	char *grown = arena_one_more(a, *items, *n, size), *item;

	if (!grown)
		return no_memory(err);
	*items = grown;
	item = *items + *n * size;
	pb_clear(f->message, item);
	++*n;
	return pb_decode(f->message, bytes, a, item, err);
}

static int grow_numbers(int64_t **items, size_t n, struct arena *a, struct err *err)
{
	int64_t *grown = arena_one_more(a, *items, n, sizeof(**items));

	if (!grown)
		return no_memory(err);
	*items = grown;
	return 0;
}

/* Packed, or one by one as older encoders write them. */
static int add_numbers(const struct pb_field *f, const struct wire *w, char *struct_p,
		       struct arena *a, struct err *err)
{
	int64_t **items = (int64_t **)(struct_p + f->offset);
	size_t *n = (size_t *)(struct_p + f->second);
	struct str rest = w->bytes;
	uint64_t value = w->varint;
	bool is_one = w->type == WIRE_VARINT;

	while (is_one || rest.n > 0) {
		int r = is_one ? 0 : read_varint(&rest, &value, err);

		if (r == 0)
			r = grow_numbers(items, *n, a, err);
		if (r < 0)
			return r;
		(*items)[(*n)++] = (int64_t)value;
		is_one = false;
	}
	return 0;
}

/* Unknown fields are mostly adjacent; a view is then enough and nothing is copied. */
static int keep_rest(const struct pb_field *f, char *struct_p, struct str field, struct arena *a,
		     struct err *err)
{
	struct str *rest = (struct str *)(struct_p + f->offset);
	char *both;

	if (rest->n > 0 && rest->p + rest->n == field.p) {
		rest->n += field.n;
		return 0;
	}
	if (rest->n == 0) {
		*rest = field;
		return 0;
	}
	both = arena_alloc(a, rest->n + field.n, 1);
	if (!both)
		return no_memory(err);
	memcpy(both, rest->p, rest->n);
	memcpy(both + rest->n, field.p, field.n);
	*rest = (struct str){ both, rest->n + field.n };
	return 0;
}

static int set_wrapped(const struct pb_field *f, char *struct_p, struct str bytes, struct arena *a,
		       struct err *err)
{
	bool *has = (bool *)(struct_p + f->second);
	int64_t *value = (int64_t *)(struct_p + f->offset); /* uint64_t has the same bits */
	/* A wrapper that occurs twice is merged like any message: the second may be empty and then
	 * leaves the first value. */
	struct wrapped w = { *has ? *value : 0 };
	int r;

	r = pb_decode(&wrapped_message, bytes, a, &w, err);
	if (r < 0)
		return r;
	*has = true;
	*value = w.value;
	return 0;
}

static int set_field(const struct pb_field *f, const struct wire *w, char *struct_p,
		     struct arena *a, struct err *err)
{
	void *at = struct_p + f->offset;

	switch (f->kind) {
	case PB_BOOL:
		*(bool *)at = w->varint != 0;
		return 0;
	case PB_INT32: /* negative values are encoded sign-extended to 64 bits */
	case PB_UINT32:
		*(uint32_t *)at = (uint32_t)w->varint;
		return 0;
	case PB_INT64:
		*(uint64_t *)at = w->varint;
		return 0;
	case PB_STRING:
		return set_string(at, w->bytes, a, err);
	case PB_BYTES:
		*(struct str *)at = w->bytes;
		return 0;
	case PB_MESSAGE:
		return set_message(f, at, w->bytes, a, err);
	case PB_REPEATED:
		return add_message(f, struct_p, w->bytes, a, err);
	case PB_OPT_INT64:
	case PB_OPT_UINT64:
		return set_wrapped(f, struct_p, w->bytes, a, err);
	case PB_INT64S:
		return add_numbers(f, w, struct_p, a, err);
	case PB_REST: /* has no number of its own */
		break;
	}
	abort(); /* a kind without a reader */
}

int pb_decode(const struct pb_message *m, struct str bytes, struct arena *a, void *ret,
	      struct err *err)
{
	const struct pb_field *others = m->n > 0 ? &m->fields[m->n - 1] : NULL;

	if (others && others->kind != PB_REST)
		others = NULL;
	while (bytes.n > 0) {
		const struct str from = bytes;
		const struct pb_field *f;
		struct wire w = { 0 };
		int r;

		r = read_field(&bytes, &w, err);
		if (r < 0)
			return r;
		f = field_find(m, w.number);
		/* A known number with another type is skipped, as protobuf parsers do with unknown
		 * fields. */
		if (f && accepts(f->kind, w.type))
			r = set_field(f, &w, ret, a, err);
		else if (!f && others)
			r = keep_rest(others, ret, (struct str){ from.p, from.n - bytes.n }, a,
				      err);
		if (r < 0)
			return r;
	}
	return 0;
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static void put_varint(struct strbuf *out, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		strbuf_addc(out, (char)(v | 0x80));
	strbuf_addc(out, (char)v);
}

static uint64_t scalar_of(const struct pb_field *f, const char *struct_p)
{
	const void *at = struct_p + f->offset;

	switch (f->kind) {
	case PB_BOOL:
		return *(const bool *)at;
	case PB_INT32:
		return (uint64_t)(int64_t) * (const int32_t *)at;
	case PB_UINT32:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

/* The content of a length-delimited field: a string, a message, packed numbers. */
struct body {
	struct str text;
	const void *message;
	const int64_t *numbers;
	uint64_t wrapped;
	size_t size;
};

static struct body body_of_text(struct str text)
{
	return (struct body){ .text = text, .size = text.n };
}

/* How many bodies a field has, and the i-th of them. Zero values are not written (proto3). */
static size_t field_count(const struct pb_field *f, const char *struct_p)
{
	const void *at = struct_p + f->offset;

	switch (f->kind) {
	case PB_STRING:
		return *(const char *const *)at && **(const char *const *)at;
	case PB_BYTES:
		return ((const struct str *)at)->n > 0;
	case PB_MESSAGE:
		return *(const void *const *)at != NULL;
	case PB_REPEATED:
		return *(const size_t *)(struct_p + f->second);
	case PB_OPT_INT64:
	case PB_OPT_UINT64:
		return *(const bool *)(struct_p + f->second);
	case PB_INT64S:
		return *(const size_t *)(struct_p + f->second) > 0;
	case PB_REST:
		return 0; /* appended after all other fields */
	default:
		return scalar_of(f, struct_p) != 0;
	}
}

static struct body field_body(const struct pb_field *f, const char *struct_p, size_t i)
{
	const void *at = struct_p + f->offset;
	struct body b = { 0 };

	switch (f->kind) {
	case PB_STRING:
		return body_of_text(str_from(*(const char *const *)at));
	case PB_BYTES:
		return body_of_text(*(const struct str *)at);
	case PB_MESSAGE:
		b.message = *(const void *const *)at;
		b.size = pb_size(f->message, b.message);
		return b;
	case PB_REPEATED:
		b.message = *(const char *const *)at + i * f->message->size;
		b.size = pb_size(f->message, b.message);
		return b;
	case PB_INT64S:
		b.numbers = *(const int64_t *const *)at;
		for (size_t k = 0; k < *(const size_t *)(struct_p + f->second); k++)
			b.size += varint_size((uint64_t)b.numbers[k]);
		return b;
	default:
		b.wrapped = *(const uint64_t *)at;
		/* A key of one byte and the value; zero is not written, the wrapper is then empty.
		 */
		b.size = b.wrapped ? 1 + varint_size(b.wrapped) : 0;
		return b;
	}
}

static struct str rest_of(const struct pb_message *m, const char *struct_p)
{
	if (m->n == 0 || m->fields[m->n - 1].kind != PB_REST)
		return (struct str){ 0 };
	return *(const struct str *)(struct_p + m->fields[m->n - 1].offset);
}

/* A length precedes its message, so sizes are computed first. Each level computes those below
 * again; messages here are only a few levels deep. */
size_t pb_size(const struct pb_message *m, const void *value)
{
	size_t size = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct pb_field *f = &m->fields[i];
		/* The type in the three lowest bits does not change the length. */
		const size_t key = varint_size((uint64_t)f->number << 3);
		const size_t count = field_count(f, value);

		for (size_t k = 0; k < count; k++) {
			size_t body;

			if (wire_type(f->kind) == WIRE_VARINT) {
				size += key + varint_size(scalar_of(f, value));
				continue;
			}
			body = field_body(f, value, k).size;
			size += key + varint_size(body) + body;
		}
	}
	return size + rest_of(m, value).n;
}

static void put_numbers(const int64_t *numbers, size_t size, struct strbuf *out)
{
	/* The body knows its size in bytes, not the number of items. */
	for (size_t i = 0; size > 0; i++) {
		put_varint(out, (uint64_t)numbers[i]);
		size -= varint_size((uint64_t)numbers[i]);
	}
}

static void put_body(const struct pb_field *f, const struct body *b, struct strbuf *out)
{
	put_varint(out, b->size);
	if (b->message)
		pb_encode(f->message, b->message, out);
	else if (b->numbers)
		put_numbers(b->numbers, b->size, out);
	else if (b->text.n > 0)
		strbuf_add(out, b->text);
	else if (b->size > 0)
		pb_encode(&wrapped_message, &(struct wrapped){ (int64_t)b->wrapped }, out);
}

void pb_encode(const struct pb_message *m, const void *value, struct strbuf *out)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct pb_field *f = &m->fields[i];
		const size_t count = field_count(f, value);

		for (size_t k = 0; k < count; k++) {
			struct body b;

			put_varint(out, (uint64_t)f->number << 3 | wire_type(f->kind));
			if (wire_type(f->kind) == WIRE_VARINT) {
				put_varint(out, scalar_of(f, value));
				continue;
			}
			b = field_body(f, value, k);
			put_body(f, &b, out);
		}
	}
	strbuf_add(out, rest_of(m, value));
}
