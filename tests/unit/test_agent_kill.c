/* A real agent is killed at random times while it assigns and releases CPUs, PINFOLD_KILLS times
 * (default 200). Containers arrive as OCI hooks report them, so no runtime is needed; cgroups are
 * plain files. PINFOLD_SEED repeats a run. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "test.h"

#define N_CONTAINERS 8 /* of two CPUs each; six fit into the guaranteed pool */
#define GUARANTEED "4-15"

struct machine {
	char dir[64], run[80];
	struct arena a; /* of one round */
	pid_t agent, killer;
	struct {
		bool exists;	    /* its record and its cgroup */
		bool is_assigned;   /* the agent has said so */
		struct cpuset cpus; /* if is_assigned */
	} containers[N_CONTAINERS];
	unsigned n_done, n_refused;
};

static void pause_us(long us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	(void)nanosleep(&t, NULL);
}

static void put(const struct machine *m, const char *path, const char *text)
{
	char full[160];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s", m->dir, path);
	f = fopen(full, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

/* The kernel's effective CPUs follow the configured ones: a link does that. */
static void make_cgroup(const struct machine *m, const char *name, const char *cpus)
{
	static const char *const files[][2] = { { "cpu.weight", "100" },
						{ "cpu.max", "max 100000" },
						{ "cgroup.procs", "" } };
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/cg/%s", m->dir, name);
	CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), "cg/%s/cpuset.cpus", name);
	put(m, path, cpus);
	(void)snprintf(path, sizeof(path), "%s/cg/%s/cpuset.cpus.effective", m->dir, name);
	CHECK(symlink("cpuset.cpus", path) == 0 || errno == EEXIST);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "cg/%s/%s", name, files[i][0]);
		put(m, path, files[i][1]);
	}
}

static void remove_cgroup(const struct machine *m, size_t i)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.cpus.effective", "cpu.weight",
					     "cpu.max", "cgroup.procs" };
	char path[160];

	for (size_t k = 0; k < ARRAY_LEN(files); k++) {
		(void)snprintf(path, sizeof(path), "%s/cg/c%zu/%s", m->dir, i, files[k]);
		CHECK(unlink(path) == 0);
	}
	(void)snprintf(path, sizeof(path), "%s/cg/c%zu", m->dir, i);
	CHECK(rmdir(path) == 0);
}

static void machine_init(struct machine *m)
{
	static const char *const dirs[] = { "run", "run/oci", "cg" };
	char path[160];

	*m = (struct machine){ 0 };
	arena_init(&m->a, 0);
	(void)snprintf(m->dir, sizeof(m->dir), "/dev/shm/agent-kill-XXXXXX");
	CHECK(mkdtemp(m->dir) != NULL);
	(void)snprintf(m->run, sizeof(m->run), "%s/run", m->dir);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", m->dir, dirs[i]);
		CHECK(mkdir(path, 0700) == 0);
	}
	make_cgroup(m, ".", "0-15");
	put(m, "cg/cgroup.controllers", "cpuset cpu\n");
}

static void machine_done(struct machine *m)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", m->dir);
	CHECK(system(command) == 0);
	arena_done(&m->a);
}

/* --- the agent --- */

static void exec_agent(const struct machine *m)
{
	const char *program = getenv("PINFOLD");
	char run[100], cgroups[100], log[100];
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* after a check that failed */
	(void)snprintf(run, sizeof(run), "--run-dir=%s", m->run);
	(void)snprintf(cgroups, sizeof(cgroups), "--cgroup-root=%s/cg", m->dir);
	(void)snprintf(log, sizeof(log), "%s/log", m->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	(void)dup2(fd, STDERR_FILENO);
	if (!program)
		_exit(126);
	(void)execl(program, "pinfold", "agent", run, cgroups, "--topology=pack:1 core:8 pu:2",
		    "--management=0-1", "--shared=2-3", "--guaranteed=" GUARANTEED,
		    "--nri-socket=/nonexistent", "--no-cluster", "--kubelet-state=/nonexistent",
		    "--kubelet-podresources=", "--log-level=error", (char *)NULL);
	_exit(127);
}

static int request(struct machine *m, const char *method, struct str target, struct str *ret,
		   struct err *err)
{
	return status_client_request(m->run, method, target, &m->a, ret, err);
}

static void start_agent(struct machine *m)
{
	struct err err = { 0 };
	struct str text;

	m->agent = fork();
	if (m->agent == 0)
		exec_agent(m);
	for (int i = 0; request(m, "GET", STR("/healthz"), &text, &err) < 0; i++) {
		CHECK(waitpid(m->agent, NULL, WNOHANG) == 0); /* it ended: see its log */
		CHECK(i < 60000);
		pause_us(500);
	}
}

/* A process of its own, so that the kill comes at any time of a request. */
static void kill_after(struct machine *m, long us)
{
	m->killer = fork();
	if (m->killer == 0) {
		pause_us(us);
		(void)kill(m->agent, SIGKILL);
		_exit(0);
	}
}

static void collect(const struct machine *m)
{
	int status;

	CHECK(waitpid(m->agent, &status, 0) == m->agent);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(waitpid(m->killer, &status, 0) == m->killer);
}

/* --- containers --- */

/* False when the agent died: then nothing is known about the container's CPUs. */
static bool add(struct machine *m, size_t i)
{
	struct err err = { 0 };
	char name[16], path[64];
	struct doc doc;
	struct str text;
	int r;

	(void)snprintf(name, sizeof(name), "c%zu", i);
	(void)snprintf(path, sizeof(path), "run/oci/c%zu.json", i);
	make_cgroup(m, name, "0-15");
	put(m, path,
	    str_cstr(&m->a, str_printf(&m->a,
				       "{\"id\":\"%s\",\"cgroup\":\"/%s\",\"quotaUs\":200000,"
				       "\"periodUs\":100000,\"memoryBytes\":1}",
				       name, name)));
	m->containers[i].exists = true;
	r = request(m, "POST", str_printf(&m->a, "/oci/%s", name), &text, &err);
	if (r == -ENOSPC) {
		remove_cgroup(m, i);
		m->containers[i].exists = false;
		m->n_refused++;
		return true;
	}
	if (r < 0)
		return false;
	CHECK_OK(doc_parse(text, STR("response"), NULL, &m->a, &doc, &err));
	CHECK(doc_bool(doc_get(doc.root, STR("exclusive")), false));
	CHECK_OK(cpuset_parse(doc_str(doc_get(doc.root, STR("cpus"))), &m->containers[i].cpus,
			      &err));
	m->containers[i].is_assigned = true;
	return true;
}

/* As a runtime does it: the cgroup is removed first. */
static bool drop(struct machine *m, size_t i)
{
	struct err err = { 0 };
	struct str text;

	remove_cgroup(m, i);
	m->containers[i].exists = m->containers[i].is_assigned = false;
	return request(m, "DELETE", str_printf(&m->a, "/oci/c%zu", i), &text, &err) == 0;
}

static void work_until_killed(struct machine *m)
{
	for (;;) {
		const size_t i = (size_t)rand() % N_CONTAINERS;

		if (!(m->containers[i].exists ? drop(m, i) : add(m, i)))
			return;
		m->n_done++;
	}
}

/* --- invariants --- */

static void check_container(struct machine *m, yyjson_val *item, struct cpuset *taken)
{
	const struct str id = doc_str(doc_get(item, STR("id")));
	struct err err = { 0 };
	struct cpuset cpus, both;
	size_t i;

	CHECK(id.n == 2 && id.p[0] == 'c' && id.p[1] >= '0' && id.p[1] < '0' + N_CONTAINERS);
	i = (size_t)(id.p[1] - '0');
	CHECK(m->containers[i].exists); /* else its CPUs are lost */
	CHECK_OK(cpuset_parse(doc_str(doc_get(item, STR("cpus"))), &cpus, &err));
	CHECK_UINT(cpuset_count(&cpus), 2);
	both = cpus;
	cpuset_intersect(&both, taken);
	CHECK(cpuset_is_empty(&both)); /* else a CPU has two owners */
	cpuset_union(taken, &cpus);
	CHECK(!m->containers[i].is_assigned || cpuset_eq(&cpus, &m->containers[i].cpus));
	m->containers[i].is_assigned = true;
	m->containers[i].cpus = cpus;
}

static void check_after_restart(struct machine *m)
{
	struct cpuset taken = { 0 }, pool, unused;
	struct err err = { 0 };
	yyjson_val *list, *item;
	struct doc doc;
	struct str text;

	CHECK_OK(request(m, "GET", STR("/status"), &text, &err));
	CHECK_OK(doc_parse(text, STR("status"), NULL, &m->a, &doc, &err));
	list = doc_get(doc.root, STR("containers"));
	for (size_t i = 0; i < N_CONTAINERS; i++) {
		bool is_listed = false;

		DOC_EACH_ITEM (list, item)
			is_listed |= str_eq(doc_str(doc_get(item, STR("id"))),
					    str_printf(&m->a, "c%zu", i));
		TEST_ROW("c%zu", i);
		CHECK(is_listed || !m->containers[i].is_assigned);
		/* The kill came before the decision, and there is no room any more. */
		if (m->containers[i].exists && !is_listed) {
			remove_cgroup(m, i);
			m->containers[i].exists = false;
		}
	}
	DOC_EACH_ITEM (list, item)
		check_container(m, item, &taken);
	CHECK_OK(cpuset_parse(STR(GUARANTEED), &pool, &err));
	CHECK_OK(
		cpuset_parse(doc_str(doc_find(doc.root, "/pools/guaranteed/free")), &unused, &err));
	cpuset_union(&unused, &taken);
	CHECK(cpuset_eq(&unused, &pool)); /* else CPUs are neither free nor owned */
}

/* A ledger that cannot be read is moved aside. */
static void check_no_corruption(struct machine *m)
{
	AUTO_CLOSE int fd = open(m->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = { 0 };
	struct str *names;
	size_t n;

	CHECK_OK(file_list_at(fd, ".", &m->a, &names, &n, &err));
	for (size_t i = 0; i < n; i++)
		CHECK(!str_has(names[i], STR("corrupt")));
}

TEST(no_cpu_is_lost_or_doubled_when_the_agent_is_killed_at_any_time)
{
	const char *kills = getenv("PINFOLD_KILLS"), *seed = getenv("PINFOLD_SEED");
	const unsigned rounds = kills ? (unsigned)atoi(kills) : 200;
	const unsigned random = seed ? (unsigned)atoi(seed) : (unsigned)getpid();
	struct machine m;

	if (!getenv("PINFOLD"))
		TEST_SKIP("PINFOLD names no program");
	(void)signal(SIGPIPE, SIG_IGN);
	srand(random);
	machine_init(&m);
	for (unsigned i = 0; i < rounds; i++) {
		start_agent(&m);
		TEST_ROW("round %u of seed %u", i, random);
		check_after_restart(&m);
		check_no_corruption(&m);
		kill_after(&m, rand() % 8000);
		work_until_killed(&m);
		collect(&m);
		arena_reset(&m.a);
	}
	TEST_NOTE("seed %u: %u kills, %u requests done, %u refused", random, rounds, m.n_done,
		  m.n_refused);
	CHECK(m.n_done > rounds / 4);
	machine_done(&m);
}
