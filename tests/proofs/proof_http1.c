/* Chunked bodies of HTTP/1.1, which are decoded in place. */

#include "proof.h"

#include SOURCE

void a_chunk_size_is_its_hexadecimal_digits(void)
{
	const struct str line = any_text(9);
	size_t size, want = 0, digits = 0;
	int r;

	for (; digits < line.n && str_hex_digit(line.p[digits]) >= 0; digits++)
		want = want << 4 | (size_t)str_hex_digit(line.p[digits]);
	r = chunk_size(line, &size);
	PROVE((want > LIMIT_BODY_BYTES) == (r == TOO_LARGE));
	PROVE(r < 0 || (digits > 0 && size == want));
	PROVE(r < 0 || digits == line.n || line.p[digits] == ';');
}

static bool is_valid(const struct http1_parser *p, size_t n)
{
	return p->body_n <= LIMIT_BODY_BYTES && p->chunk_left <= LIMIT_BODY_BYTES - p->body_n &&
	       p->body_at <= p->position && p->body_n <= p->position - p->body_at &&
	       p->position <= n;
}

/* Each step from any valid state leaves a valid one, so all sequences of steps do: the decoded body
 * never overtakes what is still to be read, and both stay inside the buffer. */
void a_chunked_body_never_overtakes_its_bytes(void)
{
	char bytes[8];
	const struct str in = ANY_TEXT_IN(bytes);
	struct http1_parser p;
	int r;

	ASSUME(p.state >= HTTP1_CHUNK_SIZE && p.state <= HTTP1_TRAILER && is_valid(&p, in.n));
	ASSUME(p.state == HTTP1_CHUNK_DATA || p.chunk_left == 0);
	r = parse_step(&p, bytes, in.n);
	PROVE(r < 0 || is_valid(&p, in.n));
	PROVE(r < 0 || p.state == HTTP1_CHUNK_DATA || p.chunk_left == 0);
}
