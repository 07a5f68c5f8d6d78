/* Output is written at once and checked at once: buffered output that fails at exit would be lost
 * with status 0. */

#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/yaml.h"

#define OUTPUT_WIDTH 80 /* of pipes and files */
#define OUTPUT_WIDTH_MIN 50
#define OUTPUT_WIDTH_MAX 240

enum output_format output_format_of(const char *name)
{
	if (name && strcmp(name, "json") == 0)
		return OUTPUT_JSON;
	if (name && strcmp(name, "yaml") == 0)
		return OUTPUT_YAML;
	if (name && strcmp(name, "svg") == 0)
		return OUTPUT_SVG;
	if (name && strcmp(name, "html") == 0)
		return OUTPUT_HTML;
	return OUTPUT_TABLE;
}

int output_text_to(FILE *to, struct str text, struct err *err)
{
	if (fwrite(text.p, 1, text.n, to) != text.n || fflush(to) != 0)
		return err_set(err, errno ? errno : EIO, "cannot write the output: %s",
			       strerror(errno));
	return 0;
}

/* The length of a colour sequence at the beginning of the text, 0 when there is none. Only what
 * this program writes: bold, the eight colours, and their end. A sequence that hides text is none.
 */
static size_t colour_length(struct str s)
{
	size_t i = 2, number = 0;

	if (!str_starts(s, STR("\033[")))
		return 0;
	for (; i < s.n && number < 100; i++) {
		if (str_is_digit(s.p[i])) {
			number = number * 10 + (size_t)(s.p[i] - '0');
			continue;
		}
		if ((s.p[i] != ';' && s.p[i] != 'm') ||
		    (number > 1 && (number < 30 || number > 37)))
			return 0;
		if (s.p[i] == 'm')
			return i + 1;
		number = 0;
	}
	return 0;
}

/* Terminals take U+0080 to U+009F for control characters, too. */
static bool is_control(struct str s)
{
	const unsigned char c = (unsigned char)s.p[0];

	if (c == 0xc2 && s.n > 1)
		return (unsigned char)s.p[1] < 0xa0;
	return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

/* How many bytes at the beginning are printed as they are. */
static size_t printable_length(struct str s, bool has_colour)
{
	size_t i = 0;

	while (i < s.n) {
		const struct str rest = str_skip(s, i);
		const size_t colour = has_colour && s.p[i] == 033 ? colour_length(rest) : 0;

		if (!colour && is_control(rest))
			break;
		i += colour ? colour : 1;
	}
	return i;
}

struct str output_printable(struct str text, struct arena *a)
{
	const bool has_colour = output_wants_colour();
	struct strbuf b;

	if (printable_length(text, has_colour) == text.n)
		return text;
	strbuf_init(&b, a);
	while (text.n) {
		size_t n = printable_length(text, has_colour);

		strbuf_add(&b, (struct str){ text.p, n });
		text = str_skip(text, n);
		n = text.n && (unsigned char)text.p[0] == 0xc2 ? 2 : 1;
		for (size_t i = 0; i < n && i < text.n; i++)
			strbuf_printf(&b, "\\x%02x", (unsigned)(unsigned char)text.p[i]);
		text = str_skip(text, n);
	}
	return strbuf_str(&b);
}

int output_readable(struct str text, struct err *err)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	return output_text(output_printable(text, &a), err);
}

int output_text(struct str text, struct err *err)
{
	return output_text_to(stdout, text, err);
}

int output_doc(yyjson_mut_val *v, enum output_format format, struct arena *a, struct err *err)
{
	return output_doc_to(stdout, v, format, a, err);
}

int output_doc_to(FILE *to, yyjson_mut_val *v, enum output_format format, struct arena *a,
		  struct err *err)
{
	struct str text;
	int r;

	if (format == OUTPUT_YAML)
		r = yaml_write(v, a, &text, err);
	else
		r = doc_write(v, true, a, &text, err);
	if (r >= 0)
		r = output_text_to(to, text, err);
	/* The YAML writer ends with a newline, the JSON writer does not. */
	if (r >= 0 && format == OUTPUT_JSON)
		r = output_text_to(to, STR("\n"), err);
	return r;
}

bool output_wants_colour(void)
{
	const char *no_color = getenv("NO_COLOR"); /* https://no-color.org */
	const char *term = getenv("TERM");

	if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
		return false;
	return isatty(STDOUT_FILENO); /* no escape sequences in pipes and files */
}

size_t output_width(void)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width = OUTPUT_WIDTH;
	struct winsize size;

	if (columns && str_to_u64(str_from(columns), UINT32_MAX, &width) && width > 0)
		;
	else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		width = size.ws_col;
	else
		width = OUTPUT_WIDTH;
	return width < OUTPUT_WIDTH_MIN ? OUTPUT_WIDTH_MIN :
	       width > OUTPUT_WIDTH_MAX ? OUTPUT_WIDTH_MAX :
					  width;
}

size_t text_width(struct str s)
{
	size_t width = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == 0x1b) { /* a colour sequence runs to its 'm' */
			while (i < s.n && s.p[i] != 'm')
				i++;
			continue;
		}
		width += (c & 0xc0) != 0x80; /* continuation bytes of UTF-8 have no width */
	}
	return width;
}

void table_init(struct table *t, size_t n_columns, struct arena *a)
{
	*t = (struct table){ .a = a, .n_columns = n_columns };
}

void table_add(struct table *t, const struct str *cells)
{
	if (t->n + t->n_columns > t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16 * t->n_columns;

		t->cells = arena_realloc(t->a, t->cells, t->cap * sizeof(*cells),
					 cap * sizeof(*cells));
		t->cap = cap;
	}
	memcpy(t->cells + t->n, cells, t->n_columns * sizeof(*cells));
	t->n += t->n_columns;
}

static size_t column_width(const struct table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->n; i += t->n_columns) {
		size_t width = text_width(t->cells[i]);

		widest = width > widest ? width : widest;
	}
	return widest;
}

static void add_row(struct strbuf *b, const struct str *cells, const size_t *widths, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		strbuf_add(b, cells[i]);
		strbuf_printf(b, "%*s", (int)(widths[i] - text_width(cells[i]) + 2), "");
	}
	strbuf_add(b, cells[n - 1]);
	strbuf_addc(b, '\n');
}

struct str table_or_dash(struct str s)
{
	return s.n ? s : STR("-");
}

struct str table_format(const struct table *t)
{
	size_t *widths = arena_array(t->a, size_t, t->n_columns);
	struct strbuf b;

	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = column_width(t, c);
	strbuf_init(&b, t->a);
	for (size_t row = 0; row < t->n; row += t->n_columns)
		add_row(&b, t->cells + row, widths, t->n_columns);
	return strbuf_str(&b);
}
