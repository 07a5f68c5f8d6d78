#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/walk.h"
#include "test.h"

struct seen {
	struct strbuf b;
	size_t root; /* length of the directory's own name */
	bool fail;
};

static int note(void *data, const char *path, struct err *err)
{
	struct seen *s = data;

	strbuf_add(&s->b, str_from(path + s->root));
	strbuf_addc(&s->b, ' ');
	return s->fail ? err_set(err, EIO, "enough") : 0;
}

static bool is_yaml(struct str name, bool is_directory)
{
	return !str_starts(name, STR(".")) && (is_directory || str_ends(name, STR(".yaml")));
}

TEST(a_directory_argument_yields_its_files_sorted)
{
	static const char MAKE[] =
		"cd %s && mkdir b .hidden && touch z.yaml a.txt b/1.yaml b/.2.yaml "
		".hidden/3.yaml && ln -s z.yaml link.yaml && ln -s b round && "
		"ln -s /nonexistent dangling.yaml && mkfifo pipe.yaml";
	static const struct {
		const char *below;
		bool filter, fail;
		int want;
		const char *seen;
	} rows[] = {
		{ "", false, false, 0,
		  "/.hidden/3.yaml /a.txt /b/.2.yaml /b/1.yaml /link.yaml /z.yaml " },
		{ "", true, false, 0, "/b/1.yaml /link.yaml /z.yaml " },
		{ "/round", true, false, 0, "/round/1.yaml " },
		{ "/a.txt", true, false, 0, "/a.txt " },
		{ "/b/", true, false, 0, "/b/1.yaml " },
		{ "/absent", false, false, -ENOENT, "" },
		{ "", false, true, -EIO, "/.hidden/3.yaml " },
	};
	char dir[] = "/tmp/pinfold-walk-XXXXXX", command[320];
	struct arena a;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir));
	(void)snprintf(command, sizeof(command), MAKE, dir);
	CHECK_INT(system(command), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = { .root = strlen(dir), .fail = rows[i].fail };
		struct walk w = { &a, rows[i].filter ? is_yaml : NULL, note, &s };
		struct str path = str_printf(&a, "%s%s", dir, rows[i].below);
		struct err err = { 0 };

		TEST_ROW("%s", rows[i].below);
		strbuf_init(&s.b, &a);
		CHECK_INT(walk_files(&w, str_cstr(&a, path), &err), rows[i].want);
		CHECK_STR(strbuf_str(&s.b), str_from(rows[i].seen));
	}
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_INT(system(command), 0);
	arena_done(&a);
}

TEST(directories_nested_too_deeply_are_refused)
{
	char dir[] = "/tmp/pinfold-walk-XXXXXX", command[320];
	struct seen s = { 0 };
	struct err err = { 0 };
	struct arena a;
	struct walk w = { &a, NULL, note, &s };

	arena_init(&a, 0);
	strbuf_init(&s.b, &a);
	CHECK(mkdtemp(dir));
	(void)snprintf(command, sizeof(command), "cd %s && mkdir -p $(printf 'd/%%.0s' $(seq 40))",
		       dir);
	CHECK_INT(system(command), 0);
	CHECK_INT(walk_files(&w, dir, &err), -ELOOP);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_INT(system(command), 0);
	arena_done(&a);
}
