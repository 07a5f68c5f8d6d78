#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "test.h"

/* A directory of its own for each test, and the arena that goes with it. */
struct place {
	char path[32];
	int fd;
	struct arena a;
};

static struct place place_new(void)
{
	struct place p = { .path = "/tmp/pinfold-test-XXXXXX" };

	CHECK(mkdtemp(p.path));
	p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p.fd >= 0);
	arena_init(&p.a, 0);
	return p;
}

static void place_done(struct place *p)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", p->path);
	CHECK_INT(system(command), 0);
	(void)close(p->fd);
	arena_done(&p->a);
}

static void put(struct place *p, const char *name, struct str text)
{
	int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
	(void)close(fd);
}

static struct str get(struct place *p, const char *name)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(file_read_at(p->fd, name, 1 << 20, &p->a, &text, &err));
	return text;
}

/* The names in the directory as "a b c". */
static struct str names(struct place *p, const char *path)
{
	struct err err = { 0 };
	struct strbuf b;
	struct str *list;
	size_t n;

	CHECK_OK(file_list_at(p->fd, path, &p->a, &list, &n, &err));
	strbuf_init(&b, &p->a);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? " " : "", FMT_STR(list[i]));
	return strbuf_str(&b);
}

typedef int (*reader)(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		      struct err *err);

TEST(a_file_is_read_up_to_its_limit)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
	static const reader readers[] = { file_read_at, file_read_value_at };
	CLEANUP(place_done) struct place p = place_new();

	for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++) {
		const reader read_at = readers[i % 2];
		size_t n = sizes[i / 2];
		char *bytes = arena_zalloc(&p.a, n + 1, 1);
		struct err err = { 0 };
		struct str text = STR("untouched");

		memset(bytes, 'x', n);
		put(&p, "f", (struct str){ bytes, n });
		TEST_ROW("%zu bytes", n);
		CHECK_OK(read_at(p.fd, "f", n, &p.a, &text, &err));
		CHECK_STR(text, ((struct str){ bytes, n }));
		if (n == 0)
			continue;
		text = STR("untouched");
		CHECK_INT(read_at(p.fd, "f", n - 1, &p.a, &text, &err), -EFBIG);
		CHECK_STR((const char *)err.msg,
			  str_printf(&p.a, "f: larger than %zu bytes", n - 1));
		CHECK_STR(text, "untouched");
	}
}

TEST(a_file_that_is_too_large_is_refused_before_it_is_read)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };
	struct str text;
	size_t used;

	put(&p, "f", STR(""));
	CHECK_INT(truncate(str_cstr(&p.a, str_printf(&p.a, "%s/f", p.path)), 100 << 20), 0);
	used = p.a.used;
	CHECK_ERR(file_read_at(p.fd, "f", 16 << 20, &p.a, &text, &err), EFBIG,
		  "f: larger than 16777216 bytes");
	CHECK_UINT(p.a.used, used);
}

/* proc and sysfs files report size 0; pipes report none. */
TEST(files_without_a_size_are_read)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };
	struct str text;
	FILE *pipe;

	CHECK_OK(file_read_at(AT_FDCWD, "/proc/self/status", 1 << 20, &p.a, &text, &err));
	CHECK(str_starts(text, STR("Name:")));
	CHECK_ERR(file_read_at(AT_FDCWD, "/proc/self/status", 10, &p.a, &text, &err), EFBIG,
		  "/proc/self/status: larger than 10 bytes");

	pipe = popen("head -c 3000000 /dev/zero", "r");
	CHECK_OK(file_read_fd(fileno(pipe), "pipe", 3000000, &p.a, &text, &err));
	CHECK_UINT(text.n, 3000000);
	(void)pclose(pipe);
	pipe = popen("head -c 3000000 /dev/zero", "r");
	CHECK_ERR(file_read_fd(fileno(pipe), "pipe", 2999999, &p.a, &text, &err), EFBIG,
		  "pipe: larger than 2999999 bytes");
	(void)pclose(pipe);
}

TEST(a_read_error_names_the_file_and_the_call)
{
	CLEANUP(place_done) struct place p = place_new();
	CLEANUP(arena_done) struct arena small;
	struct err err = { 0 };
	struct str text;

	put(&p, "f", STR("text"));
	arena_init(&small, 100);
	CHECK_ERR(file_read_at(p.fd, "none", 9, &p.a, &text, &err), ENOENT,
		  "open none: No such file or directory");
	CHECK_ERR(file_read_at(p.fd, ".", 1 << 20, &p.a, &text, &err), EISDIR,
		  "read .: Is a directory");
	CHECK_ERR(file_read_at(p.fd, "f", 9, &small, &text, &err), ENOMEM, "f: not enough memory");
}

TEST(a_control_file_is_written_but_never_created)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };
	struct str kept;

	put(&p, "cpus", STR("0-127\n"));
	CHECK_OK(file_write_value_at(p.fd, "cpus", STR("0-3"), &err));
	CHECK_STR(get(&p, "cpus"), "0-3");
	CHECK_ERR(file_write_value_at(p.fd, "none", STR("1"), &err), ENOENT,
		  "open none: No such file or directory");
	CHECK_ERR(file_write_value_at(AT_FDCWD, "/dev/full", STR("1"), &err), ENOSPC,
		  "write /dev/full: No space left on device");
	CHECK_OK(file_exchange_value_at(p.fd, "cpus", STR("8\n"), 16, &p.a, &kept, &err));
	CHECK_STR(kept, "8\n");
	CHECK_ERR(file_exchange_value_at(p.fd, "none", STR("1"), 16, &p.a, &kept, &err), ENOENT,
		  "open none: No such file or directory");
	CHECK_STR(names(&p, "."), "cpus");
}

static unsigned mode_of(struct place *p, const char *name)
{
	struct stat st;

	CHECK_INT(fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

TEST(a_replaced_file_has_the_new_bytes_and_mode)
{
	static const mode_t modes[] = { 0600, 0644, 0666, 0755 };
	CLEANUP(place_done) struct place p = place_new();
	mode_t mask = umask(077);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct str text = str_printf(&p.a, "state %zu", i);
		struct err err = { 0 };

		TEST_ROW("mode %o", modes[i]);
		CHECK_OK(file_replace_at(p.fd, "state", text, modes[i], &err));
		CHECK_STR(get(&p, "state"), text);
		CHECK_UINT(mode_of(&p, "state"), modes[i]);
		CHECK_STR(names(&p, "."), "state");
	}
	(void)umask(mask);
}

TEST(an_open_descriptor_keeps_the_old_bytes)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };
	struct str text;
	int old;

	put(&p, "state", STR("old"));
	old = openat(p.fd, "state", O_RDONLY | O_CLOEXEC);
	CHECK_OK(file_replace_at(p.fd, "state", STR("new"), 0644, &err));
	CHECK_OK(file_read_fd(old, "old", 9, &p.a, &text, &err));
	CHECK_STR(text, "old");
	CHECK_STR(get(&p, "state"), "new");
	(void)close(old);
}

TEST(a_stale_temporary_file_is_replaced)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };

	put(&p, "state.pinfold-new", STR("half of a much longer text"));
	CHECK_INT(fchmodat(p.fd, "state.pinfold-new", 0400, 0), 0);
	CHECK_OK(file_replace_at(p.fd, "state", STR("new"), 0640, &err));
	CHECK_STR(get(&p, "state"), "new");
	CHECK_UINT(mode_of(&p, "state"), 0640);
	CHECK_STR(names(&p, "."), "state");
}

/* A symbolic link planted by another user must not redirect the write. */
TEST(a_symbolic_link_at_the_temporary_path_is_not_followed)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };

	put(&p, "victim", STR("precious"));
	CHECK_INT(symlinkat("victim", p.fd, "state.pinfold-new"), 0);
	CHECK_OK(file_replace_at(p.fd, "state", STR("new"), 0644, &err));
	CHECK_STR(get(&p, "victim"), "precious");
	CHECK_STR(names(&p, "."), "state victim");
}

TEST(a_failed_replacement_changes_nothing)
{
	CLEANUP(place_done) struct place p = place_new();
	char name[4096];
	struct err err = { 0 };

	CHECK_OK(file_mkdirs_at(p.fd, "dir/full", 0755, &err));
	CHECK_OK(file_mkdirs_at(p.fd, "busy.pinfold-new", 0755, &err));
	put(&p, "file", STR("text"));

	CHECK_ERR(file_replace_at(p.fd, "dir", STR("x"), 0644, &err), EISDIR,
		  "rename to dir: Is a directory");
	CHECK_ERR(file_replace_at(p.fd, "none/file", STR("x"), 0644, &err), ENOENT,
		  "create none/file.pinfold-new: No such file or directory");
	CHECK_ERR(file_replace_at(p.fd, "busy", STR("x"), 0644, &err), EISDIR,
		  "remove busy.pinfold-new: Is a directory");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_INT(file_replace_at(p.fd, name, STR("x"), 0644, &err), -ENAMETOOLONG);
	CHECK_STR(names(&p, "."), "busy.pinfold-new dir file");
	CHECK_STR(names(&p, "dir"), "full");
}

/* RLIMIT_FSIZE simulates a full disk: the write fails part way. */
TEST(a_partial_write_leaves_only_the_old_file)
{
	const struct rlimit small = { 65536, RLIM_INFINITY },
			    none = { RLIM_INFINITY, RLIM_INFINITY };
	CLEANUP(place_done) struct place p = place_new();
	struct str large = { arena_zalloc(&p.a, 1 << 20, 1), 1 << 20 };
	struct err err = { 0 };
	int r;

	(void)signal(SIGXFSZ, SIG_IGN);
	CHECK_OK(file_replace_at(p.fd, "state", STR("old"), 0644, &err));
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = file_replace_at(p.fd, "state", large, 0644, &err);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
	CHECK_ERR(r, EFBIG, "write state.pinfold-new: File too large");
	CHECK_STR(names(&p, "."), "state");
	CHECK_STR(get(&p, "state"), "old");
}

TEST(replacing_works_with_relative_and_absolute_paths)
{
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };
	const char *path = str_cstr(&p.a, str_printf(&p.a, "%s/a/whole", p.path));

	CHECK_OK(file_mkdirs_at(p.fd, "a/b", 0755, &err));
	CHECK_OK(file_replace_at(p.fd, "a/b/f", STR("1"), 0644, &err));
	CHECK_OK(file_replace_at(AT_FDCWD, path, STR("2"), 0644, &err));
	CHECK_STR(get(&p, "a/b/f"), "1");
	CHECK_STR(get(&p, "a/whole"), "2");
}

TEST(missing_parents_are_created_and_existing_ones_unchanged)
{
	static const char *const paths[] = { "a", "a/b/c", "a/b/c", "a//d/", "./e", "" };
	CLEANUP(place_done) struct place p = place_new();
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		TEST_ROW("\"%s\"", paths[i]);
		CHECK_OK(file_mkdirs_at(p.fd, paths[i], 0750, &err));
	}
	CHECK_STR(names(&p, "."), "a e");
	CHECK_STR(names(&p, "a"), "b d");
	CHECK_STR(names(&p, "a/b"), "c");
	put(&p, "file", STR(""));
	CHECK_ERR(file_mkdirs_at(p.fd, "file", 0755, &err), EEXIST, "mkdir file: File exists");
	CHECK_ERR(file_mkdirs_at(p.fd, "file/x", 0755, &err), EEXIST, "mkdir file: File exists");
}

TEST(a_directory_is_listed_in_bytewise_order)
{
	CLEANUP(place_done) struct place p = place_new();
	CLEANUP(arena_done) struct arena small;
	struct err err = { 0 };
	struct str *list;
	size_t n = 7;

	CHECK_STR(names(&p, "."), "");
	for (unsigned i = 0; i < 100; i++)
		put(&p, str_cstr(&p.a, str_printf(&p.a, "cpu%u", i)), STR(""));
	put(&p, ".hidden", STR(""));
	CHECK_OK(file_list_at(p.fd, ".", &p.a, &list, &n, &err));
	CHECK_UINT(n, 101);
	CHECK_STR(list[0], ".hidden");
	CHECK_STR(list[1], "cpu0");
	CHECK_STR(list[3], "cpu10");
	CHECK_ERR(file_list_at(p.fd, "none", &p.a, &list, &n, &err), ENOENT,
		  "open none: No such file or directory");
	for (size_t limit = 1; limit < 4000; limit += 17) {
		arena_init(&small, limit);
		CHECK_ERR(file_list_at(p.fd, ".", &small, &list, &n, &err), ENOMEM,
			  ".: not enough memory");
		arena_done(&small);
	}
	arena_init(&small, 0);
	CHECK_UINT(n, 101);
}
