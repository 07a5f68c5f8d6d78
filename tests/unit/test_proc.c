/* What /proc says, from texts, from a captured machine, and from this one. */

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "captured.h"
#include "cgroup/proc.h"
#include "test.h"

TEST(cgroup_of_a_process_is_that_of_the_unified_hierarchy_or_of_systemd)
{
	static const struct {
		const char *text, *cgroup;
	} rows[] = {
		{ "0::/system.slice/cron.service\n", "/system.slice/cron.service" },
		{ "9:name=systemd:/user.slice/a:b.scope\n3:cpuset:/\n0::/\n",
		  "/user.slice/a:b.scope" },
		{ "1:name=systemd:/init.scope\n0::/init.scope\n", "/init.scope" },
		{ "3:cpuset:/x\n0::/\n", "/" },
		{ "3:cpuset:/x\n", "" },
		{ "nothing", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(proc_parse_cgroup(str_from(rows[i].text)), rows[i].cgroup);
}

TEST(start_of_a_process_tells_processes_with_the_same_id_apart)
{
	struct proc_stat s;

	CHECK(proc_parse_stat(STR("7 (a b) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 -7 8 20 0 1 0 123456 9 "
				  "9\n"),
			      &s));
	CHECK_UINT(s.start_ticks, 123456);
	CHECK(proc_parse_stat(STR("7 (cut) S 1 7 7 0 -1 4194304 1 2 3"), &s));
	CHECK_UINT(s.start_ticks, 0);
}

TEST(process_name_may_contain_any_character)
{
	static const struct {
		const char *text, *name; /* NULL: refused */
		int parent;
		bool is_zombie, is_kernel;
	} rows[] = {
		{ "201 (du main) S 1 201 201 0 -1 4194304 0 0\n", "du main", 1, false, false },
		{ "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0\n", "kthreadd", 0, false, true },
		{ "7 (a) R (b) Z 5 1 1 0 -1 4194304 0\n", "a) R (b", 5, true, false },
		{ "7 () X 5 1 1 0 -1 4194304 0\n", "", 5, true, false },
		{ "7 (cut) S 5 1 1 0", NULL, 0, false, false },
		{ "7 )x( S 5 1 1 0 -1 4194304", NULL, 0, false, false },
		{ "7 (x", NULL, 0, false, false },
		{ "", NULL, 0, false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proc_stat s;

		TEST_ROW("%s", rows[i].text);
		CHECK(proc_parse_stat(str_from(rows[i].text), &s) == (rows[i].name != NULL));
		if (!rows[i].name)
			continue;
		CHECK_STR(s.name, rows[i].name);
		CHECK_INT(s.parent, rows[i].parent);
		CHECK(s.is_zombie == rows[i].is_zombie && s.is_kernel == rows[i].is_kernel);
	}
}

TEST(allowed_cpus_are_found_among_the_status_lines)
{
	static const struct {
		const char *text, *cpus; /* NULL: none there */
	} rows[] = {
		{ "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,7\nMems_allowed:\t1\n",
		  "0-3,7" },
		{ "Cpus_allowed_list:\t5", "5" },
		{ "Cpus_allowed:\tff\n", NULL },
		{ "Cpus_allowed_list:\t0-99999\n", NULL },
		{ "", NULL },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cpuset cpus;

		TEST_ROW("%s", rows[i].text);
		CHECK(proc_parse_allowed(str_from(rows[i].text), &cpus) == (rows[i].cpus != NULL));
		if (rows[i].cpus)
			CHECK_STR(cpuset_format(&cpus, &a), rows[i].cpus);
	}
}

/* Threads 7, 8 and 10 live, two of them alike; 9 has ended; 11 has no status; 12 is a zombie. */
static const char captured[] =
	"mkdir -p 7/task/7 7/task/8 7/task/9 7/task/10 11/task/11 12/task/12 self net && "
	"printf 'State:\\tS (sleeping)\\nCpus_allowed_list:\\t0-1\\n' >7/task/7/status && "
	"printf 'State:\\tR (running)\\nCpus_allowed_list:\\t3\\n' >7/task/8/status && "
	"printf 'State:\\tZ (zombie)\\nCpus_allowed_list:\\t0-7\\n' >7/task/9/status && "
	"printf 'Cpus_allowed_list:\\t0-1\\n' >7/task/10/status && "
	"printf 'State:\\tX (dead)\\nCpus_allowed_list:\\t0-7\\n' >12/task/12/status";

TEST(threads_with_the_same_cpus_are_one_affinity)
{
	const struct captured machine = captured_make(captured);
	CLEANUP(arena_done) struct arena a;
	const int fd = machine.fd;
	struct proc_affinity *affinities;
	struct err err = { 0 };
	pid_t *pids;
	size_t n;

	arena_init(&a, 0);
	CHECK_OK(proc_list(fd, &a, &pids, &n, &err));
	CHECK_UINT(n, 3);
	CHECK(proc_affinities(fd, 7, &a, &affinities, &n));
	CHECK_UINT(n, 2);
	CHECK_STR(cpuset_format(&affinities[0].allowed, &a), "0-1");
	CHECK_UINT(affinities[0].n_threads, 2);
	CHECK_STR(cpuset_format(&affinities[1].allowed, &a), "3");
	CHECK_INT(affinities[1].tid, 8);
	for (pid_t pid = 11; pid <= 13; pid++) /* no threads, ended, gone */
		CHECK(!proc_affinities(fd, pid, &a, &affinities, &n));
	captured_remove(&machine);
}

TEST(affinity_of_this_process_matches_the_kernel)
{
	AUTO_CLOSE int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	struct proc_affinity *affinities;
	struct proc_stat stat;
	struct cpuset cpus;
	size_t n;

	arena_init(&a, 0);
	CHECK(proc_stat(fd, getpid(), &a, &stat));
	CHECK_INT(stat.parent, getppid());
	CHECK(!stat.is_zombie && !stat.is_kernel);
	CHECK(proc_allowed(fd, getpid(), &cpus));
	CHECK(proc_affinities(fd, getpid(), &a, &affinities, &n));
	CHECK(cpuset_eq(&affinities[0].allowed, &cpus));
	CHECK(cpuset_has(&cpus, (unsigned)sched_getcpu()));
}
