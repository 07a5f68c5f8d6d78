#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "test.h"

#define REAL_MOUNT "/sys/fs/cgroup"

TEST(cgroups_are_found_by_the_names_of_both_drivers)
{
	static const struct {
		const char *name, *path;
	} table[] = {
		{ "", "" },
		{ "/kubepods/burstable/pod1/abc", "kubepods/burstable/pod1/abc" },
		{ "kubepods/pod1", "kubepods/pod1" },
		{ "kubepods-pod1.slice:cri-containerd:abc",
		  "kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope" },
		{ "kubepods-burstable-pod1.slice:crio:abc",
		  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
		  "crio-abc.scope" },
		{ "kubepods-burstable-pod1.slice",
		  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice" },
		{ "/kubepods.slice/kubepods-pod1.slice", "kubepods.slice/kubepods-pod1.slice" },
		{ "-.slice:crio:abc", "crio-abc.scope" },
		{ "/../etc", "" },
		{ "/kubepods/./x", "" },
		{ "a.slice:crio", "" },
		{ "a.slice::abc", "" },
		{ "noslice:crio:abc", "" },
		{ "a.slice:crio:../../x", "" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		TEST_ROW("%s", table[i].name);
		CHECK_STR(cgroup_path_of(table[i].name, &a), table[i].path);
	}
}

TEST(shares_become_the_weight_that_runtimes_write)
{
	static const struct {
		uint64_t shares, linear, weight;
	} cases[] = {
		{ 0, 1, 1 },
		{ 2, 1, 1 },
		{ 3, 1, 2 },
		{ 10, 1, 4 },
		{ 20, 1, 6 },
		{ 52, 2, 11 },
		{ 100, 4, 17 },
		{ 102, 4, 17 },
		{ 200, 8, 29 },
		{ 256, 10, 35 },
		{ 512, 20, 59 },
		{ 1000, 39, 99 },
		{ 1024, 39, 100 },
		{ 2000, 77, 170 },
		{ 2048, 79, 174 },
		{ 4096, 157, 303 },
		{ 10240, 391, 639 },
		{ 65536, 2500, 3023 },
		{ 262143, 9999, 10000 },
		{ 262144, 10000, 10000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%llu shares", (unsigned long long)cases[i].shares);
		CHECK_UINT(cgroup_weight_from_shares(cases[i].shares), cases[i].weight);
		CHECK_UINT(cgroup_weight_from_shares_linear(cases[i].shares), cases[i].linear);
	}
}

TEST(control_files_have_paths_up_to_the_kernels_limit)
{
	static const char file[] = "cpu.max";
	char path[PATH_MAX], ret[PATH_MAX];
	struct err err = { 0 };

	CHECK_OK(cgroup_file_path("kubepods/pod1", file, ret, &err));
	CHECK_STR(str_from(ret), "kubepods/pod1/cpu.max");
	CHECK_OK(cgroup_file_path("", file, ret, &err));
	CHECK_STR(str_from(ret), "cpu.max");
	/* The longest with room for "/cpu.max" and the zero byte, and one more. */
	memset(path, 'x', sizeof(path));
	path[PATH_MAX - 1 - sizeof(file)] = '\0';
	CHECK_OK(cgroup_file_path(path, file, ret, &err));
	CHECK_UINT(strlen(ret), PATH_MAX - 1);
	path[PATH_MAX - 1 - sizeof(file)] = 'x';
	path[PATH_MAX - sizeof(file)] = '\0';
	CHECK_INT(cgroup_file_path(path, file, ret, &err), -ENAMETOOLONG);
}

/* A captured v2 hierarchy: plain files in a directory of our own. */
static void make_captured(char dir[static 32], const char *max)
{
	static const char *const files[][2] = {
		{ "cgroup.controllers", "cpuset cpu io memory\n" },
		{ "pod/cpuset.cpus", "\n" },
		{ "pod/cpuset.cpus.effective", "0-3,8\n" },
		{ "pod/cpu.weight", "17\n" },
		{ "pod/cgroup.procs", "12\n4711\n" },
	};
	struct err err = { 0 };
	int fd;

	(void)snprintf(dir, 32, "/tmp/pinfold-cgroup-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_OK(file_mkdirs_at(fd, "pod", 0755, &err));
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		CHECK_OK(file_replace_at(fd, files[i][0], str_from(files[i][1]), 0644, &err));
	CHECK_OK(file_replace_at(fd, "pod/cpu.max", str_from(max), 0644, &err));
	(void)close(fd);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void remove_captured(const char *dir)
{
	CHECK_INT(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TEST(a_captured_v2_cgroup_reads_as_the_kernel_wrote_it)
{
	static const struct {
		const char *max;
		int64_t quota_us;
		uint64_t period_us;
	} cases[] = { { "max 100000\n", CGROUP_UNLIMITED, 100000 },
		      { "3500 50000\n", 3500, 50000 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cgroup_cpu got = { 0 };
		struct err err = { 0 };
		struct cgroup_fs fs;
		struct arena a;
		pid_t *pids;
		char dir[32];
		size_t n;

		arena_init(&a, 0);
		make_captured(dir, cases[i].max);
		CHECK_OK(cgroup_open(&fs, dir, &err));
		CHECK_INT(fs.version, CGROUP_V2);
		CHECK_OK(cgroup_read(&fs, "pod", CGROUP_ALL, &got, &err));
		CHECK(cpuset_is_empty(&got.cpus));
		CHECK_STR(cpuset_format(&got.effective, &a), "0-3,8");
		CHECK_UINT(got.weight, 17);
		CHECK_INT(got.quota_us, cases[i].quota_us);
		CHECK_UINT(got.period_us, cases[i].period_us);
		CHECK_OK(cgroup_procs(&fs, "pod", &a, &pids, &n, &err));
		CHECK_UINT(n, 2);
		CHECK_INT(pids[1], 4711);
		cgroup_done(&fs);
		remove_captured(dir);
		arena_done(&a);
	}
}

TEST(invalid_control_file_is_named_in_the_error)
{
	struct cgroup_cpu got;
	struct err err = { 0 };
	struct cgroup_fs fs;
	struct arena a;
	char dir[32];

	arena_init(&a, 0);
	make_captured(dir, "lots 100000\n");
	CHECK_OK(cgroup_open(&fs, dir, &err));
	CHECK_INT(cgroup_read(&fs, "pod", CGROUP_ALL, &got, &err), -EINVAL);
	CHECK(strstr(err.msg, "lots") != NULL);
	cgroup_done(&fs);
	remove_captured(dir);
	arena_done(&a);
}

TEST(a_directory_without_controllers_is_no_hierarchy)
{
	struct cgroup_fs fs = { 0 };
	struct err err = { 0 };

	CHECK_INT(cgroup_open(&fs, "/proc/self/task", &err), -ENODEV);
	CHECK_INT(cgroup_open(&fs, "/nonexistent", &err), -ENOENT);
}

static bool open_real(struct cgroup_fs *fs, char path[static 64])
{
	struct err err = { 0 };

	(void)snprintf(path, 64, "pinfold-test-%d/inner", (int)getpid());
	if (cgroup_open(fs, REAL_MOUNT, &err) < 0)
		return false;
	if (cgroup_make(fs, path, &err) < 0) {
		cgroup_done(fs);
		return false;
	}
	return true;
}

static void close_real(struct cgroup_fs *fs, const char *path)
{
	struct err err = { 0 };
	char parent[64];

	CHECK_OK(cgroup_remove(fs, path, &err));
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)strcspn(path, "/"), path);
	CHECK_OK(cgroup_remove(fs, parent, &err));
	CHECK(!cgroup_exists(fs, parent));
	cgroup_done(fs);
}

TEST(written_settings_are_kept_and_apply_to_tasks)
{
	struct cgroup_cpu before, after;
	struct err err = { 0 };
	struct cgroup_fs fs;
	struct cpuset one = { 0 };
	struct arena a;
	cpu_set_t allowed;
	char path[64];
	pid_t *pids, child;
	size_t n;

	if (!open_real(&fs, path))
		TEST_SKIP("no writable cgroup hierarchy here");
	arena_init(&a, 0);
	CHECK_OK(cgroup_read(&fs, path, CGROUP_ALL, &before, &err));
	cpuset_add(&one, cpuset_first(&before.effective));
	CHECK_OK(cgroup_set_cpus(&fs, path, &one, &err));
	CHECK_OK(cgroup_set_shares(&fs, path, 307, &err));
	CHECK_OK(cgroup_set_quota(&fs, path, 3500, 50000, &err));
	CHECK_OK(cgroup_read(&fs, path, CGROUP_ALL, &after, &err));
	CHECK(cpuset_eq(&after.effective, &one));
	CHECK_UINT(after.weight, cgroup_weight_expected(&fs, 307));
	CHECK_INT(after.quota_us, 3500);
	CHECK_OK(cgroup_set_quota(&fs, path, CGROUP_UNLIMITED, CGROUP_PERIOD_US, &err));

	child = fork();
	if (child == 0)
		for (;;)
			(void)pause();
	CHECK_OK(cgroup_attach(&fs, path, child, &err));
	CHECK_OK(cgroup_procs(&fs, path, &a, &pids, &n, &err));
	CHECK_UINT(n, 1);
	CHECK_INT(pids[0], child);
	CHECK_INT(sched_getaffinity(child, sizeof(allowed), &allowed), 0);
	CHECK_INT(CPU_COUNT(&allowed), 1);
	CHECK(CPU_ISSET(cpuset_first(&one), &allowed));
	CHECK_INT(cgroup_remove(&fs, path, &err), -EBUSY);
	(void)kill(child, SIGKILL);
	CHECK_INT(waitpid(child, NULL, 0), child);
	close_real(&fs, path);
	arena_done(&a);
}

TEST(what_the_kernel_refuses_is_an_error_and_changes_nothing)
{
	struct cgroup_cpu before, after;
	struct cpuset none = { 0 }, absent = { 0 };
	struct err err = { 0 };
	struct cgroup_fs fs;
	struct arena a;
	char path[64];

	if (!open_real(&fs, path))
		TEST_SKIP("no writable cgroup hierarchy here");
	arena_init(&a, 0);
	cpuset_add(&absent, 8191);
	CHECK_OK(cgroup_read(&fs, path, CGROUP_ALL, &before, &err));
	CHECK_INT(cgroup_set_cpus(&fs, path, &none, &err), -EINVAL);
	CHECK(cgroup_set_cpus(&fs, path, &absent, &err) < 0);
	CHECK(cgroup_set_quota(&fs, path, 10, CGROUP_PERIOD_US, &err) < 0);
	CHECK_OK(cgroup_read(&fs, path, CGROUP_ALL, &after, &err));
	CHECK(cpuset_eq(&before.cpus, &after.cpus));
	CHECK_INT(after.quota_us, before.quota_us);
	close_real(&fs, path);
	arena_done(&a);
}
