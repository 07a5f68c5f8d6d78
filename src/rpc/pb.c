/* Wire format: a field is a key (number << 3 | type) and, by type, a varint, 4 or 8 bytes, or a
 * length and that many bytes. Decoding walks the bytes once and looks each number up in the
 * message's table; encoding walks the table, so fields are written in the order of their numbers.
 */

#include "pb_wire.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"

#define VARINT_MAX 10 /* bytes of a 64-bit number */

static int decode(const struct pb_context *c, const struct pb_message *m, struct str bytes,
		  void *ret, struct err *err);

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

/* The size of the number, or 0 when `in` ends inside it. */
static int read_varint(struct str in, uint64_t *ret, struct err *err)
{
	uint64_t value = 0;

	if (in.n > 0 && !(in.p[0] & 0x80)) { /* nearly all are below 128 */
		*ret = (uint8_t)in.p[0];
		return 1;
	}
	for (size_t i = 0; i < VARINT_MAX && i < in.n; i++) {
		const uint8_t byte = (uint8_t)in.p[i];

		/* Seven bits per byte, lowest first. The tenth byte has space for one bit only. */
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if (i == VARINT_MAX - 1 && byte > 1)
			return bad(err, "a number is larger than 64 bits");
		*ret = value;
		return (int)i + 1;
	}
	return in.n < VARINT_MAX ? 0 : bad(err, "a number is larger than 64 bits");
}

int pb_read_header(struct str in, struct pb_wire *ret, struct err *err)
{
	uint64_t key = 0;
	const int n = read_varint(in, &key, err);
	int more;

	if (n <= 0)
		return n;
	/* Numbers have 29 bits and zero is reserved: anything else is not protobuf. */
	if (key >> 3 == 0 || key > UINT32_MAX)
		return bad(err, "a field has an impossible number");
	*ret = (struct pb_wire){ .number = (uint32_t)(key >> 3), .type = (unsigned)(key & 7) };
	switch (ret->type) {
	case WIRE_FIXED64:
		ret->value = 8;
		return n;
	case WIRE_FIXED32:
		ret->value = 4;
		return n;
	case WIRE_VARINT:
	case WIRE_BYTES:
		more = read_varint(str_skip(in, (size_t)n), &ret->value, err);
		return more <= 0 ? more : n + more;
	default:
		return bad(err, "a field has an impossible type");
	}
}

int pb_ends_inside(const char *what, struct err *err)
{
	return err_set(err, EBADMSG, "the message ends inside a %s", what);
}

static int read_field(struct str *in, struct pb_wire *ret, struct err *err)
{
	const int n = pb_read_header(*in, ret, err);

	if (n <= 0)
		return n < 0 ? n : pb_ends_inside("number", err);
	*in = str_skip(*in, (size_t)n);
	if (ret->type == WIRE_VARINT)
		return 0;
	if (ret->value > in->n)
		return pb_ends_inside("field", err);
	ret->bytes = (struct str){ in->p, (size_t)ret->value };
	*in = str_skip(*in, ret->bytes.n);
	return 0;
}

static const struct pb_field *field_find(const struct pb_message *m, uint32_t number)
{
	assert(m->fields || !m->n);
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

const struct pb_field *pb_find_field(const struct pb_message *m, const struct pb_wire *w)
{
	const struct pb_field *f = field_find(m, w->number);

	/* A known number with another type is skipped, as protobuf parsers do with unknown fields.
	 */
	return f && accepts(f->kind, w->type) ? f : NULL;
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

/* One more item of a list. It may move when it grows, so pointers to earlier items must not be kept
 * while decoding. */
static void *add_item(struct arena *a, const struct pb_field *f, char *struct_p)
{
	char **items = (char **)(struct_p + f->offset);
	size_t *n = (size_t *)(struct_p + f->second);
	char *grown = arena_one_more(a, *items, *n, f->message->size);

	if (!grown)
		return NULL;
	*items = grown;
	return grown + f->message->size * (*n)++;
}

void *pb_open_message(const struct pb_context *c, const struct pb_field *f, void *value,
		      struct err *err)
{
	void **one = (void **)((char *)value + f->offset);
	void *sub = f->kind == PB_MESSAGE ? *one : NULL;

	if (sub) /* it occurs again: both are merged */
		return sub;
	if (f->kind == PB_REPEATED)
		sub = add_item(c->a, f, value);
	else
		sub = *one = arena_alloc(c->a, f->message->size, _Alignof(max_align_t));
	if (sub)
		pb_clear(f->message, sub);
	else
		(void)no_memory(err);
	return sub;
}

static int set_message(const struct pb_context *c, const struct pb_field *f, void *value,
		       struct str bytes, struct err *err)
{
	void *sub = pb_open_message(c, f, value, err);

	return sub ? decode(c, f->message, bytes, sub, err) : -ENOMEM;
}

/* Key and value of a map's pair, as views. Of a pair that is too long to be kept only the first
 * `bytes` of `size` are there. */
static int read_pair(struct str bytes, size_t size, struct str *ret_key, struct str *ret_value,
		     struct err *err)
{
	const bool is_whole = bytes.n == size;

	while (bytes.n > 0) {
		struct pb_wire w;
		const int r = read_field(&bytes, &w, is_whole ? err : NULL);

		if (r < 0)
			return is_whole ? r : 0;
		if (w.type == WIRE_BYTES && w.number == 1)
			*ret_key = w.bytes;
		if (w.type == WIRE_BYTES && w.number == 2)
			*ret_value = w.bytes;
	}
	return 0;
}

static int append_pair(struct arena *a, const struct pb_field *f, void *value, struct str key,
		       struct str text, struct err *err)
{
	struct pb_pair **pairs = (struct pb_pair **)((char *)value + f->offset);
	size_t *n = (size_t *)((char *)value + f->second);
	struct pb_pair *grown = arena_one_more(a, *pairs, *n, sizeof(**pairs));

	if (!grown)
		return no_memory(err);
	*pairs = grown;
	grown[*n] = (struct pb_pair){ str_dup(a, key).p, str_dup(a, text).p };
	if (a->failed) /* a text is "" then: another name */
		return no_memory(err);
	++*n;
	return 0;
}

int pb_add_pair(const struct pb_context *c, const struct pb_field *f, void *value, struct str bytes,
		size_t size, struct err *err)
{
	size_t *n = (size_t *)((char *)value + f->second);
	size_t *total = (size_t *)((char *)value + f->third);
	struct str key = { "", 0 }, text = { "", 0 };
	bool fits;
	int r;

	/* The same whether it arrives in pieces or not: what is beyond the limit is not read. */
	if (c->filter && bytes.n > c->filter->max_bytes)
		bytes.n = c->filter->max_bytes;
	r = read_pair(bytes, size, &key, &text, err);
	/* Without a key in the part that is there, its sender knows no map and it counts as wanted.
	 */
	if (r < 0 || (c->filter && (key.n > 0 || bytes.n == size) &&
		      !c->filter->wants(c->filter->user, f->map, key)))
		return r;
	/* Strings become C strings. One with a NUL would be cut and could pass as another. */
	fits = bytes.n == size && !memchr(key.p, 0, key.n) && !memchr(text.p, 0, text.n);
	*total += size;
	if (c->filter && (!fits || *total > c->filter->max_bytes)) {
		/* None at all: with a part of them a pod could pass for another. */
		*total = c->filter->max_bytes + 1;
		*n = 0;
		return 0;
	}
	return fits ? append_pair(c->a, f, value, key, text, err) : 0;
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
static int add_numbers(const struct pb_field *f, const struct pb_wire *w, char *struct_p,
		       struct arena *a, struct err *err)
{
	int64_t **items = (int64_t **)(struct_p + f->offset);
	size_t *n = (size_t *)(struct_p + f->second);
	struct str rest = w->bytes;
	uint64_t value = w->value;
	bool is_one = w->type == WIRE_VARINT;

	while (is_one || rest.n > 0) {
		int r = is_one ? 0 : read_varint(rest, &value, err);

		if (r == 0 && !is_one)
			return pb_ends_inside("number", err);
		if (r >= 0) {
			rest = str_skip(rest, (size_t)r);
			r = grow_numbers(items, *n, a, err);
		}
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

int pb_set_field(const struct pb_context *c, const struct pb_field *f, const struct pb_wire *w,
		 void *value, struct err *err)
{
	char *struct_p = value;
	struct arena *a = c->a;
	void *at = struct_p + f->offset;

	switch (f->kind) {
	case PB_BOOL:
		*(bool *)at = w->value != 0;
		return 0;
	case PB_INT32: /* negative values are encoded sign-extended to 64 bits */
	case PB_UINT32:
		*(uint32_t *)at = (uint32_t)w->value;
		return 0;
	case PB_INT64:
		*(uint64_t *)at = w->value;
		return 0;
	case PB_STRING:
		return set_string(at, w->bytes, a, err);
	case PB_BYTES:
		*(struct str *)at = w->bytes;
		return 0;
	case PB_MESSAGE:
	case PB_REPEATED:
		return set_message(c, f, value, w->bytes, err);
	case PB_MAP:
		return pb_add_pair(c, f, value, w->bytes, w->bytes.n, err);
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

static int decode(const struct pb_context *c, const struct pb_message *m, struct str bytes,
		  void *ret, struct err *err)
{
	const struct pb_field *others = m->n > 0 ? &m->fields[m->n - 1] : NULL;

	if (others && others->kind != PB_REST)
		others = NULL;
	while (bytes.n > 0) {
		const struct str from = bytes;
		const struct pb_field *f;
		struct pb_wire w;
		int r;

		r = read_field(&bytes, &w, err);
		if (r < 0)
			return r;
		f = pb_find_field(m, &w);
		if (f)
			r = pb_set_field(c, f, &w, ret, err);
		else if (others && !field_find(m, w.number))
			r = keep_rest(others, ret, (struct str){ from.p, from.n - bytes.n }, c->a,
				      err);
		if (r < 0)
			return r;
	}
	return 0;
}

int pb_decode(const struct pb_message *m, struct str bytes, struct arena *a, void *ret,
	      struct err *err)
{
	return decode(&(struct pb_context){ a, NULL }, m, bytes, ret, err);
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
	case PB_MAP:
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
	case PB_MAP:
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
