/* Calls are written in little-endian order, whatever the machine has: the first byte of a message
 * says so. A service replies in the order of its own machine. */

#include "dbus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define FIXED_HEADER 16 /* with the length of the fields */

enum field {
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_ERROR_NAME = 4,
	FIELD_REPLY_SERIAL = 5,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8,
};

/* --- writing --- */

void dbus_align(struct strbuf *b, size_t to)
{
	while (b->n % to && !b->failed)
		strbuf_addc(b, 0);
}

static void put_u32(char *p, uint32_t n)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (char)(n >> (8 * i) & 0xff);
}

void dbus_add_u32(struct strbuf *b, uint32_t n)
{
	char bytes[4];

	dbus_align(b, 4);
	put_u32(bytes, n);
	strbuf_add(b, (struct str){ bytes, 4 });
}

void dbus_add_string(struct strbuf *b, struct str s)
{
	dbus_add_u32(b, (uint32_t)s.n);
	strbuf_add(b, s);
	strbuf_addc(b, 0);
}

void dbus_add_signature(struct strbuf *b, struct str s)
{
	strbuf_addc(b, (char)s.n);
	strbuf_add(b, s);
	strbuf_addc(b, 0);
}

/* The padding before the first element does not count as length. */
struct dbus_array dbus_begin_array(struct strbuf *b, size_t align)
{
	struct dbus_array array;

	dbus_add_u32(b, 0);
	array.length_at = b->n - 4;
	dbus_align(b, align);
	array.first = b->n;
	return array;
}

void dbus_end_array(struct strbuf *b, struct dbus_array array)
{
	if (!b->failed)
		put_u32(b->p + array.length_at, (uint32_t)(b->n - array.first));
}

static void add_field(struct strbuf *b, enum field code, const char *type, const char *value)
{
	dbus_align(b, 8);
	strbuf_addc(b, (char)code);
	dbus_add_signature(b, str_from(type));
	if (*type == 'g')
		dbus_add_signature(b, str_from(value));
	else
		dbus_add_string(b, str_from(value));
}

void dbus_add_call(struct strbuf *to, const struct dbus_call *call)
{
	struct dbus_array fields;
	struct strbuf b;

	strbuf_init(&b, to->a); /* alignment counts from the beginning of the message */
	strbuf_add(&b, (struct str){ "l\1\0\1", 4 });
	dbus_add_u32(&b, (uint32_t)call->body.n);
	dbus_add_u32(&b, call->serial);
	fields = dbus_begin_array(&b, 8);
	add_field(&b, FIELD_PATH, "o", call->path);
	add_field(&b, FIELD_INTERFACE, "s", call->interface);
	add_field(&b, FIELD_MEMBER, "s", call->member);
	add_field(&b, FIELD_DESTINATION, "s", call->destination);
	if (*call->signature)
		add_field(&b, FIELD_SIGNATURE, "g", call->signature);
	dbus_end_array(&b, fields);
	dbus_align(&b, 8);
	strbuf_add(&b, call->body);
	strbuf_add(to, strbuf_str(&b));
}

/* --- reading --- */

struct reader {
	struct str bytes;
	size_t at;
	bool is_big_endian, failed;
};

static const char *take(struct reader *r, size_t align, size_t n)
{
	const size_t at = (r->at + align - 1) / align * align;

	if (r->failed || at > r->bytes.n || n > r->bytes.n - at) {
		r->failed = true;
		return NULL;
	}
	r->at = at + n;
	return r->bytes.p + at;
}

static uint32_t get_u32(const char *p, bool is_big_endian)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < 4; i++)
		n |= (uint32_t)(unsigned char)p[i] << 8 * (is_big_endian ? 3 - i : i);
	return n;
}

static uint32_t read_u32(struct reader *r)
{
	const char *p = take(r, 4, 4);

	return p ? get_u32(p, r->is_big_endian) : 0;
}

/* `n` bytes and a NUL. */
static struct str read_text(struct reader *r, size_t n)
{
	const char *p = n < DBUS_MAX_MESSAGE ? take(r, 1, n + 1) : NULL;

	if (!p || p[n] != 0 || memchr(p, 0, n)) {
		r->failed = true;
		return STR("");
	}
	return (struct str){ p, n };
}

static struct str read_string(struct reader *r)
{
	return read_text(r, read_u32(r));
}

static struct str read_signature(struct reader *r)
{
	const char *n = take(r, 1, 1);

	return n ? read_text(r, (unsigned char)*n) : STR("");
}

/* The value of a header field. All that the specification has are strings and numbers; another
 * type in a field of the future ends the connection. */
static void read_field(struct reader *r, struct dbus_message *m)
{
	const char *code = take(r, 8, 1);
	const struct str type = read_signature(r);
	struct str text = STR("");
	uint32_t number = 0;

	if (str_eq(type, STR("s")) || str_eq(type, STR("o")))
		text = read_string(r);
	else if (str_eq(type, STR("g")))
		text = read_signature(r);
	else if (str_eq(type, STR("u")))
		number = read_u32(r);
	else
		r->failed = true;
	if (r->failed)
		return;
	if (*code == FIELD_REPLY_SERIAL)
		m->reply_serial = number;
	else if (*code == FIELD_ERROR_NAME)
		m->error_name = text;
	else if (*code == FIELD_SIGNATURE)
		m->signature = text;
}

/* Sizes of a whole message by its first 16 bytes. */
static int read_sizes(struct str bytes, bool is_big_endian, size_t *ret_header, size_t *ret_body,
		      struct err *err)
{
	const uint32_t body = get_u32(bytes.p + 4, is_big_endian);
	const uint32_t fields = get_u32(bytes.p + 12, is_big_endian);

	if (body > DBUS_MAX_MESSAGE || fields > DBUS_MAX_MESSAGE)
		return err_set(err, EMSGSIZE, "D-Bus: message of %zu bytes",
			       (size_t)body + fields + FIXED_HEADER);
	*ret_header = (FIXED_HEADER + (size_t)fields + 7) / 8 * 8;
	*ret_body = body;
	return 0;
}

int dbus_parse(struct str bytes, struct dbus_message *ret, size_t *ret_size, struct err *err)
{
	struct reader r = { .bytes = bytes };
	struct dbus_message m = { .error_name = STR(""), .signature = STR(""), .body = STR("") };
	size_t header, body;

	if (bytes.n < FIXED_HEADER)
		return 0;
	if ((*bytes.p != 'l' && *bytes.p != 'B') || bytes.p[3] != 1 || bytes.p[1] < DBUS_CALL ||
	    bytes.p[1] > DBUS_SIGNAL)
		return err_set(err, EBADMSG, "D-Bus: not a message");
	r.is_big_endian = m.is_big_endian = *bytes.p == 'B';
	m.type = (enum dbus_type)bytes.p[1];
	if (read_sizes(bytes, m.is_big_endian, &header, &body, err) < 0)
		return -EMSGSIZE;
	if (bytes.n < header + body)
		return 0;
	m.serial = get_u32(bytes.p + 8, m.is_big_endian);
	r.bytes.n = FIXED_HEADER + get_u32(bytes.p + 12, m.is_big_endian);
	r.at = FIXED_HEADER;
	while (!r.failed && r.at < r.bytes.n)
		read_field(&r, &m);
	if (r.failed || m.serial == 0)
		return err_set(err, EBADMSG, "D-Bus: malformed header");
	m.body = (struct str){ bytes.p + header, body };
	*ret = m;
	*ret_size = header + body;
	return 1;
}

struct str dbus_error_text(const struct dbus_message *m)
{
	struct reader r = { .bytes = m->body, .is_big_endian = m->is_big_endian };
	struct str text;

	if (!str_starts(m->signature, STR("s")))
		return STR("");
	text = read_string(&r);
	return r.failed ? STR("") : text;
}

/* --- authentication --- */

/* A NUL goes first: some systems pass credentials with it. The user is its decimal number, each
 * digit as two hexadecimal ones. */
void dbus_add_auth(struct strbuf *b, unsigned uid)
{
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%u", uid);
	strbuf_addc(b, 0);
	strbuf_add(b, STR("AUTH EXTERNAL "));
	for (const char *p = digits; *p; p++)
		strbuf_printf(b, "%02x", (unsigned)(unsigned char)*p);
	strbuf_add(b, STR("\r\nBEGIN\r\n"));
}

int dbus_parse_auth(struct str bytes, size_t *ret_size, struct err *err)
{
	const char *end = bytes.n ? memchr(bytes.p, '\n', bytes.n) : NULL;
	struct str line;

	if (!end && bytes.n <= DBUS_MAX_LINE)
		return 0;
	if (!end || end - bytes.p > DBUS_MAX_LINE)
		return err_set(err, EMSGSIZE, "D-Bus: authentication line is too long");
	line = str_trim((struct str){ bytes.p, (size_t)(end - bytes.p) });
	if (!str_starts(line, STR("OK ")))
		return err_set(err, EACCES, "D-Bus: the server refused the authentication");
	*ret_size = (size_t)(end + 1 - bytes.p);
	return 1;
}
