#include "cgroup/cgroup_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "test.h"

/* Two hierarchies (v1) or one (v2) as plain directories, with one cgroup "c". */
struct fixture {
	char dir[32];
	struct cgroup_fs fs;
	struct cgroup_watch cgroup_watch;
};

static int tree(const char *dir, const char *name)
{
	char path[64];
	struct err err = { 0 };

	(void)snprintf(path, sizeof(path), "%s/%s/c", dir, name);
	CHECK_OK(file_mkdirs_at(AT_FDCWD, path, 0755, &err));
	path[strlen(path) - 2] = '\0';
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void place_init(struct fixture *p, enum cgroup_version version)
{
	*p = (struct fixture){ .dir = "/tmp/pinfold-watch-XXXXXX" };
	CHECK(mkdtemp(p->dir) != NULL);
	p->fs = (struct cgroup_fs){ version, tree(p->dir, version == CGROUP_V2 ? "cpuset" : "cpu"),
				    tree(p->dir, "cpuset") };
	cgroup_watch_init(&p->cgroup_watch);
	CHECK(p->cgroup_watch.fd >= 0);
}

static void place_done(struct fixture *p)
{
	char command[64];

	cgroup_watch_done(&p->cgroup_watch);
	cgroup_done(&p->fs);
	(void)snprintf(command, sizeof(command), "rm -r %s", p->dir);
	CHECK(system(command) == 0);
}

static void write_to(int tree_fd, const char *file)
{
	struct err err = { 0 };
	int fd = openat(tree_fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	(void)close(fd);
	CHECK_OK(file_write_value_at(tree_fd, file, STR("1"), &err));
}

struct heard {
	size_t n;
	int last;
	bool is_any;
};

static void on_write(void *data, int id)
{
	struct heard *h = data;

	h->n++;
	h->last = id;
	h->is_any |= id < 0;
}

static struct heard listen_to(struct fixture *p)
{
	struct heard h = { 0 };

	cgroup_watch_read(&p->cgroup_watch, on_write, &h);
	return h;
}

TEST(write_is_reported_for_watched_parts_only)
{
	static const struct {
		enum cgroup_version version;
		unsigned parts;
		bool is_cpuset; /* the hierarchy of the file */
		const char *file;
		bool want;
	} rows[] = {
		{ CGROUP_V2, CGROUP_ALL, true, "c/cpuset.cpus", true },
		{ CGROUP_V2, CGROUP_ALL, true, "c/cpu.weight", true },
		{ CGROUP_V2, CGROUP_ALL, true, "c/memory.max", false },
		{ CGROUP_V2, CGROUP_QUOTA, true, "c/cpu.max", true },
		{ CGROUP_V2, 0, true, "c/cpu.max", false },
		{ CGROUP_V1, CGROUP_ALL, true, "c/cpuset.cpus", true },
		{ CGROUP_V1, CGROUP_ALL, false, "c/cpu.shares", true },
		{ CGROUP_V1, CGROUP_CPUS, true, "c/cpuset.cpus", true },
		{ CGROUP_V1, CGROUP_CPUS, false, "c/cpu.shares", false },
		{ CGROUP_V1, CGROUP_WEIGHT, true, "c/cpuset.cpus", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(place_done) struct fixture p;
		struct cgroup_watch_ids ids = { 0 };
		struct heard h;
		int tree_fd;

		place_init(&p, rows[i].version);
		tree_fd = rows[i].is_cpuset ? p.fs.cpuset_fd : p.fs.cpu_fd;
		TEST_ROW("v%d, parts %u, %s", (int)rows[i].version, rows[i].parts, rows[i].file);
		cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", rows[i].parts, &ids);
		write_to(tree_fd, rows[i].file);
		h = listen_to(&p);
		CHECK_INT(h.n > 0, rows[i].want);
		CHECK_INT(cgroup_watch_is(&ids, h.last), rows[i].want);
		CHECK_UINT(listen_to(&p).n, 0);
	}
}

TEST(missing_cgroup_is_no_failure_and_can_be_added_later)
{
	CLEANUP(place_done) struct fixture p;
	struct cgroup_watch_ids ids = { 0 };

	place_init(&p, CGROUP_V2);
	cgroup_watch_add(&p.cgroup_watch, &p.fs, "later", CGROUP_ALL, &ids);
	CHECK_INT(ids.cpuset, 0);
	CHECK_INT(p.cgroup_watch.unwatched_errno, 0);
	CHECK_INT(mkdirat(p.fs.cpuset_fd, "later", 0755), 0);
	cgroup_watch_add(&p.cgroup_watch, &p.fs, "later", CGROUP_ALL, &ids);
	CHECK(ids.cpuset > 0);
}

TEST(removed_watch_reports_nothing)
{
	CLEANUP(place_done) struct fixture p;
	struct cgroup_watch_ids ids = { 0 };

	place_init(&p, CGROUP_V1);
	for (int round = 0; round < 2; round++) {
		cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", CGROUP_ALL, &ids);
		CHECK(ids.cpuset > 0 && ids.cpu > 0);
		cgroup_watch_remove(&p.cgroup_watch, &ids);
		CHECK(ids.cpuset == 0 && ids.cpu == 0);
		write_to(p.fs.cpuset_fd, "c/cpuset.cpus");
		write_to(p.fs.cpu_fd, "c/cpu.shares");
		CHECK_UINT(listen_to(&p).n, 0);
	}
}

static size_t queue_limit(void)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;
	uint64_t n;

	arena_init(&a, 0);
	CHECK_OK(file_read_value_at(AT_FDCWD, "/proc/sys/fs/inotify/max_queued_events", 64, &a,
				    &text, &err));
	CHECK(str_to_u64(str_trim(text), 10000000, &n));
	return (size_t)n;
}

/* Two files by turns, or the kernel keeps only one event of many. */
TEST(queue_overflow_is_reported_as_any_cgroup)
{
	CLEANUP(place_done) struct fixture p;
	struct cgroup_watch_ids ids = { 0 };
	struct err err = { 0 };

	place_init(&p, CGROUP_V2);
	cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", CGROUP_ALL, &ids);
	write_to(p.fs.cpuset_fd, "c/cpu.max");
	write_to(p.fs.cpuset_fd, "c/cpu.weight");
	for (size_t i = 0, limit = queue_limit(); i <= limit; i++)
		CHECK_OK(file_write_value_at(p.fs.cpuset_fd, i % 2 ? "c/cpu.max" : "c/cpu.weight",
					     STR("1"), &err));
	CHECK(listen_to(&p).is_any);
	CHECK(!listen_to(&p).is_any);
}

TEST(missing_inotify_sets_the_errno)
{
	CLEANUP(place_done) struct fixture p;
	struct cgroup_watch_ids ids = { 0 };
	int real;

	place_init(&p, CGROUP_V2);
	real = p.cgroup_watch.fd;
	p.cgroup_watch.fd = p.fs.cpuset_fd; /* not an inotify */
	cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", CGROUP_ALL, &ids);
	p.cgroup_watch.fd = real;
	CHECK_INT(ids.cpuset, 0);
	CHECK_INT(p.cgroup_watch.unwatched_errno, EINVAL);
}

/* No more descriptors: the kernel says the same when root has no more instances of inotify. */
TEST(failed_watches_are_retried_in_the_next_round)
{
	CLEANUP(place_done) struct fixture p;
	struct cgroup_watch_ids ids = { 0 };
	struct rlimit all, none;

	place_init(&p, CGROUP_V2);
	cgroup_watch_done(&p.cgroup_watch);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = all.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
	cgroup_watch_init(&p.cgroup_watch);
	for (int round = 0; round < 2; round++) {
		CHECK_INT(p.cgroup_watch.fd, -1);
		CHECK_INT(p.cgroup_watch.unwatched_errno, EMFILE);
		cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", CGROUP_ALL, &ids);
		cgroup_watch_end_round(&p.cgroup_watch);
	}
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &all), 0);
	cgroup_watch_end_round(&p.cgroup_watch);
	CHECK(p.cgroup_watch.fd >= 0);
	CHECK_INT(p.cgroup_watch.unwatched_errno, EMFILE); /* the round has not ended yet */
	cgroup_watch_add(&p.cgroup_watch, &p.fs, "c", CGROUP_ALL, &ids);
	CHECK(ids.cpuset > 0);
	cgroup_watch_end_round(&p.cgroup_watch);
	CHECK_INT(p.cgroup_watch.unwatched_errno, 0);
}
