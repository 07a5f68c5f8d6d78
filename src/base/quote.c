/* Untrusted text in error messages: quoted, in printable ASCII and of limited length, so that it
 * cannot be confused with the message around it or control a terminal. */

#include "quote.h"

#include <stdio.h>

static int escape(char *to, size_t space, char c)
{
	if (c == '"' || c == '\\')
		return snprintf(to, space, "\\%c", c);
	if (c == '\n')
		return snprintf(to, space, "\\n");
	if (c >= ' ' && c <= '~')
		return snprintf(to, space, "%c", c);
	return snprintf(to, space, "\\x%02x", (unsigned)(unsigned char)c);
}

struct quoted quote(struct str s)
{
	const size_t tail = sizeof("\\xff...\""); /* the longest text after the check below */
	struct quoted q = { "\"" };
	size_t n = 1;

	for (size_t i = 0; i < s.n; i++) {
		if (n + tail > sizeof(q.text)) {
			(void)snprintf(q.text + n, sizeof(q.text) - n, "...\"");
			return q;
		}
		n += (size_t)escape(q.text + n, sizeof(q.text) - n, s.p[i]);
	}
	(void)snprintf(q.text + n, sizeof(q.text) - n, "\"");
	return q;
}
