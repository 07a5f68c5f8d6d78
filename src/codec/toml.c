#include "toml.h"

#include <ctype.h>

static void add_quoted(struct strbuf *b, struct str s)
{
	strbuf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\') {
			strbuf_addc(b, '\\');
			strbuf_addc(b, (char)c);
		} else if (c < 0x20 || c == 0x7f) {
			strbuf_printf(b, "\\u%04X", c);
		} else {
			strbuf_addc(b, (char)c);
		}
	}
	strbuf_addc(b, '"');
}

static bool is_bare(struct str key)
{
	for (size_t i = 0; i < key.n; i++)
		if (!isalnum((unsigned char)key.p[i]) && key.p[i] != '_' && key.p[i] != '-')
			return false;
	return key.n > 0;
}

static void add_key(struct strbuf *b, struct str key)
{
	if (is_bare(key))
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

void toml_strs(struct strbuf *b, struct str key, const struct str *values, size_t n)
{
	begin_pair(b, key);
	strbuf_addc(b, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_add(b, STR(", "));
		add_quoted(b, values[i]);
	}
	strbuf_add(b, STR("]\n"));
}

static void add_comment_line(struct strbuf *b, struct str line)
{
	strbuf_add(b, line.n ? STR("# ") : STR("#"));
	for (size_t i = 0; i < line.n; i++)
		strbuf_addc(b, iscntrl((unsigned char)line.p[i]) ? ' ' : line.p[i]);
	strbuf_addc(b, '\n');
}

void toml_comment(struct strbuf *b, struct str text)
{
	struct str_split lines = str_split(text);
	struct str line;

	while (str_next(&lines, '\n', &line))
		add_comment_line(b, line);
}
