/* Isolated partitions: the kernel's words, and the order of what is written, in a tree of plain
 * files. Real kernels are asked in tests/e2e/node-features-kernel.sh. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/partition.h"
#include "cpus.h"
#include "test.h"

TEST(partition_state_is_parsed)
{
	static const struct {
		const char *text;
		enum partition_state state;
		const char *reason;
	} rows[] = {
		{ "member\n", PARTITION_MEMBER, "" },
		{ "isolated\n", PARTITION_ISOLATED, "" },
		{ "isolated invalid\n", PARTITION_INVALID, "" },
		{ "isolated invalid (Parent is not a partition root)\n", PARTITION_INVALID,
		  "Parent is not a partition root" },
		{ "isolated invalid (Invalid cpu list in cpuset.cpus.exclusive)", PARTITION_INVALID,
		  "Invalid cpu list in cpuset.cpus.exclusive" },
		{ "root\n", PARTITION_OTHER, "" },
		{ "root invalid (x)\n", PARTITION_OTHER, "" },
		{ "", PARTITION_OTHER, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct partition_status s;

		TEST_ROW("%s", rows[i].text);
		partition_parse(str_from(rows[i].text), &s);
		CHECK_INT(s.state, rows[i].state);
		CHECK_STR(s.reason, rows[i].reason);
	}
}

struct tree {
	char dir[64];
	struct arena a;
	struct cgroup_fs fs;
};

static void poke(const struct tree *t, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s", t->dir, path);
	f = fopen(full, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

static struct str peek(struct tree *t, const char *path)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(file_read_at(t->fs.cpuset_fd, path, 4096, &t->a, &text, &err));
	return str_trim(text);
}

/* kubepods/pod/{a,b}; without the new file it is an older kernel. */
static void tree_init(struct tree *t, bool has_exclusive)
{
	static const char *const paths[] = { "kubepods", "kubepods/pod", "kubepods/pod/a",
					     "kubepods/pod/b" };
	struct err err = { 0 };
	char full[512];

	*t = (struct tree){ 0 };
	arena_init(&t->a, 0);
	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/partition-test-XXXXXX");
	CHECK(mkdtemp(t->dir) != NULL);
	poke(t, "cgroup.controllers", "cpuset cpu\n");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		(void)snprintf(full, sizeof(full), "%s/%s", t->dir, paths[i]);
		CHECK_OK(file_mkdirs_at(AT_FDCWD, full, 0755, &err));
		(void)snprintf(full, sizeof(full), "%s/cpuset.cpus.partition", paths[i]);
		poke(t, full, "member\n");
		(void)snprintf(full, sizeof(full), "%s/cpuset.cpus.exclusive", paths[i]);
		if (has_exclusive)
			poke(t, full, "\n");
	}
	CHECK_OK(cgroup_open(&t->fs, t->dir, &err));
}

static void tree_done(struct tree *t)
{
	char command[128];

	cgroup_done(&t->fs);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	CHECK(system(command) == 0);
	arena_done(&t->a);
}

TEST(exclusive_cpus_are_added_to_all_ancestors_and_removed_again)
{
	CLEANUP(tree_done) struct tree t;
	struct cpuset a = cpus("4-5"), b = cpus("6");
	struct err err = { 0 };

	tree_init(&t, true);
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), 1);
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/b", &b, &err), 1);
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/b", &b, &err), 0);
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.exclusive"), "4-6");
	CHECK_STR(peek(&t, "kubepods/pod/cpuset.cpus.exclusive"), "4-6");
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.exclusive"), "4-5");
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.partition"), "isolated");
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.partition"), "member");

	CHECK_OK(partition_leave(&t.fs, "kubepods/pod/a", &a, &err));
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.partition"), "member");
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.exclusive"), "");
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.exclusive"), "6");
	CHECK_OK(partition_leave(&t.fs, "kubepods/pod/gone", &b, &err));
	CHECK_STR(peek(&t, "kubepods/pod/cpuset.cpus.exclusive"), "");
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.exclusive"), "");
}

TEST(invalidated_partition_is_restored)
{
	CLEANUP(tree_done) struct tree t;
	struct cpuset a = cpus("4-5");
	struct err err = { 0 };

	tree_init(&t, true);
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), 1);
	poke(&t, "kubepods/pod/a/cpuset.cpus.partition", "isolated invalid (Cpu list conflict)\n");
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), 1);
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.partition"), "isolated");
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.exclusive"), "4-5");
	poke(&t, "kubepods/pod/a/cpuset.cpus.partition", "root\n");
	CHECK_ERR(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), EPERM,
		  "it is a partition of another kind");
}

TEST(failed_partition_leaves_everything_as_it_was)
{
	CLEANUP(tree_done) struct tree t;
	struct cpuset a = cpus("4-5"), b = cpus("6");
	struct err err = { 0 };
	char path[512];

	tree_init(&t, true);
	CHECK_INT(partition_enter(&t.fs, "kubepods/pod/b", &b, &err), 1);
	(void)snprintf(path, sizeof(path), "%s/kubepods/pod/a/cpuset.cpus.exclusive", t.dir);
	CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0); /* keeps nothing */
	CHECK_ERR(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), EIO,
		  "kubepods/pod/a: wrote exclusive CPUs 4-5, kernel kept ");
	CHECK_STR(peek(&t, "kubepods/pod/a/cpuset.cpus.partition"), "member");
	CHECK_STR(peek(&t, "kubepods/cpuset.cpus.exclusive"), "6");
	CHECK_STR(peek(&t, "kubepods/pod/b/cpuset.cpus.partition"), "isolated");
}

TEST(cgroup_v1_has_no_partitions)
{
	CLEANUP(tree_done) struct tree t;
	struct cpuset a = cpus("4-5");
	struct err err = { 0 };

	tree_init(&t, true);
	t.fs.version = CGROUP_V1;
	CHECK_ERR(partition_enter(&t.fs, "kubepods/pod/a", &a, &err), ENOTSUP,
		  "cgroup v1 has no isolated partitions");
	CHECK_OK(partition_leave(&t.fs, "kubepods/pod/a", &a, &err));
}
