/* Decisions of the live host configuration, the record of originals, and both on a host of plain
 * files with a systemd that is a child process. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/macro.h"
#include "captured.h"
#include "cgroup/cgroup.h"
#include "fake_systemd.h"
#include "host/host_dirs.h"
#include "host/host_live.h"
#include "test.h"

static struct cpuset set(const char *list)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK_OK(cpuset_parse(str_from(list), &s, &err));
	return s;
}

static void check_set(struct test_at at, const struct cpuset *s, const char *want)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	test_check_str(at, cpuset_format(s, &a), str_from(want));
}
#define CHECK_SET(s, want) check_set(TEST_AT(#s), (s), (want))

/* --- decisions --- */

TEST(services_get_the_management_pool_and_interrupts_all_but_the_guaranteed_one)
{
	static const struct {
		const char *management, *guaranteed, *online, *services, *housekeeping;
	} rows[] = {
		{ "0-1", "4-7", "0-7", "0-1", "0-3" }, { "0-1", "", "0-7", "0-1", "0-7" },
		{ "0-1", "2-7", "0-7", "0-1", "0-1" }, /* classic mode */
		{ "0,8", "4-7", "0-7", "0", "0-3" },   /* CPU 8 is offline */
		{ "2-3", "2-7", "2-7", "2-3", "2-3" }, /* no management CPU is online: others serve
							*/
		{ "8", "4-7", "0-7", NULL, NULL },     { "", "4-7", "0-7", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct cpuset management = set(rows[i].management),
				    guaranteed = set(rows[i].guaranteed),
				    online = set(rows[i].online);
		struct host_cpus c;

		TEST_ROW("row %zu", i);
		CHECK(host_cpus_decide(&(struct host_pools){ &management, &guaranteed, &online },
				       &c) == (rows[i].services != NULL));
		if (!rows[i].services)
			continue;
		CHECK_SET(&c.services, rows[i].services);
		CHECK_SET(&c.housekeeping, rows[i].housekeeping);
	}
}

TEST(a_mask_is_written_when_it_leaves_what_is_allowed_or_that_changes)
{
	static const struct {
		const char *now, *original, *allowed;
		bool is_changed;
		const char *want; /* NULL: not written */
	} rows[] = {
		{ "0-7", "0-7", "0-3", true, "0-3" },
		{ "0-7", "0-7", "0-3", false, "0-3" },
		{ "2", "2", "0-3", true, NULL },
		{ "6", "6", "0-3", true, "0-3" },     /* nothing of it is left */
		{ "2,6", "2,6", "0-3", false, "2" },  /* its spread is kept */
		{ "1", "0-7", "0-3", false, NULL },   /* chosen by another process since */
		{ "0-1", "0-7", "0-3", true, "0-3" }, /* the pools were resized */
		{ "0-3", "0-7", "0-3", true, NULL },
		{ "5", NULL, "0-3", false, "0-3" },
		{ "1", NULL, "0-3", true, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct cpuset now = set(rows[i].now), allowed = set(rows[i].allowed);
		const struct cpuset original = set(rows[i].original ? rows[i].original : "");
		struct cpuset want;

		TEST_ROW("row %zu", i);
		CHECK(host_mask_decide(&(struct host_mask){ &now,
							    rows[i].original ? &original : NULL,
							    &allowed, rows[i].is_changed },
				       &want) == (rows[i].want != NULL));
		if (rows[i].want)
			CHECK_SET(&want, rows[i].want);
	}
}

TEST(units_of_host_processes_are_slices_and_init_without_pods)
{
	static const struct {
		const char *name;
		bool has_pods, is_service;
	} rows[] = {
		{ "system.slice", false, true },
		{ "user.slice", false, true },
		{ "init.scope", false, true },
		{ "podruntime.slice", false, true },
		{ "kubepods.slice", false, false },
		{ "kubepods", false, false },
		{ "machine.slice", false, false },
		{ "kubelet.slice", true, false },
		{ "dev-hugepages.mount", false, false },
		{ "other.scope", false, false },
		{ "docker", false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].name);
		CHECK(host_unit_is_service(str_from(rows[i].name), rows[i].has_pods) ==
		      rows[i].is_service);
	}
}

TEST(processes_of_pods_containers_and_machines_are_not_of_the_host)
{
	static const struct {
		const char *cgroups;
		bool is_service;
	} rows[] = {
		{ "0::/system.slice/cron.service\n", true },
		{ "0::/init.scope\n", true },
		{ "0::/\n", true },
		{ "", true },
		{ "5:cpuset:/\n1:name=systemd:/system.slice/containerd.service\n", true },
		{ "1:name=systemd:/system.slice/docker.service\n", true },
		{ "0::/kubepods.slice/kubepods-podx.slice/cri-containerd-1.scope\n", false },
		{ "5:cpuset:/kubepods/besteffort/podx/1\n1:name=systemd:/\n", false },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/x\n", false },
		{ "0::/machine.slice/libpod-1.scope\n", false },
		{ "0::/system.slice/docker-1.scope\n", false },
		{ "0::/libpod_parent/libpod-1\n", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].cgroups);
		CHECK(host_process_is_service(str_from(rows[i].cgroups)) == rows[i].is_service);
	}
}

/* --- record --- */

static void fill(struct originals *o)
{
	const struct host_cpus cpus = { set("0-1"), set("0-3") };

	originals_init(o, STR("boot"));
	originals_apply(o, &cpus);
	originals_add_unit(o, STR("system.slice"), STR(""), false);
	originals_add_unit(o, STR("user.slice"), STR("0-5"), true);
	originals_add_irq(o, 30, STR("0-7"));
	originals_add_irq(o, 4, STR("2"));
	originals_add_irq(o, 30, STR("5")); /* the first is the original */
	originals_set(o, &o->irq_default, STR("ff"));
	originals_set(o, &o->services, STR("0-7"));
	originals_add_thread(o, &(struct thread_original){ 77, 1234, STR("3") });
}

TEST(a_record_reads_back_as_it_was_written)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(originals_done) struct originals o, back;
	struct err err = { 0 };
	struct str text, again;

	arena_init(&a, 0);
	fill(&o);
	CHECK_OK(originals_encode(&o, &a, &text, &err));
	CHECK_OK(originals_decode(text, STR("boot"), &back, &err));
	CHECK_OK(originals_encode(&back, &a, &again, &err));
	CHECK_STR(again, str_cstr(&a, text));
	CHECK(!back.is_changed && back.has_applied && !back.is_complete);
	CHECK_STR(originals_irq(&back, 30)->cpus, "0-7");
	CHECK_STR(originals_irq(&back, 4)->cpus, "2");
	CHECK(!originals_irq(&back, 5));
	CHECK(originals_unit(&back, STR("user.slice"))->has_drop_in);
	CHECK_STR(originals_thread(&back, 77, 1234)->cpus, "3");
	CHECK(!originals_thread(&back, 77, 1235)); /* the number was used again */
}

TEST(a_record_of_another_boot_is_empty)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(originals_done) struct originals o, back;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	fill(&o);
	CHECK_OK(originals_encode(&o, &a, &text, &err));
	CHECK_OK(originals_decode(text, STR("later boot"), &back, &err));
	CHECK(!back.has_applied && back.n_units == 0 && back.n_irqs == 0 && back.n_threads == 0);
}

TEST(a_malformed_record_is_refused)
{
#define REST "\"bootId\":\"boot\",\"services\":\"\","
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{ "{", NULL },
		{ "[]", "host-originals.json:1:1: not a record of version 1" },
		{ "{\"version\":2}", NULL },
		{ "{" REST "\"version\":1,\"units\":[{\"name\":\"../x\",\"cpus\":\"\"}]}", NULL },
		{ "{" REST "\"version\":1,\"units\":[{\"name\":\"a.slice\",\"cpus\":\"x\"}]}",
		  NULL },
		{ "{" REST "\"version\":1,\"interrupts\":[{\"irq\":-1,\"cpus\":\"1\"}]}", NULL },
		{ "{" REST "\"version\":1,\"interrupts\":[{\"irq\":1}]}", NULL },
		{ "{" REST "\"version\":1,\"workqueue\":\"0-3\"}", NULL },
		{ "{" REST "\"version\":1,\"threads\":[{\"tid\":0,\"start\":1,\"cpus\":\"1\"}]}",
		  NULL },
		{ "{" REST "\"version\":1,\"applied\":{\"services\":\"0\"}}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(originals_done) struct originals o;
		struct err err = { 0 };

		TEST_ROW("%s", rows[i].text);
		CHECK(originals_decode(str_from(rows[i].text), STR("boot"), &o, &err) < 0);
		CHECK(err.code > 0 && *err.msg);
		if (rows[i].sentence)
			CHECK_STR(str_from(err.msg), rows[i].sentence);
	}
}

/* --- a host --- */

/* Eight CPUs, four interrupts, and systemd as process 1. */
#define HOST_TREE                                                                                  \
	"mkdir -p sys/devices/system/cpu proc/irq/0 proc/irq/24 proc/irq/25 proc/irq/26 proc/1 "   \
	"sys/devices/virtual/workqueue run/systemd/system.control run/dbus state "                 \
	"cgroup/system.slice cgroup/user.slice cgroup/init.scope "                                 \
	"cgroup/kubepods.slice cgroup/apart.slice/apart-kubepods.slice "                           \
	"&& echo 0-7 >sys/devices/system/cpu/possible && echo ff >proc/irq/default_smp_affinity "  \
	"&& echo ff "                                                                              \
	">sys/devices/virtual/workqueue/cpumask "                                                  \
	"&& echo 0-7 >proc/irq/0/smp_affinity_list && echo 6 >proc/irq/24/smp_affinity_list "      \
	"&& echo 2,6 >proc/irq/25/smp_affinity_list && echo 1 >proc/irq/26/smp_affinity_list "     \
	"&& echo '1 (systemd) S 0 1 1 0 -1 4194560 0 0' >proc/1/stat "                             \
	"&& echo 'cpuset cpu' >cgroup/cgroup.controllers && echo 0-5 "                             \
	">cgroup/user.slice/cpuset.cpus "                                                          \
	"&& for c in system user apart kubepods; do touch cgroup/$c.slice/cgroup.procs; done "     \
	"&& touch cgroup/system.slice/cpuset.cpus cgroup/init.scope/cpuset.cpus "                  \
	"cgroup/init.scope/cgroup.procs cgroup/apart.slice/cpuset.cpus"

struct test_host {
	struct captured tree;
	char state[64], proc[64], cgroup[64];
	struct cgroup_fs fs;
	struct fake_systemd systemd;
	struct loop loop;
	struct host host;
	struct timer timer;
	unsigned n_ticks;
};

static const char *in(const struct test_host *t, const char *path, char ret[static 64])
{
	(void)snprintf(ret, 64, "%s/%s", t->tree.dir, path);
	return ret;
}

static struct host_settings settings_of(struct test_host *t)
{
	return (struct host_settings){ .root = t->tree.dir,
				       .state_dir = t->state,
				       .proc = t->proc,
				       .cgroups = &t->fs,
				       .boot_id = STR("boot") };
}

static void host_setup(struct test_host *t, const char *socket_path)
{
	struct err err = { 0 };

	*t = (struct test_host){ .tree = captured_make(HOST_TREE) };
	(void)in(t, "state", t->state);
	(void)in(t, "proc", t->proc);
	CHECK_OK(cgroup_open(&t->fs, in(t, "cgroup", t->cgroup), &err));
	if (socket_path)
		t->systemd = fake_systemd_start(t->tree.dir, socket_path);
}

static void host_teardown(struct test_host *t)
{
	if (t->systemd.pid)
		fake_systemd_stop(&t->systemd);
	cgroup_done(&t->fs);
	captured_remove(&t->tree);
}

static void on_timer(struct timer *timer)
{
	struct test_host *t = container_of(timer, struct test_host, timer);
	const struct cpuset management = set("0-1"), guaranteed = set("4-7"), online = set("0-7");

	host_tick(&t->host, &(struct host_pools){ &management, &guaranteed, &online });
	if (t->n_ticks-- == 0)
		loop_stop(&t->loop);
}

/* An agent from its start to its end, with this many ticks. */
static void run_agent(struct test_host *t, unsigned n_ticks)
{
	const struct host_settings settings = settings_of(t);
	struct err err = { 0 };

	CHECK_OK(loop_init(&t->loop, &err));
	CHECK_OK(host_open(&t->host, &settings, &err));
	host_start(&t->host, &t->loop);
	timer_init(&t->timer, &t->loop, on_timer);
	t->n_ticks = n_ticks;
	timer_start(&t->timer, 1, 20);
	loop_run(&t->loop);
}

static void end_agent(struct test_host *t)
{
	host_done(&t->host);
	loop_done(&t->loop);
}

static void check_file(struct test_at at, const struct test_host *t, const char *path,
		       const char *want)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(t->tree.fd, path, 4096, &a, &text, &err));
	test_check_str(at, str_trim(text), str_from(want));
}
#define CHECK_FILE(path, want) check_file(TEST_AT(path), &t, (path), (want))

static bool exists(const struct test_host *t, const char *path)
{
	return faccessat(t->tree.fd, path, F_OK, 0) == 0;
}

static void write_file(const struct test_host *t, const char *path, const char *text)
{
	struct err err = { 0 };

	CHECK_OK(file_replace_at(t->tree.fd, path, str_from(text), 0644, &err));
}

static void check_applied(const struct test_host *at)
{
	const struct test_host t = *at;

	CHECK_FILE("cgroup/system.slice/cpuset.cpus", "0-1");
	CHECK_FILE("cgroup/user.slice/cpuset.cpus", "0-1");
	CHECK_FILE("cgroup/init.scope/cpuset.cpus", "0-1");
	CHECK_FILE("cgroup/apart.slice/cpuset.cpus", ""); /* it has pods */
	CHECK_FILE("proc/irq/0/smp_affinity_list", "0-3");
	CHECK_FILE("proc/irq/24/smp_affinity_list", "0-3");
	CHECK_FILE("proc/irq/25/smp_affinity_list", "2");
	CHECK_FILE("proc/irq/26/smp_affinity_list", "1");
	CHECK_FILE("proc/irq/default_smp_affinity", "0000000f");
	CHECK_FILE("sys/devices/virtual/workqueue/cpumask", "0000000f");
}

/* `all` is what a unit without a list of its own has: "", or after it was restricted all CPUs. */
static void check_original(const struct test_host *at, const char *all)
{
	const struct test_host t = *at;

	CHECK_FILE("cgroup/system.slice/cpuset.cpus", all);
	CHECK_FILE("cgroup/user.slice/cpuset.cpus", "0-5");
	CHECK_FILE("cgroup/init.scope/cpuset.cpus", all);
	CHECK_FILE("proc/irq/0/smp_affinity_list", "0-7");
	CHECK_FILE("proc/irq/24/smp_affinity_list", "6");
	CHECK_FILE("proc/irq/25/smp_affinity_list", "2,6");
	CHECK_FILE("proc/irq/26/smp_affinity_list", "1");
	CHECK_FILE("proc/irq/default_smp_affinity", "ff");
	CHECK_FILE("sys/devices/virtual/workqueue/cpumask", "ff");
}

TEST(everything_is_applied_and_restored)
{
	static const char *const sockets[] = { "/run/systemd/private",
					       "/run/dbus/system_bus_socket" };

	for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
		struct err err = { 0 };
		struct host_settings settings;
		struct test_host t;

		TEST_ROW("%s", sockets[i]);
		host_setup(&t, sockets[i]);
		settings = settings_of(&t);
		run_agent(&t, 15);
		CHECK(host_is_configured(&t.host));
		check_applied(&t);
		end_agent(&t);
		CHECK(exists(&t, "run/systemd/system.control/system.slice.d"));
		CHECK_INT(host_restore(&settings, &err), 1);
		check_original(&t, "0-7");
		CHECK(!exists(&t, "run/systemd/system.control/system.slice.d"));
		CHECK(!exists(&t, "state/" ORIGINALS_FILE));
		CHECK_INT(host_restore(&settings, &err), 0); /* nothing is left to do */
		host_teardown(&t);
	}
}

TEST(a_file_of_systemd_that_cannot_be_removed_is_an_error)
{
	struct captured tree =
		captured_make("mkdir -p run/systemd/system.control/a.slice.d/50-AllowedCPUs.conf");
	struct err err = { 0 };

	CHECK_INT(host_remove_drop_in(tree.dir, "b.slice", &err), 0);
	/* As on a file system that is read-only. */
	CHECK_INT(host_remove_drop_in(tree.dir, "a.slice", &err), -EISDIR);
	CHECK(str_has(str_from(err.msg), STR("a.slice.d/50-AllowedCPUs.conf: Is a directory")));
	captured_remove(&tree);
}

TEST(interrupts_that_come_later_are_moved_and_get_the_original_default_back)
{
	struct host_settings settings;
	struct err err = { 0 };
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	settings = settings_of(&t);
	run_agent(&t, 2);
	end_agent(&t);
	CHECK(mkdirat(t.tree.fd, "proc/irq/40", 0755) == 0);
	CHECK(mkdirat(t.tree.fd, "proc/irq/41", 0755) == 0);
	write_file(&t, "proc/irq/40/smp_affinity_list", "5\n");	  /* chosen by its driver */
	write_file(&t, "proc/irq/41/smp_affinity_list", "0-3\n"); /* the default of now */
	run_agent(&t, 2);
	CHECK_FILE("proc/irq/40/smp_affinity_list", "0-3");
	end_agent(&t);
	CHECK_INT(host_restore(&settings, &err), 1);
	CHECK_FILE("proc/irq/40/smp_affinity_list", "5");
	CHECK_FILE("proc/irq/41/smp_affinity_list", "0-7");
	check_original(&t, "0-7");
	host_teardown(&t);
}

/* A file of sysfs that contains a CPU number and cannot be written. */
TEST(an_interrupt_that_the_kernel_refuses_to_move_is_counted)
{
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	CHECK(mkdirat(t.tree.fd, "proc/irq/50", 0755) == 0);
	CHECK(symlinkat("/sys/devices/system/cpu/kernel_max", t.tree.fd,
			"proc/irq/50/smp_affinity_list") == 0);
	run_agent(&t, 15);
	CHECK(host_is_configured(&t.host));
	CHECK_UINT(t.host.interrupts.n_refused, 1);
	CHECK_UINT(t.host.interrupts.n, 5);
	check_applied(&t);
	end_agent(&t);
	host_teardown(&t);
}

TEST(a_crash_between_record_and_change_loses_nothing)
{
	struct host_settings settings;
	struct err err = { 0 };
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	settings = settings_of(&t);
	run_agent(&t, 15);
	end_agent(&t);
	/* As after a crash: some is not written yet, and the record says so. */
	write_file(&t, "proc/irq/0/smp_affinity_list", "1\n");
	write_file(&t, "cgroup/system.slice/cpuset.cpus", "\n");
	run_agent(&t, 15);
	CHECK_FILE("cgroup/system.slice/cpuset.cpus", "0-1");
	CHECK_FILE("proc/irq/0/smp_affinity_list",
		   "1"); /* allowed, so another process may have chosen it */
	end_agent(&t);
	CHECK_INT(host_restore(&settings, &err), 1);
	check_original(&t, "0-7");
	host_teardown(&t);
}

TEST(without_systemds_socket_the_rest_is_applied_and_the_problem_reported)
{
	struct test_host t;

	host_setup(&t, NULL);
	run_agent(&t, 3);
	CHECK(!host_is_configured(&t.host));
	CHECK_STR(str_from(host_problem(&t.host)->msg),
		  "neither /run/systemd/private nor the system bus can be reached: No such file or "
		  "directory");
	CHECK_FILE("cgroup/system.slice/cpuset.cpus", "");
	CHECK_FILE("proc/irq/0/smp_affinity_list", "0-3");
	end_agent(&t);
	host_teardown(&t);
}

TEST(a_unit_that_systemd_refuses_is_a_problem)
{
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	CHECK(mkdirat(t.fs.cpuset_fd, "refused.slice", 0755) == 0);
	write_file(&t, "cgroup/refused.slice/cgroup.procs", "");
	run_agent(&t, 15);
	CHECK_STR(str_from(host_problem(&t.host)->msg), "systemd: refused.slice: no unit");
	CHECK_FILE("cgroup/system.slice/cpuset.cpus", "0-1");
	end_agent(&t);
	host_teardown(&t);
}

TEST(nothing_is_changed_when_the_record_cannot_be_written)
{
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	/* Where the new record is written first. */
	CHECK(mkdirat(t.tree.fd, "state/" ORIGINALS_FILE ".pinfold-new", 0755) == 0);
	run_agent(&t, 3);
	CHECK(host_problem(&t.host) != NULL);
	check_original(&t, "");
	end_agent(&t);
	host_teardown(&t);
}

TEST(an_unreadable_record_is_neither_overwritten_nor_restored)
{
	struct host_settings settings;
	struct err err = { 0 };
	struct test_host t;
	struct host h;

	host_setup(&t, NULL);
	settings = settings_of(&t);
	write_file(&t, "state/" ORIGINALS_FILE, "{");
	CHECK(host_open(&h, &settings, &err) < 0);
	CHECK(host_problem(&h) != NULL && !host_is_configured(&h));
	CHECK(host_restore(&settings, &err) < 0);
	CHECK_FILE("state/" ORIGINALS_FILE, "{");
	check_original(&t, "");
	host_teardown(&t);
}

TEST(interrupts_are_kept_when_asked_and_restored_when_they_were_moved)
{
	struct test_host t;

	host_setup(&t, "/run/systemd/private");
	run_agent(&t, 2);
	CHECK_FILE("proc/irq/0/smp_affinity_list", "0-3");
	host_keep_interrupts(&t.host, true);
	t.n_ticks = 3;
	loop_run(&t.loop);
	CHECK_FILE("proc/irq/0/smp_affinity_list", "0-7");
	CHECK_FILE("proc/irq/24/smp_affinity_list", "6");
	CHECK_FILE("proc/irq/default_smp_affinity", "ff");
	CHECK_FILE("sys/devices/virtual/workqueue/cpumask", "0000000f");
	end_agent(&t);
	host_teardown(&t);
}

/* --- processes --- */

/* A child with the affinity of this process. */
static pid_t start_child(void)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void check_affinity(struct test_at at, pid_t pid, const struct cpuset *want)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset got = { 0 };
	void *mask = got.w;

	arena_init(&a, 0);
	CHECK(sched_getaffinity(pid, sizeof(got.w), mask) >= 0);
	test_check_str(at, cpuset_format(&got, &a), cpuset_format(want, &a));
}

TEST(affinities_of_real_processes_are_narrowed_and_restored)
{
	CLEANUP(originals_done) struct originals o;
	struct captured tree = captured_make("mkdir proc");
	struct processes_result result = { 0 };
	struct cpuset all = { 0 }, one = { 0 };
	const pid_t pid = start_child();
	struct host_cpus cpus;
	struct err err = { 0 };
	char link[256];
	void *mask = all.w;
	int proc;

	CHECK(sched_getaffinity(0, sizeof(all.w), mask) >= 0);
	if (cpuset_count(&all) < 2)
		TEST_SKIP("one CPU");
	cpuset_add(&one, cpuset_last(&all));
	/* A /proc with two processes: this child, and as process 1 the child again. */
	(void)snprintf(link, sizeof(link), "ln -s /proc/%d %s/proc/%d && ln -s /proc/%d %s/proc/1",
		       (int)pid, tree.dir, (int)pid, (int)pid, tree.dir);
	CHECK(system(link) == 0);
	proc = openat(tree.fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cpus = (struct host_cpus){ one, one };
	originals_init(&o, STR("boot"));
	CHECK(processes_apply(proc, &o, true, &result, &err) < 0); /* not recorded */
	CHECK_OK(processes_record(proc, &o, &err));
	originals_apply(&o, &cpus);
	CHECK_OK(processes_apply(proc, &o, true, &result, &err));
	check_affinity(TEST_AT("narrowed"), pid, &one);
	CHECK_OK(processes_restore(proc, &o, &result, &err));
	check_affinity(TEST_AT("restored"), pid, &all);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	(void)close(proc);
	captured_remove(&tree);
}

/* Host files set CPUAffinity=, which process 1 and services that are started again keep. */
TEST(affinities_that_services_got_from_host_files_are_restored_beside_their_units)
{
	const pid_t pid = start_child();
	struct cpuset all = { 0 }, one = { 0 };
	struct host_settings settings;
	struct err err = { 0 };
	struct test_host t;
	char command[512], status[64];
	void *mask = all.w;

	CHECK(sched_getaffinity(0, sizeof(all.w), mask) >= 0);
	if (cpuset_count(&all) < 2)
		TEST_SKIP("one CPU");
	cpuset_add(&one, cpuset_last(&all));
	mask = one.w;
	CHECK(sched_setaffinity(pid, sizeof(one.w), mask) == 0);
	host_setup(&t, "/run/systemd/private");
	settings = settings_of(&t);
	(void)snprintf(command, sizeof(command),
		       "cd %s/proc && mkdir -p %d/task/%d && cp /proc/%d/stat %d && "
		       "cp /proc/%d/stat %d/task/%d && echo 0::/system.slice/a.service >%d/cgroup",
		       t.tree.dir, (int)pid, (int)pid, (int)pid, (int)pid, (int)pid, (int)pid,
		       (int)pid, (int)pid);
	CHECK(system(command) == 0);
	(void)snprintf(status, sizeof(status), "proc/%d/task/%d/status", (int)pid, (int)pid);
	write_file(&t, "proc/1/status", "Cpus_allowed_list:\t0-7\n");
	write_file(&t, status, "Cpus_allowed_list:\t0-7\n");
	run_agent(&t, 15);
	end_agent(&t);
	check_affinity(TEST_AT("applied"), pid, &one); /* by the unit, not by affinity */
	write_file(&t, status, "Cpus_allowed_list:\t0-1\n");
	CHECK_INT(host_restore(&settings, &err), 1);
	check_affinity(TEST_AT("restored"), pid, &all);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	host_teardown(&t);
}
