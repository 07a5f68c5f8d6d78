/* Snapshots compared with CPU settings, by tables and in a captured machine. */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "captured.h"
#include "cgroup/audit.h"
#include "cgroup/foreign.h"
#include "cpus.h"
#include "test.h"

/* "what: want, got" of every finding and "pid: cpus of owner" of every foreign process, one after
 * another.
 */
static struct str findings_text(const struct audit *t, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		strbuf_printf(&b, "%s" PRI_STR " %s: " PRI_STR ", " PRI_STR, b.n ? "; " : "",
			      FMT_STR(f->name.container), f->check, FMT_STR(f->expected),
			      FMT_STR(f->actual));
	}
	for (size_t i = 0; i < t->n_foreign; i++)
		strbuf_printf(&b, "%s%d: " PRI_STR " of " PRI_STR "/" PRI_STR "/" PRI_STR,
			      b.n ? "; " : "", t->foreign_processes[i].pid,
			      FMT_STR(cpuset_format(&t->foreign_processes[i].cpus, a)),
			      FMT_STR(t->foreign_processes[i].owner.namespace),
			      FMT_STR(t->foreign_processes[i].owner.pod),
			      FMT_STR(t->foreign_processes[i].owner.container));
	return strbuf_str(&b);
}

TEST(every_difference_of_a_container_is_a_finding)
{
	static const struct {
		const char *what;
		enum cgroup_version version;
		const char *cpus, *effective;
		uint64_t weight;
		int64_t quota_us;
		const char *threads[3]; /* where they may run; 11 and up, of process 10 */
		const char *text;
	} rows[] = {
		{ "as it should be", CGROUP_V2, "2-3", "2-3", 100, 50000, { "2-3", "2" }, "" },
		{ "in another cpuset",
		  CGROUP_V2,
		  "0-7",
		  "0-7",
		  100,
		  50000,
		  { "2" },
		  "c cpus: 2-3, 0-7" },
		{ "inherited", CGROUP_V2, "", "0-3", 100, 50000, { "2" }, "c cpus: 2-3, 0-3" },
		{ "less in effect",
		  CGROUP_V2,
		  "2-3",
		  "3",
		  100,
		  50000,
		  { "3" },
		  "c cpus: 2-3, 3 in effect" },
		{ "something else in effect",
		  CGROUP_V2,
		  "2-3",
		  "0-1",
		  100,
		  50000,
		  { "2" },
		  "c cpus: 2-3, 0-1 in effect" },
		{ "the weight of v1", CGROUP_V1, "2-3", "2-3", 1024, 50000, { "2" }, "" },
		{ "another weight",
		  CGROUP_V2,
		  "2-3",
		  "2-3",
		  1,
		  50000,
		  { "2" },
		  "c weight: 100, 1" },
		{ "no quota",
		  CGROUP_V2,
		  "2-3",
		  "2-3",
		  100,
		  -1,
		  { "2" },
		  "c quota: 50000/100000, none" },
		{ "a thread elsewhere",
		  CGROUP_V2,
		  "2-3",
		  "2-3",
		  100,
		  50000,
		  { "2", "0-3" },
		  "c thread: 2-3, 0-3 (thread 12 of process 10)" },
		{ "two of them",
		  CGROUP_V2,
		  "2-3",
		  "2-3",
		  100,
		  50000,
		  { "4", "3", "0-3" },
		  "c thread: 2-3, 4 (thread 11 of process 10, and 1 more)" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct audit_container c = { .name = { STR("n"), STR("p"), STR("c") },
					     .settings = { .cpus = cpus("2-3"),
							   .shares = 1024,
							   .has_quota = true,
							   .quota_us = 50000 } };
		struct proc_affinity affinities[3];
		struct process process = { .pid = 10, .affinities = affinities };
		struct cgroup_snapshot s = { .is_there = true,
					     .has_cgroup = true,
					     .cgroup = { .cpus = cpus(rows[i].cpus),
							 .effective = cpus(rows[i].effective),
							 .weight = rows[i].weight,
							 .quota_us = rows[i].quota_us,
							 .period_us = 100000 },
					     .processes = { &process, 1, 1 } };
		struct audit t;

		TEST_ROW("%s", rows[i].what);
		for (pid_t k = 0; k < 3 && rows[i].threads[k]; k++)
			affinities[process.n_affinities++] =
				(struct proc_affinity){ cpus(rows[i].threads[k]), 11 + k, 1 };
		audit_init(&t, &a);
		audit_run(&t, &(struct audit_input){ rows[i].version, &c, &s, 1, NULL });
		CHECK_UINT(t.n_containers, 1);
		CHECK_STR(findings_text(&t, &a), rows[i].text);
	}
}

TEST(missing_container_has_no_findings)
{
	CLEANUP(arena_done) struct arena a;
	const struct audit_container c = { .settings = { .cpus = cpus("1"), .shares = 1024 },
					   .is_exclusive = true };
	const struct cgroup_snapshot gone = { 0 };
	struct proc_affinity place = { cpus("0-3"), 5, 1 };
	struct process process = { .pid = 5, .affinities = &place, .n_affinities = 1 };
	const struct processes machine = { &process, 1, 1 };
	struct audit t;

	arena_init(&a, 0);
	audit_init(&t, &a);
	audit_run(&t, &(struct audit_input){ CGROUP_V2, &c, &gone, 1, &machine });
	CHECK_UINT(t.n_containers + t.n_findings + t.n_foreign, 0);
}

TEST(other_users_of_exclusive_cpus_are_found)
{
	static const struct {
		const char *what;
		const char *allowed; /* where the owner's thread may run */
		const char *pod;     /* of the other container */
		const char *other;   /* where its thread may run */
		bool is_exclusive, hands_on;
		const char *foreign; /* CPUs of process 99, which is in no container */
		const char *text;
	} rows[] = {
		{ "each on its own", "2", "q", "1", false, false, "0-1", "" },
		{ "the other may run there", "2", "q", "1-2", false, false, "0",
		  "c shared-exclusive: 2-3 alone, n/q/d may run on 2" },
		{ "also of the same pod", "2", "p", "2", false, false, "0",
		  "c shared-exclusive: 2-3 alone, n/p/d may run on 2" },
		{ "an init container of the same pod", "2", "p", "2-3", false, true, "0", "" },
		{ "an init container of another pod", "2", "q", "3", false, true, "0",
		  "c shared-exclusive: 2-3 alone, n/q/d may run on 3" },
		{ "both say it is theirs", "2", "q", "2", true, false, "0",
		  "c shared-exclusive: 2-3 alone, n/q/d may run on 2; "
		  "d shared-exclusive: 1-2 alone, n/p/c may run on 2" },
		{ "a foreign process", "2", "q", "1", false, false, "3-7", "99: 3 of n/p/c" },
		{ "a foreign process on the CPUs of both", "3", "q", "1", true, false, "0-7",
		  "99: 1-3 of n/p/c" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* The other's own wish is no matter, unless it is exclusive: where it may run is.
		 */
		const struct audit_container c[] = {
			{ .name = { STR("n"), STR("p"), STR("c") },
			  .settings.cpus = cpus("2-3"),
			  .is_exclusive = true },
			{ .name = { STR("n"), str_from(rows[i].pod), STR("d") },
			  .settings.cpus = rows[i].is_exclusive ? cpus("1-2") : cpus(""),
			  .is_exclusive = rows[i].is_exclusive,
			  .hands_on = rows[i].hands_on },
		};
		struct proc_affinity affinities[] = {
			{ cpus(rows[i].allowed), 50, 1 },
			{ cpus(rows[i].other), 60, 1 },
			{ cpus(rows[i].foreign), 99, 1 },
		};
		struct process all[] = {
			{ .pid = 50, .affinities = &affinities[0], .n_affinities = 1 },
			{ .pid = 60, .affinities = &affinities[1], .n_affinities = 1 },
			{ .pid = 99, .affinities = &affinities[2], .n_affinities = 1 }
		};
		const struct cgroup_snapshot s[] = {
			{ .is_there = true, .processes = { &all[0], 1, 1 } },
			{ .is_there = true, .processes = { &all[1], 1, 1 } },
		};
		const struct processes machine = { all, 3, 3 };
		struct audit t;

		TEST_ROW("%s", rows[i].what);
		audit_init(&t, &a);
		audit_run(&t, &(struct audit_input){ CGROUP_V2, c, s, 2, &machine });
		CHECK_STR(findings_text(&t, &a), rows[i].text);
	}
}

/* A container with a cgroup of its own making below; processes 7, 8 and 9, of which 9 has ended, a
 * service 20, a zombie 21 and a thread of the kernel 2. */
static const char captured[] =
	"mkdir -p cgroup/pod/c/inner proc && cd cgroup && echo 'cpu cpuset' >cgroup.controllers && "
	"for d in . pod pod/c pod/c/inner; do (cd $d && echo 2-3 >cpuset.cpus && "
	"echo 2-3 >cpuset.cpus.effective && echo >cpuset.mems && "
	"echo 0 >cpuset.mems.effective && echo 100 >cpu.weight && echo max 100000 >cpu.max && "
	"touch cgroup.procs); done && echo 7 >pod/c/cgroup.procs && "
	"printf '8\\n9\\n' >pod/c/inner/cgroup.procs && cd ../proc && for p in 2 7 8 20 21; do "
	"mkdir -p $p/task/$p && echo \"$p (x) S 1 1 1 0 -1 4194304 0\" >$p/stat && "
	"printf 'State:\\tS\\nCpus_allowed_list:\\t2\\n' >$p/task/$p/status; done && "
	"echo '2 (k) S 0 0 0 0 -1 2129984 0' >2/stat && echo '21 (x) Z 1 1 1 0 -1 4 0' >21/stat";

TEST(snapshot_separates_container_and_foreign_processes)
{
	const struct captured files = captured_make(captured);
	AUTO_CLOSE int proc = openat(files.fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	struct processes machine = { 0 };
	struct err err = { 0 };
	struct cgroup_fs fs;
	struct cgroup_snapshot s;
	char path[64];

	arena_init(&a, 0);
	(void)snprintf(path, sizeof(path), "%s/cgroup", files.dir);
	CHECK_OK(cgroup_open(&fs, path, &err));
	CHECK_OK(cgroup_snapshot_read_machine(proc, &a, &machine, &err));
	CHECK_UINT(machine.n, 4); /* 20, 21, 7, 8 */
	cgroup_snapshot_drop_ended(proc, &machine);
	CHECK_UINT(machine.n, 3);
	CHECK_STR(machine.items[0].name, "x");
	CHECK_OK(cgroup_snapshot_read_cgroup(&fs, proc, "pod/c", &a, &s, &err));
	CHECK(s.is_there && s.has_cgroup);
	CHECK_UINT(s.cgroup.weight, 100);
	CHECK_UINT(s.processes.n, 2); /* 7, and 8 below */
	CHECK_UINT(cgroup_snapshot_threads(&s), 2);
	CHECK_OK(cgroup_snapshot_read_cgroup(&fs, proc, "pod/gone", &a, &s, &err));
	CHECK(!s.is_there && !s.has_cgroup);
	cgroup_snapshot_read_processes(proc, (const pid_t[]){ 8, 9 }, 2, &a, &s);
	CHECK(s.is_there && !s.has_cgroup);
	CHECK_UINT(s.processes.n, 1);
	cgroup_snapshot_read_processes(proc, (const pid_t[]){ 9 }, 1, &a, &s);
	CHECK(!s.is_there);

	cgroup_done(&fs);
	captured_remove(&files);
}

/* Cgroup v1 has no AllowedCPUs=, and without pools there is no list to recommend. */
TEST(remedy_of_foreign_processes_depends_on_the_host)
{
	static const struct {
		struct foreign_host host;
		const char *remedy;
	} rows[] = {
		{ { STR_INIT("0-1"), CGROUP_V2 },
		  "systemctl set-property system.slice AllowedCPUs=0-1" },
		{ { STR_INIT(""), CGROUP_V2 },
		  "systemctl set-property system.slice AllowedCPUs=LIST" },
		{ { STR_INIT("0-1"), CGROUP_V1 },
		  "set CPUAffinity=0-1 in /etc/systemd/system.conf and restart the services of "
		  "system.slice" },
	};
	struct foreign_process processes[] = {
		{ 1,
		  STR_INIT("cron"),
		  STR_INIT("/system.slice/cron.service"),
		  cpus("4"),
		  { STR(""), STR(""), STR("") } },
		{ 2,
		  STR_INIT("sshd"),
		  STR_INIT("/system.slice/ssh.service"),
		  cpus("5"),
		  { STR(""), STR(""), STR("") } },
	};
	const struct audit t = { .foreign_processes = processes, .n_foreign = 2 };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct foreign_group *groups;
		size_t n;

		foreign_groups(&t, &rows[i].host, &a, &groups, &n);
		CHECK_UINT(n, 1);
		CHECK_UINT(groups[0].n, 2);
		CHECK_STR(groups[0].names, "cron, sshd");
		CHECK_STR(groups[0].remedy, rows[i].remedy);
		CHECK_STR(cpuset_format(&groups[0].cpus, &a), "4-5");
	}
}

TEST(snapshot_excludes_the_calling_process)
{
	AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(arena_done) struct arena a;
	struct processes machine = { 0 };
	struct err err = { 0 };
	bool has_parent = false;

	arena_init(&a, 0);
	CHECK_OK(cgroup_snapshot_read_machine(proc, &a, &machine, &err));
	for (size_t i = 0; i < machine.n; i++) {
		CHECK(machine.items[i].pid != getpid());
		has_parent |= machine.items[i].pid == getppid();
	}
	CHECK(has_parent || getppid() == 0);
}
