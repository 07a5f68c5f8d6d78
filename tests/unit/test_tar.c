#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "bundle/tar.h"
#include "readers.h"
#include "test.h"

static struct str archive(struct arena *a, const struct tar_member *members, size_t n)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		tar_add(&b, &members[i], 1763380800);
	tar_end(&b);
	return strbuf_str(&b);
}

/* A changed header has a new checksum, as that of an attacker would. */
static void seal(char *block)
{
	unsigned sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	(void)snprintf(block + 148, 8, "%06o", sum);
}

TEST(what_is_written_is_read_back)
{
	CLEANUP(arena_done) struct arena a;
	char name[400];
	struct err err = { 0 };
	struct tar_list list;

	arena_init(&a, 0);
	/* Lengths around the size of the field, and around a length record of one more digit. */
	for (size_t n = 1; n < sizeof(name); n++) {
		const struct tar_member members[] = { { STR("first"), STR("") },
						      { { name, n }, STR("content\n") } };

		TEST_ROW("a name of %zu bytes", n);
		memset(name, 'n', n);
		CHECK_OK(tar_parse(archive(&a, members, 2), STR("t"), &a, &list, &err));
		CHECK_UINT(list.n, 2);
		CHECK_UINT(list.items[0].bytes.n, 0);
		CHECK_STR(list.items[1].name, members[1].name);
		CHECK_STR(list.items[1].bytes, "content\n");
	}
}

TEST(tar_reads_what_is_written)
{
	CLEANUP(arena_done) struct arena a;
	char path[] = "/tmp/pinfold-tar-XXXXXX", command[256], out[1024] = "";
	struct tar_member members[] = { { STR("d/short"), STR("one") },
					{ STR("d/long"), STR("") } };
	FILE *f;

	arena_init(&a, 0);
	members[1].name = str_printf(&a, "d/%0300d", 7);
	readers_put(path, archive(&a, members, 2));
	(void)snprintf(command, sizeof(command), "tar -tf %s && tar -xOf %s d/short", path, path);
	f = popen(command, "r"); // NOLINT(cert-env33-c): the real tar is the point of the test
	CHECK(f != NULL);
	CHECK(fread(out, 1, sizeof(out) - 1, f) > 0);
	CHECK_INT(pclose(f), 0);
	(void)unlink(path);
	CHECK_STR(str_from(out),
		  str_printf(&a, "d/short\n" PRI_STR "\none", FMT_STR(members[1].name)));
}

TEST(archives_of_tar_are_read)
{
	/* GNU names of more than 100 bytes, POSIX prefixes, pax; directories and links are left
	 * out. */
	static const char *const formats[] = { "gnu", "ustar", "pax" };

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		CLEANUP(arena_done) struct arena a;
		char command[1024], *bytes;
		struct err err = { 0 };
		struct tar_list list;
		size_t n;
		FILE *f;

		arena_init(&a, 0);
		TEST_ROW("%s", formats[i]);
		(void)snprintf(
			command, sizeof(command),
			"d=$(mktemp -d) && cd $d && p=b/$(printf 'a%%.0s' $(seq 90))/$(printf "
			"'c%%.0s' $(seq 90)) && mkdir -p $(dirname $p) && echo x >$p && "
			"ln -s /etc/passwd b/link && tar -c --format=%s b && rm -r $d",
			formats[i]);
		f = popen(command, "r"); // NOLINT(cert-env33-c)
		CHECK(f != NULL);
		bytes = arena_alloc(&a, 1 << 16, 1);
		n = fread(bytes, 1, 1 << 16, f);
		CHECK_INT(pclose(f), 0);
		CHECK_OK(tar_parse((struct str){ bytes, n }, STR("t"), &a, &list, &err));
		CHECK_UINT(list.n, 1);
		CHECK_UINT(list.items[0].name.n, 2 + 90 + 1 + 90);
		CHECK_STR(list.items[0].bytes, "x\n");
	}
}

TEST(attack_names_in_an_archive_lead_out_of_its_directory)
{
	static const struct str names[] = {
		STR_INIT("/etc/passwd"), STR_INIT("../x"),  STR_INIT("a/../../x"), STR_INIT("a//b"),
		STR_INIT("a/."),	 STR_INIT("a\nb"),  STR_INIT("a\x1b[2Jb"), STR_INIT(".."),
		STR_INIT("a\\..\\b"),	 STR_INIT("a\x7f"), STR_INIT("a/"),
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(arena_done) struct arena a;
		const struct tar_member m = { names[i], STR("x") };
		struct err err = { 0 };
		struct tar_list list;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		CHECK(!tar_name_is_safe(names[i]));
		CHECK_INT(tar_parse(archive(&a, &m, 1), STR("t"), &a, &list, &err), -EINVAL);
		CHECK(str_starts(str_from(err.msg), STR("t: refused because of a file")));
	}
	CHECK(tar_name_is_safe(STR("objects/pods.json")));
	CHECK(tar_name_is_safe(STR("..a/b..")));
	CHECK(!tar_name_is_safe((struct str){ names[0].p, 0 }));
}

TEST(damaged_archives_are_refused)
{
	static const struct {
		size_t at;
		const char *bytes;
		size_t n;
		bool sealed;
		const char *why;
	} rows[] = {
		{ 0, "X", 1, false, "t: not a tar archive, or damaged after 0 files" },
		{ 257, "xstar", 5, true, "t: not a tar archive, or damaged after 0 files" },
		{ 124, "77777777777", 11, true, "t: truncated after 0 files" },
		{ 124, "\200\0\0\0", 4, true, "t: a file has an invalid size" },
		{ 124, "9", 1, true, "t: a file has an invalid size" },
		{ 124, "            ", 12, true, "t: a file has an invalid size" },
		{ 156, "x", 1, true, "t: an extended header is invalid" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		const struct tar_member m = { STR("a"), STR("some text") };
		struct err err = { 0 };
		struct tar_list list;
		struct str bytes;
		char *copy;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		bytes = archive(&a, &m, 1);
		copy = arena_alloc(&a, bytes.n, 1);
		memcpy(copy, bytes.p, bytes.n);
		memcpy(copy + rows[i].at, rows[i].bytes, rows[i].n);
		if (rows[i].sealed)
			seal(copy);
		CHECK_ERR(tar_parse((struct str){ copy, bytes.n }, STR("t"), &a, &list, &err),
			  EINVAL, rows[i].why);
	}
}

TEST(extended_headers_are_checked)
{
	static const struct {
		struct str records;
		const char *why; /* NULL: read */
	} rows[] = {
		{ STR_INIT("10 path=b\n"), NULL },
		{ STR_INIT("11 mtime=1\n10 path=b\n"), NULL },
		{ STR_INIT("13 path=../b\n"),
		  "t: refused because of a file with the name \"../b\"" },
		{ STR_INIT("99 path=b\n"), "t: an extended header is invalid" },
		{ STR_INIT("1 path=b\n"), "t: an extended header is invalid" },
		{ STR_INIT("10 path=bc"), "t: an extended header is invalid" },
		{ STR_INIT("path=b\n"), "t: an extended header is invalid" },
		{ STR_INIT("20 size=99999999999\n"), "t: a file is too large" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		const struct tar_member members[] = { { STR("pax"), rows[i].records },
						      { STR("a"), STR("text") } };
		struct err err = { 0 };
		struct tar_list list;
		struct str bytes;
		int r;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		bytes = archive(&a, members, 2);
		((char *)bytes.p)[156] = 'x';
		seal((char *)bytes.p);
		r = tar_parse(bytes, STR("t"), &a, &list, &err);
		CHECK_STR(err.msg, rows[i].why ? rows[i].why : "");
		if (rows[i].why)
			continue;
		CHECK_OK(r);
		CHECK_UINT(list.n, 1);
		CHECK_STR(list.items[0].name, "b");
	}
}

TEST(a_truncated_archive_never_loses_files_silently)
{
	CLEANUP(arena_done) struct arena a;
	const struct tar_member members[] = { { STR("a"), STR("x") }, { STR("b"), STR("y") } };
	struct str whole;

	arena_init(&a, 0);
	whole = archive(&a, members, 2);
	for (size_t n = 0; n < whole.n; n++) {
		struct err err = { 0 };
		struct tar_list list = { 0 };
		int r = tar_parse((struct str){ whole.p, n }, STR("t"), &a, &list, &err);

		TEST_ROW("%zu bytes", n);
		/* Complete with the second content, and at the boundary after the first. */
		CHECK((r < 0) ==
		      (n < TAR_BLOCK + 1 || (n > 2 * TAR_BLOCK && n < 3 * TAR_BLOCK + 1) ||
		       (n > 4 * TAR_BLOCK && n < 5 * TAR_BLOCK)));
	}
}
