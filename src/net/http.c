/* What HTTP/1.1 and HTTP/2 have in common above the wire: texts of status codes and the parts of a
 * target. */

#include "http.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"

static const struct {
	unsigned status;
	const char *text;
} texts[] = {
	{ 200, "OK" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 413, "Content Too Large" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
};

const char *http_status_text(unsigned status)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "";
}

void http_response_status(struct http_response *ret, unsigned status, struct arena *a)
{
	*ret = (struct http_response){
		.status = status,
		.content_type = "text/plain; charset=utf-8",
		.body = str_printf(a, "%u %s\n", status, http_status_text(status)),
	};
}

void http_split_target(struct str target, struct str *ret_path, struct str *ret_query)
{
	const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;

	*ret_path = target;
	*ret_query = STR("");
	if (!mark)
		return;
	/* Both keep pointing into the target, which is in the connection's buffer: nothing is
	 * decoded or copied, because no path or query here needs escapes. */
	ret_path->n = (size_t)(mark - target.p);
	*ret_query = str_skip(target, ret_path->n + 1);
}

bool http_query_has(struct str query, struct str name)
{
	struct str_split parts = str_split(query);
	struct str part;

	while (str_next(&parts, '&', &part))
		if (str_starts(part, name) && (part.n == name.n || part.p[name.n] == '='))
			return true;
	return false;
}

/* One character of a query; -1 for an invalid escape. */
static int next_character(struct str *rest)
{
	int c = (unsigned char)rest->p[0], high, low;

	if (c != '%') {
		*rest = str_skip(*rest, 1);
		return c == '+' ? ' ' : c;
	}
	if (rest->n < 3)
		return -1;
	high = str_hex_digit(rest->p[1]);
	low = str_hex_digit(rest->p[2]);
	*rest = str_skip(*rest, 3);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static struct str decode(struct str text, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	while (text.n) {
		int c = next_character(&text);

		if (c < 0)
			return STR("");
		strbuf_addc(&b, (char)c);
	}
	return strbuf_str(&b);
}

struct str http_query_get(struct str query, struct str name, struct arena *a)
{
	struct str_split parts = str_split(query);
	struct str part;

	while (str_next(&parts, '&', &part))
		if (str_starts(part, name) && part.n > name.n && part.p[name.n] == '=')
			return decode(str_skip(part, name.n + 1), a);
	return STR("");
}
