#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "kube/shares.h"
#include "plan.h"
#include "process.h"

#define INTENT_FILE "intent.json"
#define LEDGER_FILE "cpus.json"
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 10000
#define BACKOFF_FORGET_MS 60000 /* who ran this long starts with a clean slate */

/* --- opening --- */

static int open_run_dir(const char *path, int *ret, struct err *err)
{
	int fd, r;

	r = file_mkdirs_at(AT_FDCWD, path, 0755, err);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "open %s: %s", path, strerror(errno));
	*ret = fd;
	return 0;
}

int node_open(struct node *node, const struct node_settings *settings, struct err *err)
{
	int r;

	*node = (struct node){ .settings = *settings, .dir_fd = -1 };
	arena_init(&node->machine, 0);
	arena_init(&node->plan, 0);
	r = topology_read(settings->topology, &node->machine, &node->topology, err);
	if (r >= 0)
		r = open_run_dir(settings->run_dir, &node->dir_fd, err);
	if (r >= 0)
		r = cage_open(&node->cage, settings->name, settings->affinity_only, &node->cage_why,
			      err);
	if (r < 0) {
		if (node->dir_fd >= 0)
			(void)close(node->dir_fd);
		arena_done(&node->machine);
	}
	return r;
}

void node_done(struct node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].pid_fd >= 0)
			(void)close(node->runs[i].pid_fd);
	free(node->runs);
	if (node->has_ledger) {
		ledger_done(&node->ledger);
		store_done(&node->store);
	}
	cage_done(&node->cage);
	(void)close(node->dir_fd);
	arena_done(&node->plan);
	arena_done(&node->machine);
}

static int open_ledger(struct node *node, const struct pool_config *config, struct err *err)
{
	struct store_settings settings = { .dir_fd = node->dir_fd,
					   .path = LEDGER_FILE,
					   .topology = &node->topology,
					   .config = config };
	char boot_id[STORE_BOOT_ID_MAX];
	struct store_report report;
	int root, r;

	if (node->has_ledger)
		return 0;
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = store_read_boot_id(root, boot_id, err);
	(void)close(root);
	if (r < 0)
		return r;
	settings.boot_id = boot_id;
	r = store_open(&node->store, &node->ledger, &settings, &report, err);
	if (r == -EBUSY)
		return err_set(err, EBUSY, "pinfold local \"%s\" is already running",
			       node->settings.name);
	if (r < 0)
		return r;
	node->has_ledger = true;
	return 0;
}

/* --- the intent --- */

int node_read_intent(const char *run_dir, struct arena *a, struct intent *ret, struct err *err)
{
	struct str path = str_printf(a, "%s/" INTENT_FILE, run_dir), text;
	int r;

	r = file_read_at(AT_FDCWD, path.p, INTENT_MAX_SIZE, a, &text, err);
	return r < 0 ? r : intent_decode(text, path, a, ret, err);
}

static int write_intent(struct node *node, const struct run *runs, size_t n, struct err *err)
{
	struct intent in = { .mode = node->cage.mode,
			     .topology = str_from(node->settings.topology),
			     .config = node->ledger.now.config };
	struct str text;
	struct arena a;
	int r;

	arena_init(&a, 0);
	in.containers = arena_array(&a, struct local_container, n);
	in.finished = arena_array(&a, bool, n);
	in.restarts = arena_array(&a, unsigned, n);
	for (size_t i = 0; i < n; i++) {
		if (runs[i].unwanted)
			continue;
		in.containers[in.n] = *runs[i].c;
		in.finished[in.n] = runs[i].state == RUN_FINISHED;
		in.restarts[in.n++] = runs[i].restarts;
	}
	r = intent_encode(&in, &a, &text, err);
	if (r >= 0)
		r = file_replace_at(node->dir_fd, INTENT_FILE, text, 0644, err);
	arena_done(&a);
	return r;
}

/* --- adopting what runs --- */

static int open_pid(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void adopt(struct node *node, struct run *run, int64_t now_ms)
{
	struct arena a;
	pid_t *pids;
	size_t n;

	arena_init(&a, 0);
	if (cage_procs(&node->cage, run->c, &a, &pids, &n, NULL) >= 0 && n) {
		run->pid = process_root(pids, n);
		run->pid_fd = run->pid ? open_pid(run->pid) : -1;
		if (run->pid_fd >= 0) {
			run->state = RUN_RUNNING;
			run->started_at_ms = now_ms;
		}
	}
	arena_done(&a);
}

static struct run *find_run(struct run *runs, size_t n, const struct local_container *c)
{
	for (size_t i = 0; i < n; i++)
		if (local_container_same(runs[i].c, c))
			return &runs[i];
	return NULL;
}

/* After a crash: what the intent says finished stays finished, what runs is taken over. */
static void recall(struct node *node, struct run *runs, size_t n, const struct intent *old,
		   int64_t now_ms)
{
	for (size_t i = 0; i < old->n; i++) {
		struct run *run = find_run(runs, n, &old->containers[i]);

		if (!run || !local_container_same_command(run->c, &old->containers[i]))
			continue;
		run->restarts = old->restarts[i];
		if (old->finished[i])
			run->state = RUN_FINISHED;
		else
			adopt(node, run, now_ms);
	}
}

/* What once ran and is in no plan any more, or runs another command now. */
static int remove_strays(struct node *node, struct run *runs, size_t n,
			 const struct local_container *there, size_t n_there, struct err *err)
{
	for (size_t i = 0; i < n_there; i++) {
		const struct run *run = find_run(runs, n, &there[i]);
		int r;

		if (run && run->state != RUN_WAITING)
			continue;
		r = cage_remove(&node->cage, &there[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_over(struct node *node, struct run *runs, size_t n, int64_t now_ms, struct err *err)
{
	struct local_container *there;
	struct intent old = { 0 };
	struct arena a;
	size_t n_there;
	int r;

	arena_init(&a, 0);
	if (node_read_intent(node->settings.run_dir, &a, &old, err) < 0)
		old.n = 0; /* none yet, or of another version: what runs is a stray then */
	recall(node, runs, n, &old, now_ms);
	r = remove_strays(node, runs, n, old.containers, old.n, err);
	if (r >= 0)
		r = cage_list(&node->cage, &a, &there, &n_there, err);
	if (r >= 0)
		r = remove_strays(node, runs, n, there, n_there, err);
	arena_done(&a);
	return r;
}

/* --- applying a plan --- */

static struct run *runs_of(const struct local_plan *plan, size_t extra)
{
	struct run *runs = calloc(plan->n + extra + 1, sizeof(*runs));

	if (!runs)
		abort(); /* CONVENTIONS: process-wide exhaustion aborts */
	for (size_t i = 0; i < plan->n; i++)
		runs[i] = (struct run){ .c = &plan->containers[i], .pid_fd = -1 };
	return runs;
}

static void begin_stop(struct run *run, int64_t now_ms)
{
	if (run->state == RUN_RUNNING) {
		(void)kill(run->pid, SIGTERM);
		run->state = RUN_STOPPING;
		run->kill_at_ms = now_ms + (int64_t)run->c->grace_s * 1000;
	} else if (run->state != RUN_STOPPING) {
		run->state = RUN_FINISHED;
	}
}

/* Moves what runs from the old list to the new one; what has no place there is to end. */
static size_t carry_over(struct node *node, struct run *runs, size_t n, struct arena *a,
			 int64_t now_ms)
{
	size_t total = n;

	for (size_t i = 0; i < node->n; i++) {
		struct run *old = &node->runs[i], *now = find_run(runs, n, old->c);
		struct local_container *wanted = now ? now->c : NULL;

		if (wanted && !old->unwanted && local_container_same_command(wanted, old->c)) {
			*now = *old;
			now->c = wanted;
			continue;
		}
		begin_stop(old, now_ms);
		if (old->state != RUN_STOPPING && !wanted &&
		    cage_remove(&node->cage, old->c, NULL) >= 0)
			continue;
		runs[total] = *old;
		runs[total].c = local_container_copy(old->c, a);
		runs[total++].unwanted = true;
	}
	return total;
}

/* The CPUs a running container has and keeps: what it must give up goes before anybody gets more.
 */
static int shrink(struct node *node, const struct run *run, const struct cpuset *had,
		  uint64_t pod_shares, struct err *err)
{
	struct local_container smaller = *run->c;

	cpuset_intersect(&smaller.cpus, had);
	if (cpuset_is_empty(&smaller.cpus) || cpuset_eq(&smaller.cpus, had))
		return 0;
	return cage_apply(&node->cage, &smaller, pod_shares, err);
}

static uint64_t shares_of_pod(const struct run *runs, size_t n, const struct run *of)
{
	uint64_t sum = of->c->shares;

	for (size_t i = 0; i < n; i++)
		if (&runs[i] != of && !runs[i].unwanted && runs[i].c->kind != CONTAINER_INIT &&
		    local_container_same_pod(runs[i].c, of->c))
			sum += runs[i].c->shares;
	return sum < CPU_SHARES_MAX ? sum : CPU_SHARES_MAX;
}

static bool is_moving(const struct run *run)
{
	return !run->unwanted && run->state == RUN_RUNNING;
}

static int move_running(struct node *node, struct run *runs, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct run *old = find_run(node->runs, node->n, runs[i].c);

		if (old && is_moving(&runs[i]))
			r = shrink(node, &runs[i], &old->c->cpus, shares_of_pod(runs, n, &runs[i]),
				   err);
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_moving(&runs[i]))
			r = cage_apply(&node->cage, runs[i].c, shares_of_pod(runs, n, &runs[i]),
				       err);
	return r;
}

static int decide(struct node *node, struct arena *with, const struct manifests *manifests,
		  struct local_plan *ret, struct problem_list *p)
{
	struct local_plan_input in = { .manifests = manifests, .topology = &node->topology };
	struct pool_config config;
	struct err err = { 0 };

	if (!local_plan_config(&in, with, &config, p))
		return -EINVAL;
	if (open_ledger(node, &config, &err) < 0) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return -err.code;
	}
	return local_plan_make(&in, &config, &node->ledger, with, ret, p);
}

/* From here on the plan is decided and on disk; what fails is reported and stays to be verified. */
static int enact(struct node *node, const struct local_plan *plan, struct arena *with,
		 int64_t now_ms, struct err *err)
{
	struct run *runs = runs_of(plan, node->n);
	bool first = !node->runs;
	size_t n = plan->n;
	int r = 0;

	if (first)
		r = take_over(node, runs, n, now_ms, err);
	else
		n = carry_over(node, runs, n, with, now_ms);
	if (r >= 0)
		r = write_intent(node, runs, n, err);
	if (r >= 0)
		r = move_running(node, runs, n, err);
	free(node->runs);
	node->runs = runs;
	node->n = n;
	arena_done(&node->plan);
	node->plan = *with;
	arena_init(with, 0);
	return r;
}

int node_apply(struct node *node, struct arena *with, const struct manifests *manifests,
	       int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan plan;
	struct err err = { 0 };
	int r;

	r = decide(node, with, manifests, &plan, p);
	if (r < 0)
		return r;
	r = enact(node, &plan, with, now_ms, &err);
	if (r < 0)
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	*ret = plan;
	return r;
}

/* --- running --- */

static void back_off(struct run *run, int64_t now_ms)
{
	unsigned doublings = run->restarts < 7 ? run->restarts : 7;
	int64_t wait = (int64_t)BACKOFF_FIRST_MS << doublings;

	run->state = RUN_BACKOFF;
	run->restart_at_ms = now_ms + (wait < BACKOFF_MAX_MS ? wait : BACKOFF_MAX_MS);
	run->restarts++;
}

static void start(struct node *node, struct run *run, int64_t now_ms, node_failure_fn on_failure)
{
	struct err err = { 0 };
	int r;

	r = cage_apply(&node->cage, run->c, shares_of_pod(node->runs, node->n, run), &err);
	if (r >= 0)
		r = cage_start(&node->cage, run->c, &run->pid, &err);
	if (r < 0) {
		on_failure(run->c, &err);
		back_off(run, now_ms);
		return;
	}
	run->pid_fd = open_pid(run->pid);
	run->is_child = true;
	run->state = RUN_RUNNING;
	run->started_at_ms = now_ms;
}

/* A container waits for the init containers before it; a sidecar only has to run. */
static bool is_blocked(const struct node *node, const struct run *run)
{
	for (const struct run *before = node->runs; before < run; before++) {
		if (before->unwanted || !local_container_same_pod(before->c, run->c))
			continue;
		if (before->c->kind == CONTAINER_INIT && before->state != RUN_FINISHED)
			return true;
		if (before->c->kind == CONTAINER_SIDECAR && before->state == RUN_WAITING)
			return true;
	}
	return false;
}

/* An old process of the same name still ends: its place is not free yet. */
static bool is_occupied(const struct node *node, const struct run *run)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].unwanted && node->runs[i].state == RUN_STOPPING &&
		    local_container_same(node->runs[i].c, run->c))
			return true;
	return false;
}

int64_t node_step(struct node *node, int64_t now_ms, node_failure_fn on_failure)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];
		int64_t due = INT64_MAX;
		bool may_start = !node->stopping && !run->unwanted && !is_occupied(node, run);

		if (run->state == RUN_WAITING && may_start && !is_blocked(node, run))
			start(node, run, now_ms, on_failure);
		else if (run->state == RUN_BACKOFF && may_start && run->restart_at_ms <= now_ms)
			start(node, run, now_ms, on_failure);
		else if (run->state == RUN_STOPPING && run->kill_at_ms <= now_ms)
			(void)cage_kill(&node->cage, run->c, NULL);
		if (run->state == RUN_BACKOFF)
			due = run->restart_at_ms;
		else if (run->state == RUN_STOPPING)
			due = run->kill_at_ms > now_ms ? run->kill_at_ms : now_ms + 10;
		next = due < next ? due : next;
	}
	return next;
}

static bool exited_well(const struct run *run)
{
	siginfo_t info = { 0 };

	/* The status of an adopted process went to init; a failure is the careful guess. */
	return run->is_child && waitid(P_PID, (id_t)run->pid, &info, WEXITED) == 0 &&
	       info.si_code == CLD_EXITED && info.si_status == 0;
}

static bool restarts_after(const struct local_container *c, bool well)
{
	if (c->kind == CONTAINER_SIDECAR)
		return true;
	if (c->kind == CONTAINER_INIT)
		return !well && c->restart != LOCAL_RESTART_NEVER;
	return c->restart == LOCAL_RESTART_ALWAYS ||
	       (c->restart == LOCAL_RESTART_ON_FAILURE && !well);
}

void node_ended(struct node *node, struct run *run, int64_t now_ms)
{
	bool was_stopping = run->state == RUN_STOPPING;
	bool well = exited_well(run);

	(void)close(run->pid_fd);
	run->pid_fd = -1;
	(void)cage_kill(&node->cage, run->c, NULL); /* a container ends with its first process */
	if (now_ms - run->started_at_ms > BACKOFF_FORGET_MS)
		run->restarts = 0;
	if (was_stopping || !restarts_after(run->c, well))
		run->state = RUN_FINISHED;
	else
		back_off(run, now_ms);
	if (run->unwanted && !find_run(node->runs, node->n, run->c)->unwanted)
		return; /* its successor has the same name, and the cgroup */
	if (run->unwanted)
		(void)cage_remove(&node->cage, run->c, NULL);
	else if (!node->stopping)
		(void)write_intent(node, node->runs, node->n, NULL);
}

void node_stop(struct node *node, int64_t now_ms)
{
	node->stopping = true;
	for (size_t i = 0; i < node->n; i++)
		begin_stop(&node->runs[i], now_ms);
}

bool node_is_idle(const struct node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].state == RUN_STOPPING || node->runs[i].state == RUN_RUNNING)
			return false;
	return true;
}

static int remove_file(const struct node *node, const char *name, struct err *err)
{
	if (unlinkat(node->dir_fd, name, 0) < 0 && errno != ENOENT)
		return err_set(err, errno, "remove %s: %s", name, strerror(errno));
	return 0;
}

int node_destroy(struct node *node, struct err *err)
{
	struct local_container *there;
	struct intent old = { 0 };
	struct arena a;
	size_t n = 0;
	int r;

	arena_init(&a, 0);
	if (node_read_intent(node->settings.run_dir, &a, &old, NULL) < 0)
		old.n = 0;
	r = remove_strays(node, NULL, 0, old.containers, old.n, err);
	if (r >= 0)
		r = cage_list(&node->cage, &a, &there, &n, err);
	if (r >= 0)
		r = remove_strays(node, NULL, 0, there, n, err);
	if (r >= 0)
		r = cage_destroy(&node->cage, err);
	if (r >= 0)
		r = remove_file(node, INTENT_FILE, err);
	if (r >= 0)
		r = remove_file(node, LEDGER_FILE, err);
	arena_done(&a);
	return r;
}
