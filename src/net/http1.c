/* The parser of HTTP/1.1 requests: a state machine over the bytes that conn.c collects. Positions,
 * not pointers, are kept between calls, because the buffer may move when it grows. */

#include "http1.h"

#include <string.h>
#include <strings.h>

#include "limits.h"

#define MAX_CHUNK_LINE 256 /* size and extensions */

enum { BAD = -400, TOO_LARGE = -413, HEAD_TOO_LARGE = -431, UNKNOWN = -501, VERSION = -505 };

/* From the header fields. */
struct framing {
	uint64_t length;
	bool has_length, chunked, has_host, close, keep_alive;
	unsigned minor; /* of HTTP/1.x */
};

/* RFC 9110 section 5.6.2. */
static bool is_token_char(unsigned char c)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	return str_is_alnum((char)c) || (c && strchr(marks, c));
}

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_token_char((unsigned char)s.p[i]))
			return false;
	return s.n > 0;
}

/* A value may have blanks, tabs, visible characters and bytes above 0x7f, but no control character:
 * parsers disagree about a bare CR or NUL. */
static bool is_field_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	return true;
}

static bool is_target(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7f)
			return false;
	/* Only the origin form: the API server and probes send no other. */
	return s.n > 0 && s.p[0] == '/';
}

static bool equals_ignoring_case(struct str s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static struct str trim_blanks(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Takes one line off *rest, which ends with CRLF. False when a line feed stands alone. */
static bool next_line(struct str *rest, struct str *ret)
{
	const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n;

	if (!end || end == rest->p || end[-1] != '\r')
		return false;
	n = (size_t)(end - rest->p);
	*ret = (struct str){ rest->p, n - 1 };
	*rest = str_skip(*rest, n + 1);
	return true;
}

static int request_line(struct http1_parser *p, struct str line, const char *start,
			struct framing *f)
{
	struct str_split words = str_split(line);
	struct str method, target, version, more;

	if (!str_next(&words, ' ', &method) || !str_next(&words, ' ', &target) ||
	    !str_next(&words, ' ', &version) || str_next(&words, ' ', &more))
		return BAD;
	if (!is_token(method) || !is_target(target))
		return BAD;
	if (str_eq(version, STR("HTTP/1.1")))
		f->minor = 1;
	else if (!str_eq(version, STR("HTTP/1.0")))
		return str_starts(version, STR("HTTP/")) ? VERSION : BAD;
	p->method_n = method.n;
	p->target_at = (size_t)(target.p - start);
	p->target_n = target.n;
	return 0;
}

/* RFC 9112 section 6.3: a repeated equal length is accepted; different lengths are refused. */
static int content_length(struct framing *f, struct str value)
{
	uint64_t length;

	/* Digits only: a sign, a blank or a list ("5, 5") is refused here. */
	if (!str_to_u64(value, UINT64_MAX / 2, &length))
		return BAD;
	if (f->has_length && f->length != length)
		return BAD;
	f->has_length = true;
	f->length = length;
	return 0;
}

static void connection(struct framing *f, struct str value)
{
	struct str_split words = str_split(value);
	struct str word;

	while (str_next(&words, ',', &word)) {
		f->close |= equals_ignoring_case(trim_blanks(word), "close");
		f->keep_alive |= equals_ignoring_case(trim_blanks(word), "keep-alive");
	}
}

static bool split_field(struct str line, struct str *ret_name, struct str *ret_value)
{
	const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;

	if (!colon)
		return false;
	*ret_name = (struct str){ line.p, (size_t)(colon - line.p) };
	*ret_value = trim_blanks(str_skip(line, ret_name->n + 1));
	return true;
}

struct str http1_field(struct str head, const char *name)
{
	struct str line, found, value;

	while (next_line(&head, &line))
		if (split_field(line, &found, &value) && equals_ignoring_case(found, name))
			return value;
	return STR("");
}

static int header_field(struct http1_parser *p, struct framing *f, struct str line)
{
	struct str name, value;

	if (!split_field(line, &name, &value))
		return BAD;
	if (!is_token(name) || !is_field_value(value))
		return BAD; /* also a folded line, and a blank before the colon */
	if (equals_ignoring_case(name, "content-length"))
		return content_length(f, value);
	if (equals_ignoring_case(name, "transfer-encoding")) {
		/* Compressed or repeated codings: a server that does not know a coding cannot know
		 * where the body ends (RFC 9112 section 6.1). */
		if (f->chunked || !equals_ignoring_case(value, "chunked"))
			return UNKNOWN;
		f->chunked = true;
	} else if (equals_ignoring_case(name, "host")) {
		if (f->has_host)
			return BAD;
		f->has_host = true;
	} else if (equals_ignoring_case(name, "connection")) {
		connection(f, value);
	} else if (equals_ignoring_case(name, "expect")) {
		if (!equals_ignoring_case(value, "100-continue"))
			return -417;
		p->expects_continue = true;
	}
	return 0;
}

/* Decides where the request ends (RFC 9112 section 6.3). */
static int frame_body(struct http1_parser *p, const struct framing *f)
{
	if (f->minor == 1 && !f->has_host)
		return BAD;
	/* Both lengths at once are how requests are smuggled past a proxy that uses the other
	 * one. */
	if (f->chunked && (f->has_length || f->minor == 0))
		return BAD;
	p->is_too_large = f->length > LIMIT_BODY_BYTES;
	/* A client that asks first is told at once. */
	if (p->is_too_large && p->expects_continue)
		return TOO_LARGE;
	p->keep_alive = !p->is_too_large && !f->close && (f->minor == 1 || f->keep_alive);
	p->state = f->chunked ? HTTP1_CHUNK_SIZE : HTTP1_BODY;
	p->body_n = f->chunked ? 0 : p->is_too_large ? LIMIT_BODY_PREFIX_BYTES : (size_t)f->length;
	p->need = p->body_at + p->body_n;
	/* Without a body there is nothing to wait for. */
	p->expects_continue &= f->chunked || f->length;
	return 0;
}

static int parse_head(struct http1_parser *p, struct str head)
{
	const char *start = head.p;
	struct framing f = { 0 };
	struct str line, rest = str_skip(head, p->skipped);
	int r;

	if (!next_line(&rest, &line))
		return BAD;
	r = request_line(p, line, start, &f);
	for (size_t i = 0; r >= 0; i++) {
		if (!next_line(&rest, &line))
			return BAD;
		if (!line.n)
			break;
		r = i < LIMIT_HEADER_FIELDS ? header_field(p, &f, line) : HEAD_TOO_LARGE;
	}
	return r < 0 ? r : frame_body(p, &f);
}

/* RFC 9112 section 2.2: empty lines before a request are ignored; a few are allowed here. */
static int skip_empty_lines(struct http1_parser *p, const char *bytes, size_t n)
{
	while (n - p->skipped >= 2 && memcmp(bytes + p->skipped, "\r\n", 2) == 0)
		p->skipped += 2;
	if (p->skipped > 8)
		return BAD;
	if (p->position < p->skipped)
		p->position = p->skipped;
	return 0;
}

static int head_step(struct http1_parser *p, const char *bytes, size_t n)
{
	static const char blank_line[] = "\r\n\r\n";
	const char *end;
	size_t from;
	int r = p->position == p->skipped ? skip_empty_lines(p, bytes, n) : 0;

	if (r < 0)
		return r;
	if (n - p->skipped <= 1) /* may be half of an empty line */
		return 0;
	/* The blank line may have been received in two parts: its first three bytes may be behind
	 * the position. */
	from = p->position > p->skipped + 3 ? p->position - 3 : p->skipped;
	end = memmem(bytes + from, n - from, blank_line, 4);
	p->position = end ? (size_t)(end - bytes) + 4 : n;
	/* Also while the end is missing, so that a header without an end does not grow. */
	if (p->position > LIMIT_HEAD_BYTES)
		return HEAD_TOO_LARGE;
	if (!end)
		return 0;
	p->body_at = p->position;
	r = parse_head(p, (struct str){ bytes, p->position });
	return r < 0 ? r : 1;
}

/* The body is used where it was received, without a copy. */
static int body_step(struct http1_parser *p, const char *bytes, size_t n)
{
	(void)bytes;
	if (n < p->body_at + p->body_n)
		return 0;
	p->position = p->body_at + p->body_n;
	return 2;
}

/* "1f;name=value". Extensions are skipped. */
static int chunk_size(struct str line, size_t *ret)
{
	size_t size = 0, i;

	for (i = 0; i < line.n && str_hex_digit(line.p[i]) >= 0; i++) {
		size = size * 16 + (size_t)str_hex_digit(line.p[i]);
		if (size > LIMIT_BODY_BYTES)
			return TOO_LARGE;
	}
	if (!i || (i < line.n && line.p[i] != ';') || !is_field_value(line))
		return BAD;
	*ret = size;
	return 0;
}

/* The line at the position. Returns 0 while it is incomplete. */
static int take_line(struct http1_parser *p, const char *bytes, size_t n, struct str *ret)
{
	struct str rest = { bytes + p->position, n - p->position };

	if (!rest.n || !memchr(rest.p, '\n', rest.n))
		return rest.n > MAX_CHUNK_LINE + 1 ? BAD : 0; /* one more: the CR */
	if (!next_line(&rest, ret) || ret->n > MAX_CHUNK_LINE)
		return BAD;
	p->position = n - rest.n;
	return 1;
}

static int chunk_size_step(struct http1_parser *p, const char *bytes, size_t n)
{
	struct str line;
	int r = take_line(p, bytes, n, &line);

	if (r <= 0)
		return r;
	r = chunk_size(line, &p->chunk_left);
	if (r < 0)
		return r;
	if (p->chunk_left > LIMIT_BODY_BYTES - p->body_n)
		return TOO_LARGE;
	p->state = p->chunk_left ? HTTP1_CHUNK_DATA : HTTP1_TRAILER;
	p->need = p->position + p->chunk_left;
	return 1;
}

static int chunk_data_step(struct http1_parser *p, char *bytes, size_t n)
{
	size_t have = n - p->position;
	size_t take = have < p->chunk_left ? have : p->chunk_left;

	/* Decoding in place: the body never overtakes the position, because each chunk comes after
	 * a size line of at least three bytes. */
	memmove(bytes + p->body_at + p->body_n, bytes + p->position, take);
	p->body_n += take;
	p->position += take;
	p->chunk_left -= take;
	if (p->chunk_left)
		return 0;
	p->state = HTTP1_CHUNK_END;
	return 1;
}

static int chunk_end_step(struct http1_parser *p, const char *bytes, size_t n)
{
	struct str line;
	int r = take_line(p, bytes, n, &line);

	if (r <= 0)
		return r;
	p->state = HTTP1_CHUNK_SIZE;
	return line.n ? BAD : 1;
}

static int trailer_step(struct http1_parser *p, const char *bytes, size_t n)
{
	struct str line;
	int r = take_line(p, bytes, n, &line);

	if (r <= 0)
		return r;
	return line.n ? 1 : 2; /* trailers are ignored */
}

/* 2: the request is complete; 1: continue; 0: more bytes are needed; negative: an HTTP status. */
static int parse_step(struct http1_parser *p, char *bytes, size_t n)
{
	switch (p->state) {
	case HTTP1_HEAD:
		return head_step(p, bytes, n);
	case HTTP1_BODY:
		return body_step(p, bytes, n);
	case HTTP1_CHUNK_SIZE:
		return chunk_size_step(p, bytes, n);
	case HTTP1_CHUNK_DATA:
		return chunk_data_step(p, bytes, n);
	case HTTP1_CHUNK_END:
		return chunk_end_step(p, bytes, n);
	case HTTP1_TRAILER:
		return trailer_step(p, bytes, n);
	}
	return BAD;
}

int64_t http1_parse(struct http1_parser *p, char *bytes, size_t n, struct http1_request *ret)
{
	size_t taken;
	int r = 1;

	while (r == 1)
		r = parse_step(p, bytes, n);
	/* Chunk sizes and extensions stay in the buffer after decoding, so they are limited, too.
	 */
	if (r >= 0 &&
	    p->position > LIMIT_HEAD_BYTES + LIMIT_BODY_BYTES + LIMIT_CHUNK_OVERHEAD_BYTES)
		r = TOO_LARGE;
	if (r <= 0)
		return r;
	*ret = (struct http1_request){
		.method = { bytes + p->skipped, p->method_n },
		.target = { bytes + p->target_at, p->target_n },
		.head = { bytes + p->skipped, p->body_at - p->skipped },
		.body = { bytes + p->body_at, p->body_n },
		.keep_alive = p->keep_alive,
		.is_truncated = p->is_too_large,
	};
	taken = p->position;
	/* What follows in the buffer is the next, pipelined request. */
	*p = (struct http1_parser){ 0 };
	return (int64_t)taken;
}

bool http1_partial(const struct http1_parser *p, struct str bytes, struct http1_request *ret)
{
	size_t have = bytes.n > p->body_at ? bytes.n - p->body_at : 0;

	if (p->state == HTTP1_HEAD)
		return false;
	/* Of a chunked body the decoded part; otherwise body_n is the announced length. */
	*ret = (struct http1_request){
		.method = { bytes.p + p->skipped, p->method_n },
		.target = { bytes.p + p->target_at, p->target_n },
		.body = { bytes.p + p->body_at, p->body_n < have ? p->body_n : have },
		.is_truncated = true,
	};
	return true;
}
