/* A process that writes the ledger is killed with SIGKILL at arbitrary times. The next process that
 * opens the file finds a state that existed: the last acknowledged one, or the one being written.
 * No assignment is lost. PINFOLD_CRASHES sets the number of kills. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/macro.h"
#include "machines.h"
#include "pool/store.h"

#define CRASHES 60 /* in each directory */
#define STATE "ledger.json"

/* What the writer tells while it lives. Memory both see: a pipe would lose what is in flight. */
struct diary {
	_Atomic uint64_t announced; /* hash of the state about to be written */
	_Atomic uint64_t durable;   /* hash of the last one acknowledged */
	_Atomic uint64_t n_durable;
	_Atomic uint64_t n_handed_out; /* grants that the ledger has answered */
};

struct crash {
	struct prop p;
	struct arena a;
	struct topology topology;
	struct pool_config config;
	struct diary *diary;
	ledger_persist_fn persist;
	void *persist_data;
	char dir[64];
	int dir_fd;
	size_t n_between, n_acknowledged, n_writes;
};

static uint64_t hash_of_ledger(const struct ledger *l)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct ledger_state s;
	struct str text;

	arena_init(&a, 0);
	ledger_to_state(l, &s);
	s.boot_id = STR("boot");
	CHECK_OK(ledger_state_encode(&s, &a, &text, &err));
	return xxh64(text, 0);
}

static uint64_t hash_of_file(const struct crash *c)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(c->dir_fd, STATE, LEDGER_STATE_MAX_SIZE, &a, &text, &err));
	return xxh64(text, 0);
}

static int persist_with_diary(const struct ledger *l, void *data, struct err *err)
{
	struct crash *c = data;
	uint64_t hash = hash_of_ledger(l);
	int r;

	atomic_store(&c->diary->announced, hash);
	r = c->persist(l, c->persist_data, err);
	if (r < 0)
		return r;
	atomic_store(&c->diary->durable, hash);
	atomic_fetch_add(&c->diary->n_durable, 1);
	return 0;
}

static struct store_settings settings_of(const struct crash *c)
{
	return (struct store_settings){
		.dir_fd = c->dir_fd,
		.path = STATE,
		.boot_id = "boot",
		.topology = &c->topology,
		.config = &c->config,
	};
}

static void one_change(struct crash *c, struct ledger *l)
{
	char uid[16], name[16];
	struct ledger_request request = {
		.pod_namespace = STR("default"),
		.pod_name = STR("pod-with-a-name-of-usual-length"),
		.demand = { CONTAINER_APP, true, (int64_t)prop_between(&c->p, 1, 4) * 1000 },
	};
	struct ledger_grant grant;

	(void)snprintf(uid, sizeof(uid), "pod-%u", (unsigned)prop_below(&c->p, 40));
	(void)snprintf(name, sizeof(name), "c%u", (unsigned)prop_below(&c->p, 2));
	request.pod_uid = str_from(uid);
	request.container = str_from(name);
	if (prop_one_in(&c->p, 3))
		(void)ledger_release_pod(l, request.pod_uid, NULL);
	else if (ledger_allocate(l, &request, &grant, NULL) >= 0)
		atomic_fetch_add(&c->diary->n_handed_out, 1);
}

/* The writer: changes for ever, until it is killed. */
static void write_until_killed(struct crash *c)
{
	struct store_settings settings = settings_of(c);
	struct store_report report;
	struct err err = { 0 };
	struct ledger l;
	struct store s;

	if (store_open(&s, &l, &settings, &report, &err) < 0) {
		(void)fprintf(stderr, "writer: %s\n", err.msg);
		_exit(3);
	}
	c->persist = l.persist;
	c->persist_data = l.persist_data;
	l.persist = persist_with_diary;
	l.persist_data = c;
	for (;;)
		one_change(c, &l);
}

static void check_aftermath(struct crash *c)
{
	struct store_settings settings = settings_of(c);
	uint64_t on_disk = hash_of_file(c), durable = atomic_load(&c->diary->durable);
	struct store_report report;
	struct err err = { 0 };
	struct ledger l;
	struct store s;

	if (on_disk == durable)
		c->n_acknowledged++;
	else if (on_disk == atomic_load(&c->diary->announced))
		c->n_between++;
	else
		test_fail(TEST_AT("the state on disk"), "never existed");
	CHECK_OK(store_open(&s, &l, &settings, &report, &err));
	CHECK_STR(store_outcome_name(report.outcome), "restored");
	CHECK_OK(ledger_check(&l, &err));
	CHECK(hash_of_ledger(&l) == on_disk); /* read back, it is the same */
	atomic_store(&c->diary->durable, on_disk);
	atomic_store(&c->diary->announced, on_disk);
	ledger_done(&l);
	store_done(&s);
}

static void kill_a_writer(struct crash *c)
{
	struct timespec patience = { .tv_nsec = (long)prop_below(&c->p, 3000000) };
	uint64_t writes = atomic_load(&c->diary->n_durable);
	uint64_t seed = prop_next(&c->p);
	int status;
	pid_t writer = fork();

	CHECK(writer >= 0);
	if (writer == 0) {
		c->p.state = seed;
		write_until_killed(c);
	}
	/* Not before it has begun: killing a process that has not opened the file shows nothing. */
	while (atomic_load(&c->diary->n_durable) == writes &&
	       waitpid(writer, &status, WNOHANG) == 0)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	(void)nanosleep(&patience, NULL);
	CHECK(kill(writer, SIGKILL) == 0);
	CHECK(waitpid(writer, &status, 0) == writer);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	c->n_writes = (size_t)atomic_load(&c->diary->n_durable);
}

static void crash_start(struct crash *c, const char *parent)
{
	struct machine m = { .n_sockets = 2,
			     .nodes_per_socket = 2,
			     .cores_per_node = 16,
			     .threads_per_core = 2,
			     .cores_per_l3 = 8 };
	struct store_settings settings;
	struct store_report report;
	struct err err = { 0 };
	struct ledger l;
	struct store s;

	arena_init(&c->a, 0);
	machine_build(&m, &c->a, &c->topology);
	pool_config_init(&c->config);
	cpuset_add_range(&c->config.reserved, 0, 1);
	cpuset_add_range(&c->config.shared, 2, 15);
	cpuset_add_range(&c->config.guaranteed, 16, 127);
	(void)snprintf(c->dir, sizeof(c->dir), "%s/pinfold-crash-XXXXXX", parent);
	CHECK(mkdtemp(c->dir) != NULL);
	c->dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(c->dir_fd >= 0);
	c->diary = mmap(NULL, sizeof(*c->diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(c->diary != MAP_FAILED);
	settings = settings_of(c);
	CHECK_OK(store_open(&s, &l, &settings, &report, &err));
	CHECK_STR(store_outcome_name(report.outcome), "fresh");
	atomic_store(&c->diary->durable, hash_of_ledger(&l));
	ledger_done(&l);
	store_done(&s);
}

static void crash_done(struct crash *c)
{
	static const char *const files[] = { STATE, STATE ".lock", STATE ".pinfold-new" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlinkat(c->dir_fd, files[i], 0);
	(void)close(c->dir_fd);
	CHECK(rmdir(c->dir) == 0); /* nothing else was left behind */
	(void)munmap(c->diary, sizeof(*c->diary));
	arena_done(&c->a);
}

static void crash_in(const char *parent)
{
	const char *crashes = getenv("PINFOLD_CRASHES");
	unsigned long n = crashes ? strtoul(crashes, NULL, 0) : CRASHES;
	struct crash c = { .p = prop_start() };

	crash_start(&c, parent);
	for (unsigned long i = 0; i < n; i++) {
		TEST_ROW("PINFOLD_SEED=%" PRIu64 " crash %lu", c.p.seed, i);
		kill_a_writer(&c);
		check_aftermath(&c);
	}
	TEST_NOTE("%lu kills after %zu writes and %" PRIu64 " grants: %zu found the acknowledged "
		  "state, %zu the one being written",
		  n, c.n_writes, atomic_load(&c.diary->n_handed_out), c.n_acknowledged,
		  c.n_between);
	CHECK_UINT(c.n_acknowledged + c.n_between, n);
	crash_done(&c);
}

TEST(a_writer_killed_while_it_waits_for_the_disk_leaves_a_state_that_existed)
{
	const char *parent = getenv("TMPDIR");

	crash_in(parent ? parent : "/tmp");
}

/* Where the file belongs in production: writes are so short that kills hit every part of them. */
TEST(a_writer_killed_on_a_tmpfs_leaves_a_state_that_existed)
{
	if (access("/dev/shm", W_OK) < 0)
		TEST_SKIP("no /dev/shm");
	crash_in("/dev/shm");
}
