/* MachineConfigs and Ignition files hold the files of a node in base64. In a diff each is shown as
 * its text, indented below its key, so that a user sees the line that changes. */

#include <string.h>

#include "base/arena.h"
#include "codec/base64.h"
#include "plan.h"

static bool is_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' && s.p[i] != '\n' && s.p[i] != '\t')
			return false;
	return true;
}

static bool is_base64(char c)
{
	return str_is_alnum(c) || c == '+' || c == '/' || c == '=';
}

static void add_decoded(struct strbuf *b, struct str text)
{
	struct str_split lines = str_split(text);
	struct str line;

	strbuf_add(b, STR("(decoded)"));
	while (str_next(&lines, '\n', &line))
		strbuf_printf(b, "\n        | " PRI_STR, FMT_STR(line));
	strbuf_addc(b, '\n');
}

struct str plan_readable(struct str bytes, struct arena *a)
{
	const struct str prefix = STR("data:text/plain;charset=utf-8;base64,");
	struct strbuf b;

	strbuf_init(&b, a);
	while (bytes.n) {
		const char *at = memmem(bytes.p, bytes.n, prefix.p, prefix.n);
		struct str text, encoded;
		size_t n = 0;

		if (!at)
			break;
		encoded = str_skip(bytes, (size_t)(at - bytes.p) + prefix.n);
		while (n < encoded.n && is_base64(encoded.p[n]))
			n++;
		strbuf_add(&b, (struct str){ bytes.p, (size_t)(at - bytes.p) });
		/* What does not decode, and what is no text, stays as it is. */
		if (base64_decode((struct str){ encoded.p, n }, a, &text, NULL) == 0 &&
		    is_text(text))
			add_decoded(&b, text);
		else
			strbuf_add(&b, (struct str){ at, prefix.n + n });
		bytes = str_skip(encoded, n);
	}
	strbuf_add(&b, bytes);
	return strbuf_str(&b);
}
