/* The longest common subsequence by dynamic programming: quadratic, but short and exact. Manifests
 * and node files are small. */

#include "diff.h"

#include <stdint.h>

#include "base/arena.h"

#define CONTEXT ((size_t)3) /* lines, as in diff -u */
#define MAX_LINES 4000	    /* 32 MB of table; larger texts are shown as replaced entirely */

struct lines {
	struct str *items;
	size_t n;
};

static struct lines split_lines(struct str text, struct arena *a)
{
	struct str_split split = str_split(text);
	struct lines l = { 0 };
	struct str line;
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	l.items = arena_array(a, struct str, n);
	while (l.items && str_next(&split, '\n', &line))
		if (line.n || !split.ended) /* what follows the last newline is no line */
			l.items[l.n++] = line;
	return l;
}

/* table[i][j]: lines that x from i on and y from j on have in common, in order. */
static uint16_t *common_table(const struct lines *x, const struct lines *y, struct arena *a)
{
	size_t width = y->n + 1;
	uint16_t *t = arena_array(a, uint16_t, (x->n + 1) * width);

	for (size_t i = x->n; t && i-- > 0;)
		for (size_t j = y->n; j-- > 0;) {
			uint16_t down = t[(i + 1) * width + j], right = t[i * width + j + 1];

			if (str_eq(x->items[i], y->items[j]))
				t[i * width + j] = (uint16_t)(t[(i + 1) * width + j + 1] + 1);
			else
				t[i * width + j] = down >= right ? down : right;
		}
	return t;
}

struct edit {
	char mark; /* ' ', '-', '+' */
	struct str line;
};

struct script {
	struct edit *items;
	size_t n;
};

static struct script script_of(const struct lines *x, const struct lines *y, struct arena *a)
{
	struct script s = { arena_array(a, struct edit, x->n + y->n + 1), 0 };
	bool is_small = x->n <= MAX_LINES && y->n <= MAX_LINES;
	const uint16_t *t = is_small ? common_table(x, y, a) : NULL;
	size_t i = 0, j = 0, width = y->n + 1;

	while (s.items && (i < x->n || j < y->n)) {
		if (t && i < x->n && j < y->n && str_eq(x->items[i], y->items[j])) {
			s.items[s.n++] = (struct edit){ ' ', x->items[i++] };
			j++;
		} else if (i < x->n &&
			   (j == y->n || !t || t[(i + 1) * width + j] >= t[i * width + j + 1])) {
			s.items[s.n++] = (struct edit){ '-', x->items[i++] };
		} else {
			s.items[s.n++] = (struct edit){ '+', y->items[j++] };
		}
	}
	return s;
}

/* One past the hunk that begins at `begin`: changes closer than two contexts belong together. */
static size_t hunk_end(const struct script *s, size_t begin)
{
	size_t last = begin;

	for (size_t i = begin; i < s->n && i <= last + 2 * CONTEXT; i++)
		if (s->items[i].mark != ' ')
			last = i;
	return last + CONTEXT + 1 < s->n ? last + CONTEXT + 1 : s->n;
}

static void count(const struct script *s, size_t begin, size_t end, size_t ret[2])
{
	ret[0] = ret[1] = 0;
	for (size_t i = begin; i < end; i++) {
		ret[0] += s->items[i].mark != '+';
		ret[1] += s->items[i].mark != '-';
	}
}

static void print_hunk(struct strbuf *b, const struct script *s, size_t begin, size_t end)
{
	size_t before[2], within[2];

	count(s, 0, begin, before);
	count(s, begin, end, within);
	/* Lines count from 1, but an empty side names the line before it: "-0,0" in a new file. */
	strbuf_printf(b, "@@ -%zu,%zu +%zu,%zu @@\n", before[0] + (within[0] != 0), within[0],
		      before[1] + (within[1] != 0), within[1]);
	for (size_t i = begin; i < end; i++)
		strbuf_printf(b, "%c" PRI_STR "\n", s->items[i].mark, FMT_STR(s->items[i].line));
}

struct str diff_unified(struct str before, struct str after, const char *from, const char *to,
			struct arena *a)
{
	struct lines x = split_lines(before, a), y = split_lines(after, a);
	struct script s;
	struct strbuf b;
	size_t done = 0;

	strbuf_init(&b, a);
	if (str_eq(before, after))
		return STR("");
	s = script_of(&x, &y, a);
	strbuf_printf(&b, "--- %s\n+++ %s\n", from, to);
	for (size_t i = 0; i < s.n; i++) {
		size_t begin = i > done + CONTEXT ? i - CONTEXT : done;

		if (s.items[i].mark == ' ')
			continue;
		done = hunk_end(&s, i);
		print_hunk(&b, &s, begin, done);
		i = done - 1;
	}
	return strbuf_str(&b);
}
