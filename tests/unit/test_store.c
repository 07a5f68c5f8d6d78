/* Starting again: after a clean stop, a reboot, a new configuration, a damaged file. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "cpus.h"
#include "pool/store.h"
#include "test.h"

#define STATE "ledger.json"

struct place {
	struct arena a;
	struct topology topology;
	struct pool_config config;
	char dir[32];
	int dir_fd;
	struct store store;
	struct ledger l;
	struct store_report report;
	bool is_open;
};

static struct pool_config config(const char *reserved, const char *shared, const char *guaranteed)
{
	struct pool_config c;

	pool_config_init(&c);
	c.reserved = cpus(reserved);
	c.shared = cpus(shared);
	c.guaranteed = cpus(guaranteed);
	return c;
}

static void place_build(struct place *p, unsigned n_cpus)
{
	struct topology_cpu list[16];
	struct topology_input in = { .cpus = list };
	struct err err = { 0 };

	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		list[in.n_cpus++] = (struct topology_cpu){ .cpu = (uint16_t)cpu,
							   .id = { [TOPOLOGY_CORE] = cpu } };
	if (n_cpus < 16)
		cpuset_add_range(&in.offline, n_cpus, 15);
	CHECK_OK(topology_build(&in, &p->a, &p->topology, &err));
}

static void place_start(struct place *p)
{
	*p = (struct place){ .config = config("0-1", "2-7", "8-15"),
			     .dir = "/tmp/pinfold-store-XXXXXX" };
	arena_init(&p->a, 0);
	place_build(p, 16);
	CHECK(mkdtemp(p->dir) != NULL);
	p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p->dir_fd >= 0);
}

static int place_open(struct place *p, const char *boot_id, struct err *err)
{
	struct store_settings settings = { .dir_fd = p->dir_fd,
					   .path = STATE,
					   .boot_id = boot_id,
					   .topology = &p->topology,
					   .config = &p->config };
	int r = store_open(&p->store, &p->l, &settings, &p->report, err);

	p->is_open = r >= 0;
	return r;
}

static void place_close(struct place *p)
{
	if (!p->is_open)
		return;
	ledger_done(&p->l);
	store_done(&p->store);
	p->is_open = false;
}

static const char *place_reopen(struct place *p, const char *boot_id)
{
	struct err err = { 0 };

	place_close(p);
	CHECK_OK(place_open(p, boot_id, &err));
	return store_outcome_name(p->report.outcome);
}

static void place_done(struct place *p)
{
	struct err err = { 0 };
	struct str *names;
	size_t n;

	place_close(p);
	CHECK_OK(file_list_at(p->dir_fd, ".", &p->a, &names, &n, &err));
	for (size_t i = 0; i < n; i++)
		(void)unlinkat(p->dir_fd, str_cstr(&p->a, names[i]), 0);
	(void)close(p->dir_fd);
	(void)rmdir(p->dir);
	arena_done(&p->a);
}

static struct str give(struct place *p, const char *pod, int64_t milli)
{
	struct ledger_request r = { .pod_uid = str_from(pod),
				    .pod_namespace = STR("ns"),
				    .pod_name = str_from(pod),
				    .container = STR("app"),
				    .demand = { CONTAINER_APP, true, milli } };
	struct ledger_grant grant;
	struct err err = { 0 };

	CHECK_OK(ledger_allocate(&p->l, &r, &grant, &err));
	return cpuset_format(&grant.cpus, &p->a);
}

static struct str content(struct place *p)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(file_read_at(p->dir_fd, STATE, LEDGER_STATE_MAX_SIZE, &p->a, &text, &err));
	return text;
}

static void put(struct place *p, struct str text)
{
	struct err err = { 0 };

	CHECK_OK(file_replace_at(p->dir_fd, STATE, text, 0600, &err));
}

TEST(assignments_survive_a_restart_but_not_a_reboot)
{
	CLEANUP(place_done) struct place p;
	struct stat st;

	place_start(&p);
	CHECK_STR(place_reopen(&p, "one"), "fresh");
	CHECK_STR(give(&p, "a", 2000), "8-9");
	CHECK_STR(give(&p, "b", 2000), "10-11");
	CHECK_STR(place_reopen(&p, "one"), "restored");
	CHECK_UINT(p.report.n_restored, 2);
	CHECK_STR(give(&p, "b", 2000), "10-11");
	CHECK(fstatat(p.dir_fd, STATE, &st, 0) == 0 && (st.st_mode & 0777) == 0600);
	CHECK_STR(place_reopen(&p, "two"), "rebooted");
	CHECK_UINT(p.l.n, 0);
	CHECK_STR(give(&p, "b", 2000), "8-9");
	CHECK_STR(place_reopen(&p, "two"), "restored");
}

TEST(a_cpu_is_on_disk_before_it_is_assigned)
{
	CLEANUP(place_done) struct place p;
	struct err err = { 0 };
	struct ledger_state s;

	place_start(&p);
	(void)place_reopen(&p, "one");
	CHECK_STR(give(&p, "a", 2000), "8-9");
	CHECK_OK(ledger_state_decode(content(&p), STR(STATE), &p.a, &s, &err));
	CHECK_UINT(s.n_entries, 1);
	CHECK_STR(cpuset_format(&s.entries[0]->cpus, &p.a), "8-9");
}

TEST(a_new_configuration_is_used_when_it_fits_the_assignments)
{
	static const struct {
		const char *shared, *guaranteed, *outcome, *why;
	} rows[] = {
		{ "2-7", "8-15", "restored", "" },
		{ "2-3", "4-15", "resized", "" },
		{ "2-8", "9-15", "kept",
		  "the guaranteed pool cannot lose CPUs \"8\": ns/a/app runs there" },
		{ "2-8", "8-15", "kept", "CPU \"8\" is both shared and guaranteed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(place_done) struct place p;

		TEST_ROW("row %zu", i);
		place_start(&p);
		(void)place_reopen(&p, "one");
		CHECK_STR(give(&p, "a", 2000), "8-9");
		p.config = config("0-1", rows[i].shared, rows[i].guaranteed);
		CHECK_STR(place_reopen(&p, "one"), rows[i].outcome);
		CHECK_STR((const char *)p.report.why.msg, rows[i].why);
		CHECK_STR(give(&p, "a", 2000), "8-9");
		/* What was kept is also what stands in the file now. */
		p.config = p.l.now.config;
		CHECK_STR(place_reopen(&p, "one"), "restored");
	}
}

TEST(a_bad_configuration_without_an_older_one_is_an_error)
{
	CLEANUP(place_done) struct place p;
	struct err err = { 0 };

	place_start(&p);
	p.config = config("0-1", "2-8", "8-15");
	CHECK_ERR(place_open(&p, "one", &err), EINVAL,
		  "CPU pools: CPU \"8\" is both shared and guaranteed");
}

TEST(a_damaged_file_is_renamed_and_the_store_opens)
{
	static const char *const damages[] = { "", "{", "not json", "{\"version\":99}",
					       "{\"version\":1,\"checksum\":\"xxh64:00" };

	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		CLEANUP(place_done) struct place p;
		struct err err = { 0 };
		struct str aside;

		TEST_ROW("%s", damages[i]);
		place_start(&p);
		put(&p, str_from(damages[i]));
		CHECK_STR(place_reopen(&p, "one"), "corrupt");
		CHECK(p.report.why.code != 0 && p.report.why.msg[0] != '\0');
		CHECK_STR((const char *)p.report.aside, STATE ".corrupt-0");
		CHECK_OK(file_read_at(p.dir_fd, p.report.aside, 4096, &p.a, &aside, &err));
		CHECK_STR(aside, damages[i]);
		CHECK_STR(give(&p, "a", 2000), "8-9");
		CHECK_STR(place_reopen(&p, "one"), "restored");
	}
}

TEST(a_file_that_violates_an_invariant_is_renamed_too)
{
	CLEANUP(place_done) struct place p;
	struct assignment entries[] = {
		{ .pod_uid = STR("a"),
		  .container = STR("c"),
		  .kind = CONTAINER_APP,
		  .cpus = cpus("8-9") },
		{ .pod_uid = STR("b"),
		  .container = STR("c"),
		  .kind = CONTAINER_APP,
		  .cpus = cpus("9-10") },
	};
	struct assignment *order[] = { &entries[0], &entries[1] };
	struct ledger_state s = { .boot_id = STR("one"), .entries = order, .n_entries = 2 };
	struct err err = { 0 };
	struct str text;

	place_start(&p);
	s.config = &p.config;
	CHECK_OK(ledger_state_encode(&s, &p.a, &text, &err));
	put(&p, text);
	CHECK_STR(place_reopen(&p, "one"), "corrupt");
	CHECK_STR((const char *)p.report.why.msg,
		  "I4 (held by two pods) is broken: pod \"b\" container \"c\", CPUs \"9\"");
	CHECK_UINT(p.l.n, 0);
}

TEST(ten_damaged_files_are_kept_and_the_newest_replaces_the_last)
{
	CLEANUP(place_done) struct place p;

	place_start(&p);
	for (int i = 0; i < 12; i++) {
		put(&p, STR("damaged"));
		CHECK_STR(place_reopen(&p, "one"), "corrupt");
	}
	CHECK_STR((const char *)p.report.aside, STATE ".corrupt-9");
}

TEST(cpus_removed_between_two_starts_leave_their_owner_degraded)
{
	CLEANUP(place_done) struct place p;
	struct cpuset free;

	place_start(&p);
	(void)place_reopen(&p, "one");
	CHECK_STR(give(&p, "a", 7000), "8-14");
	place_build(&p, 12); /* 12 to 15 are offline now */
	CHECK_STR(place_reopen(&p, "one"), "restored");
	CHECK(p.report.machine_differs);
	CHECK_UINT(cpuset_last(&ledger_find(&p.l, STR("a"), STR("app"))->cpus), 14);
	ledger_free(&p.l, &free);
	CHECK(cpuset_is_empty(&free));
}

TEST(a_second_process_cannot_open_the_same_state)
{
	CLEANUP(place_done) struct place p;
	struct store_settings settings = { .path = STATE, .boot_id = "one" };
	struct store_report report;
	struct err err = { 0 };
	struct store second;
	struct ledger l;

	place_start(&p);
	(void)place_reopen(&p, "one");
	settings.dir_fd = p.dir_fd;
	settings.topology = &p.topology;
	settings.config = &p.config;
	CHECK_ERR(store_open(&second, &l, &settings, &report, &err), EBUSY,
		  STATE ": another process uses this state");
}

TEST(a_directory_that_cannot_be_written_is_an_error_at_open)
{
	CLEANUP(place_done) struct place p;
	struct err err = { 0 };

	place_start(&p);
	CHECK(mkdirat(p.dir_fd, STATE ".pinfold-new", 0700) == 0); /* in the way of every write */
	CHECK(place_open(&p, "one", &err) < 0);
	CHECK(err.msg[0] != '\0');
	CHECK(unlinkat(p.dir_fd, STATE ".pinfold-new", AT_REMOVEDIR) == 0);
}

TEST(a_write_that_fails_changes_nothing_and_the_next_one_works)
{
	CLEANUP(place_done) struct place p;
	struct ledger_request r = { .pod_uid = STR("a"),
				    .container = STR("app"),
				    .demand = { CONTAINER_APP, true, 2000 } };
	struct ledger_grant grant = { .pool = POOL__COUNT };
	struct err err = { 0 };
	struct str before;

	place_start(&p);
	(void)place_reopen(&p, "one");
	before = content(&p);
	CHECK(mkdirat(p.dir_fd, STATE ".pinfold-new", 0700) == 0);
	CHECK(ledger_allocate(&p.l, &r, &grant, &err) < 0);
	CHECK(grant.pool == POOL__COUNT);
	CHECK_UINT(p.l.n, 0);
	CHECK_STR(content(&p), before);
	CHECK(unlinkat(p.dir_fd, STATE ".pinfold-new", AT_REMOVEDIR) == 0);
	CHECK_STR(give(&p, "a", 2000), "8-9");
}

TEST(the_boot_id_is_read_below_the_given_root)
{
	CLEANUP(place_done) struct place p;
	char id[STORE_BOOT_ID_MAX];
	struct err err = { 0 };
	int root;

	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("the emulator opens another directory for /");
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place_start(&p);
	CHECK(root >= 0);
	CHECK_OK(store_read_boot_id(root, id, &err));
	CHECK_UINT(strlen(id), 36);
	(void)close(root);
	CHECK(store_read_boot_id(p.dir_fd, id, &err) == -ENOENT);
}
