/* A field that is all there is decoded at once by pb.c, and most are: a read of the socket is
 * larger than a pod. Of the others, messages are entered, so that their fields are seen one by one,
 * and strings, numbers and pairs of maps are collected, up to a limit. */

#include "pb_stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

#define KEEP_BYTES 65536 /* a larger buffer is freed with its message */

void pb_stream_done(struct pb_stream *s)
{
	free(s->part);
	s->part = NULL;
	s->cap_part = 0;
}

void pb_stream_start(struct pb_stream *s, const struct pb_message *m, void *value, struct arena *a,
		     size_t size)
{
	if (s->cap_part > KEEP_BYTES)
		pb_stream_done(s);
	s->levels[0] = (struct pb_level){ m, value, a, size };
	s->n_levels = 1;
	s->at = s->n_header = s->skip = 0;
	s->field = NULL;
}

static const struct pb_level *innermost(const struct pb_stream *s)
{
	return &s->levels[s->n_levels - 1];
}

static struct pb_context context(const struct pb_stream *s)
{
	return (struct pb_context){ innermost(s)->a, s->filter };
}

static struct str take(struct pb_stream *s, struct str *bytes, size_t most)
{
	const struct str taken = { bytes->p, bytes->n < most ? bytes->n : most };

	*bytes = str_skip(*bytes, taken.n);
	s->at += taken.n;
	return taken;
}

/* Returns 1 with a header, 0 when the rest of it has not arrived. */
static int take_header(struct pb_stream *s, struct str *bytes, struct pb_wire *ret, struct err *err)
{
	const size_t end = innermost(s)->end;
	const struct str rest = { bytes->p, bytes->n < end - s->at ? bytes->n : end - s->at };
	int n = s->n_header == 0 ? pb_read_header(rest, ret, err) : 0;

	if (n > 0)
		(void)take(s, bytes, (size_t)n);
	while (n == 0 && bytes->n > 0 && s->at < end) {
		s->header[s->n_header++] = (unsigned char)*take(s, bytes, 1).p;
		n = pb_read_header((struct str){ (const char *)s->header, s->n_header }, ret, err);
	}
	if (n == 0)
		return s->at == end ? pb_ends_inside("number", err) : 0;
	s->n_header = 0;
	return n < 0 ? n : 1;
}

static int enter(struct pb_stream *s, const struct pb_message *m, void *value, struct arena *a,
		 uint64_t size, struct err *err)
{
	if (s->n_levels == PB_STREAM_LEVELS)
		return err_set(err, EBADMSG, "messages are nested too deeply");
	s->levels[s->n_levels++] = (struct pb_level){ m, value, a, s->at + (size_t)size };
	return 0;
}

static int enter_payload(struct pb_stream *s, uint64_t size, struct err *err)
{
	struct pb_payload p = { 0 };
	const int r = s->on_payload(s->user, &p, err);

	if (r < 0)
		return r;
	if (p.message)
		return enter(s, p.message, p.value, p.a, size, err);
	s->skip = (size_t)size;
	return 0;
}

static int start_collecting(struct pb_stream *s, const struct pb_field *f, const struct pb_wire *w,
			    struct err *err)
{
	s->max_part = f->kind != PB_MAP ? PB_STREAM_TEXT :
		      s->filter		? s->filter->max_bytes :
					  SIZE_MAX;
	if (f->kind != PB_MAP && w->value > s->max_part)
		return err_set(err, EMSGSIZE, "a field of %zu bytes, more than %zu",
			       (size_t)w->value, s->max_part);
	s->field = f;
	s->wire = *w;
	s->n_part = 0;
	return 0;
}

/* Of a pair that is too long for the filter only the beginning is collected: its key is there. */
static int collect(struct pb_stream *s, struct str *bytes, struct err *err)
{
	const struct pb_field *f = s->field;
	const struct pb_context c = context(s);
	const size_t size = (size_t)s->wire.value;
	const size_t wanted = size < s->max_part ? size : s->max_part;
	const struct str piece = take(s, bytes, wanted - s->n_part);

	if (s->n_part + piece.n > s->cap_part) {
		/* By doubling, and only for bytes that have arrived: a header of a few bytes could
		 * otherwise claim megabytes. */
		s->cap_part = s->cap_part ? s->cap_part * 2 : 4096;
		if (s->cap_part < s->n_part + piece.n)
			s->cap_part = s->n_part + piece.n;
		s->part = realloc(s->part, s->cap_part);
		if (!s->part)
			abort(); /* out of memory: as in arena.c */
	}
	memcpy(s->part + s->n_part, piece.p, piece.n);
	s->n_part += piece.n;
	if (s->n_part < wanted)
		return 0;
	s->skip = size - wanted;
	s->wire.bytes = (struct str){ s->part, s->n_part };
	s->field = NULL;
	if (f->kind == PB_MAP)
		return pb_add_pair(&c, f, innermost(s)->value, s->wire.bytes, size, err);
	return pb_set_field(&c, f, &s->wire, innermost(s)->value, err);
}

static int next_field(struct pb_stream *s, struct str *bytes, struct err *err)
{
	const struct pb_level *l = innermost(s);
	const struct pb_context c = context(s);
	const struct pb_field *f;
	struct pb_wire w = { 0 };
	void *sub;
	int r;

	r = take_header(s, bytes, &w, err);
	if (r <= 0)
		return r;
	if (w.type != WIRE_VARINT && w.value > l->end - s->at)
		return pb_ends_inside("field", err);
	f = pb_find_field(l->message, &w);
	if (!f) {
		s->skip = w.type == WIRE_VARINT ? 0 : (size_t)w.value;
		return 0;
	}
	if (w.type == WIRE_VARINT)
		return pb_set_field(&c, f, &w, l->value, err);
	if (f->kind == PB_BYTES)
		return enter_payload(s, w.value, err);
	if (w.value <= bytes->n) {
		w.bytes = take(s, bytes, (size_t)w.value);
		return pb_set_field(&c, f, &w, l->value, err);
	}
	if (f->kind != PB_MESSAGE && f->kind != PB_REPEATED)
		return start_collecting(s, f, &w, err);
	sub = pb_open_message(&c, f, l->value, err);
	return sub ? enter(s, f->message, sub, l->a, w.value, err) : -ENOMEM;
}

int pb_stream_feed(struct pb_stream *s, struct str bytes, struct err *err)
{
	while (bytes.n > 0) {
		int r = 0;

		while (s->n_levels > 1 && innermost(s)->end == s->at)
			s->n_levels--;
		assert(s->at < s->levels[0].end);
		if (s->skip > 0)
			s->skip -= take(s, &bytes, s->skip).n;
		else if (s->field)
			r = collect(s, &bytes, err);
		else
			r = next_field(s, &bytes, err);
		if (r < 0)
			return r;
	}
	return 0;
}
