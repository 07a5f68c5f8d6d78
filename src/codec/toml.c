/* Writes TOML line by line into a text, without a document in between: the files that need it have
 * a fixed layout and comments. */

#include "toml.h"

#include "toml_lex.h"

static void add_quoted(struct strbuf *b, struct str s)
{
	strbuf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\') {
			strbuf_addc(b, '\\');
			strbuf_addc(b, (char)c);
		} else if (c < 0x20 || c == 0x7f) {
			/* TOML forbids control characters in basic strings, also DEL. */
			strbuf_printf(b, "\\u%04X", c);
		} else {
			strbuf_addc(b, (char)c);
		}
	}
	strbuf_addc(b, '"');
}

static void add_key(struct strbuf *b, struct str key)
{
	bool is_bare = key.n > 0;

	for (size_t i = 0; i < key.n; i++)
		is_bare &= toml_is_bare((unsigned char)key.p[i]);
	if (is_bare)
		strbuf_add(b, key);
	else
		add_quoted(b, key);
}

void toml_table(struct strbuf *b, const struct str *parts, size_t n)
{
	if (b->n)
		strbuf_addc(b, '\n');
	strbuf_addc(b, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_addc(b, '.');
		add_key(b, parts[i]);
	}
	strbuf_add(b, STR("]\n"));
}

static void begin_pair(struct strbuf *b, struct str key)
{
	add_key(b, key);
	strbuf_add(b, STR(" = "));
}

void toml_str(struct strbuf *b, struct str key, struct str value)
{
	begin_pair(b, key);
	add_quoted(b, value);
	strbuf_addc(b, '\n');
}

void toml_int(struct strbuf *b, struct str key, int64_t value)
{
	begin_pair(b, key);
	strbuf_printf(b, "%lld\n", (long long)value);
}

void toml_bool(struct strbuf *b, struct str key, bool value)
{
	begin_pair(b, key);
	strbuf_add(b, value ? STR("true\n") : STR("false\n"));
}
