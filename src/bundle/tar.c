/* A header is one block: fields of fixed size, numbers in octal digits. A name that does not fit is
 * in a member of its own before it: type x (pax records) or L (GNU). */

#include "tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

#define NAME_AT 0
#define NAME_SIZE 100
#define MODE_AT 100
#define SIZE_AT 124
#define SIZE_SIZE 12
#define TIME_AT 136
#define CHECKSUM_AT 148
#define CHECKSUM_SIZE 8
#define TYPE_AT 156
#define MAGIC_AT 257
#define PREFIX_AT 345
#define PREFIX_SIZE 155

struct tar_reading {
	struct str rest;
	struct str file;
	struct arena *a;
	struct str next_name; /* of the next member, from a header before it */
	struct tar_list list;
};

struct tar_header {
	struct str name;
	uint64_t size_bytes;
	char type;
};

bool tar_name_is_safe(struct str name)
{
	struct str_split parts = str_split(name);
	struct str part;

	if (!name.n || name.n > TAR_MAX_NAME)
		return false;
	while (str_next(&parts, '/', &part))
		if (!part.n || str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return false;
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || name.p[i] == '\\')
			return false;
	return true;
}

/* A field ends at its first NUL. */
static struct str field(const char *block, size_t at, size_t size)
{
	return (struct str){ block + at, strnlen(block + at, size) };
}

/* Octal digits between blanks. False for GNU's binary form, which only very large files have. */
static bool read_octal(struct str text, uint64_t *ret)
{
	uint64_t n = 0;

	text = str_trim(text);
	if (!text.n || text.n > 12)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '7')
			return false;
		n = n * 8 + (uint64_t)(text.p[i] - '0');
	}
	*ret = n;
	return true;
}

/* The sum of all bytes, where those of the checksum itself count as blanks. */
static unsigned checksum(const char *block)
{
	unsigned sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_SIZE ?
			       ' ' :
			       (unsigned char)block[i];
	return sum;
}

bool tar_is(struct str bytes)
{
	uint64_t want;

	return bytes.n >= TAR_BLOCK && memcmp(bytes.p + MAGIC_AT, "ustar", 5) == 0 &&
	       read_octal(field(bytes.p, CHECKSUM_AT, CHECKSUM_SIZE), &want) &&
	       want == checksum(bytes.p);
}

static int read_header(struct tar_reading *t, struct tar_header *ret, struct err *err)
{
	const char *block = t->rest.p;
	struct str prefix, name;

	if (!tar_is(t->rest))
		return err_set(err, EINVAL, PRI_STR ": not a tar archive, or damaged after %zu %s",
			       FMT_STR(t->file), t->list.n, t->list.n == 1 ? "file" : "files");
	if (!read_octal(field(block, SIZE_AT, SIZE_SIZE), &ret->size_bytes))
		return err_set(err, EINVAL, PRI_STR ": a file has an invalid size",
			       FMT_STR(t->file));
	name = field(block, NAME_AT, NAME_SIZE);
	/* GNU's own format has "ustar  " and other fields in place of the prefix. */
	prefix = block[MAGIC_AT + 5] ? STR("") : field(block, PREFIX_AT, PREFIX_SIZE);
	ret->name = prefix.n ?
			    str_printf(t->a, PRI_STR "/" PRI_STR, FMT_STR(prefix), FMT_STR(name)) :
			    name;
	ret->type = block[TYPE_AT];
	t->rest = str_skip(t->rest, TAR_BLOCK);
	return 0;
}

/* The content, which is padded to whole blocks. The padding of the last member may be missing. */
static int read_content(struct tar_reading *t, uint64_t size_bytes, struct str *ret,
			struct err *err)
{
	const uint64_t padded = (size_bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;

	if (size_bytes > t->rest.n)
		return err_set(err, EINVAL, PRI_STR ": truncated after %zu %s", FMT_STR(t->file),
			       t->list.n, t->list.n == 1 ? "file" : "files");
	*ret = (struct str){ t->rest.p, (size_t)size_bytes };
	t->rest = str_skip(t->rest, padded > t->rest.n ? t->rest.n : (size_t)padded);
	return 0;
}

/* Records "LENGTH KEY=VALUE\n"; the length counts itself. Only the path matters. */
static int read_pax(struct tar_reading *t, struct str records, struct err *err)
{
	while (records.n) {
		const char *blank = memchr(records.p, ' ', records.n);
		struct str record;
		uint64_t n;

		if (!blank ||
		    !str_to_u64((struct str){ records.p, (size_t)(blank - records.p) }, records.n,
				&n) ||
		    n < (size_t)(blank - records.p) + 2 || records.p[n - 1] != '\n')
			return err_set(err, EINVAL, PRI_STR ": an extended header is invalid",
				       FMT_STR(t->file));
		record = (struct str){ blank + 1, (size_t)(records.p + n - 1 - (blank + 1)) };
		if (str_starts(record, STR("path=")))
			t->next_name = str_skip(record, 5);
		else if (str_starts(record, STR("size=")))
			return err_set(err, EFBIG, PRI_STR ": a file is too large",
				       FMT_STR(t->file));
		records = str_skip(records, (size_t)n);
	}
	return 0;
}

static int add_member(struct tar_reading *t, struct str name, struct str bytes, struct err *err)
{
	struct tar_list *l = &t->list;

	while (str_starts(name, STR("./"))) /* of `tar -C directory .` */
		name = str_skip(name, 2);
	if (!tar_name_is_safe(name))
		return err_set(err, EINVAL, PRI_STR ": refused because of a file with the name %s",
			       FMT_STR(t->file), quote(name).text);
	if (l->n == TAR_MAX_MEMBERS)
		return err_set(err, EFBIG, PRI_STR ": more than %d files", FMT_STR(t->file),
			       TAR_MAX_MEMBERS);
	l->items = arena_reserve(t->a, l->items, l->n, &l->cap, sizeof(*l->items));
	if (!l->items)
		return err_set(err, ENOMEM, PRI_STR ": out of memory", FMT_STR(t->file));
	l->items[l->n++] = (struct tar_member){ name, bytes };
	return 0;
}

static int read_member(struct tar_reading *t, struct err *err)
{
	struct tar_header h = { 0 };
	struct str bytes = { 0 }, name;
	int r = read_header(t, &h, err);

	if (r >= 0)
		r = read_content(t, h.size_bytes, &bytes, err);
	if (r < 0)
		return r;
	switch (h.type) {
	case 'x':
		return read_pax(t, bytes, err);
	case 'L':
		t->next_name = (struct str){ bytes.p, strnlen(bytes.p, bytes.n) };
		return 0;
	case 'g': /* for all members: comments of `git archive` and the like */
	case 'K': /* the target of a link */
		return 0;
	default:
		break;
	}
	name = t->next_name.n ? t->next_name : h.name;
	t->next_name = (struct str){ 0 };
	if (h.type != '0' && h.type != '\0' && h.type != '7')
		return 0; /* directories, links and devices */
	return add_member(t, name, bytes, err);
}

static bool is_zero(struct str block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block.p[i])
			return false;
	return true;
}

int tar_parse(struct str bytes, struct str file, struct arena *a, struct tar_list *ret,
	      struct err *err)
{
	struct tar_reading t = { .rest = bytes, .file = file, .a = a };
	int r;

	do {
		r = read_member(&t, err);
		/* Two blocks of zeros end an archive; some writers leave them out. */
	} while (r >= 0 && t.rest.n && !(t.rest.n >= TAR_BLOCK && is_zero(t.rest)));
	if (r >= 0)
		*ret = t.list;
	return r;
}

/* --- writing --- */

static void add_header(struct strbuf *b, struct str name, size_t size, char type, int64_t time_s)
{
	char block[TAR_BLOCK + 1] = { 0 };

	memcpy(block + NAME_AT, name.p, name.n > NAME_SIZE ? NAME_SIZE : name.n);
	/* Mode, owner and group: reproducible, and readable for the user who extracts it. */
	memcpy(block + MODE_AT, "0000600\0000000000\0000000000", 24);
	(void)snprintf(block + SIZE_AT, SIZE_SIZE, "%011llo", (unsigned long long)size);
	(void)snprintf(block + TIME_AT, SIZE_SIZE, "%011llo",
		       (unsigned long long)time_s & 077777777777ULL);
	block[TYPE_AT] = type;
	memcpy(block + MAGIC_AT, "ustar\00000", 8);
	(void)snprintf(block + CHECKSUM_AT, CHECKSUM_SIZE, "%06o", checksum(block));
	block[CHECKSUM_AT + CHECKSUM_SIZE - 1] = ' ';
	strbuf_add(b, (struct str){ block, TAR_BLOCK });
}

static void add_content(struct strbuf *b, struct str bytes)
{
	static const char zeros[TAR_BLOCK];
	const size_t over = bytes.n % TAR_BLOCK;

	strbuf_add(b, bytes);
	if (over)
		strbuf_add(b, (struct str){ zeros, TAR_BLOCK - over });
}

/* "LENGTH path=NAME\n"; one more digit may make the length longer by one. */
static struct str pax_record(struct str name, struct arena *a)
{
	const size_t n = sizeof(" path=\n") - 1 + name.n;
	size_t digits = 1, next;

	while ((next = str_printf(a, "%zu", n + digits).n) != digits)
		digits = next;
	return str_printf(a, "%zu path=" PRI_STR "\n", n + digits, FMT_STR(name));
}

void tar_add(struct strbuf *b, const struct tar_member *m, int64_t time_s)
{
	if (m->name.n > NAME_SIZE) {
		const struct str record = pax_record(m->name, b->a);

		add_header(b, STR("pax"), record.n, 'x', time_s);
		add_content(b, record);
	}
	add_header(b, m->name, m->bytes.n, '0', time_s);
	add_content(b, m->bytes);
}

void tar_end(struct strbuf *b)
{
	static const char zeros[2 * TAR_BLOCK];

	strbuf_add(b, (struct str){ zeros, sizeof(zeros) });
}
