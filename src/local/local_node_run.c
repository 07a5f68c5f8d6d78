#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "local_node_private.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 10000
#define BACKOFF_FORGET_MS 60000	 /* who ran this long starts with a clean slate */
#define LOG_MAX ((off_t)8 << 20) /* it may live in memory */

bool run_is_alive(const struct run *run)
{
	return run->state == RUN_RUNNING || run->state == RUN_STOPPING;
}

enum local_state run_local_state(const struct run *run)
{
	if (run->unwanted)
		return LOCAL_LEAVING;
	if (run->state == RUN_FINISHED)
		return run->failed ? LOCAL_FAILED : LOCAL_FINISHED;
	return run->was_started ? LOCAL_STARTED : LOCAL_WAITING;
}

bool run_restarts_after(const struct local_container *c, bool well)
{
	if (c->kind == CONTAINER_SIDECAR)
		return true;
	if (c->kind == CONTAINER_INIT)
		return !well && c->restart != LOCAL_RESTART_NEVER;
	return c->restart == LOCAL_RESTART_ALWAYS ||
	       (c->restart == LOCAL_RESTART_ON_FAILURE && !well);
}

void run_back_off(struct run *run, int64_t now_ms)
{
	unsigned doublings = run->restarts < 7 ? run->restarts : 7;
	int64_t wait = (int64_t)BACKOFF_FIRST_MS << doublings;

	run->state = RUN_BACKOFF;
	run->restart_at_ms = now_ms + (wait < BACKOFF_MAX_MS ? wait : BACKOFF_MAX_MS);
	run->restarts++;
}

int run_open_pid(pid_t pid, struct err *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return err_set(err, errno, "process %d: %s", (int)pid, strerror(errno));
	return fd;
}

void run_begin_stop(struct run *run, int64_t now_ms)
{
	if (run->state == RUN_RUNNING) {
		/* By descriptor: the number may be somebody else's by now. */
		(void)syscall(SYS_pidfd_send_signal, run->pid_fd, SIGTERM, NULL, 0);
		run->state = RUN_STOPPING;
		run->kill_at_ms = now_ms + (int64_t)run->c->grace_s * 1000;
	} else if (run->state != RUN_STOPPING) {
		run->state = RUN_FINISHED;
	}
}

/* --- starting --- */

static int start_process(struct local_node *node, struct run *run,
			 const struct local_container *where, struct err *err)
{
	pid_t pid;
	int fd, r;

	r = local_node_move(node, node->runs, node->n, run, where, err);
	if (r >= 0)
		r = container_cgroup_start(&node->cgroup, where, node->log_fd, &pid, err);
	if (r < 0)
		return r;
	fd = run_open_pid(pid, err);
	if (fd < 0) { /* we could not see it end */
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return fd;
	}
	run->pid = pid;
	run->pid_fd = fd;
	return 0;
}

static void start(struct local_node *node, struct run *run, int64_t now_ms,
		  local_node_failure_fn on_failure)
{
	struct local_container where;
	struct err err = { 0 };

	if (!runs_place(node->runs, node->n, run, &where))
		return; /* its CPUs are not free yet */
	if (start_process(node, run, &where, &err) < 0) {
		on_failure(&err);
		run_back_off(run, now_ms);
		return;
	}
	run->is_child = run->was_started = true;
	run->state = RUN_RUNNING;
	run->started_at_ms = now_ms;
	node->unsaved = true;
}

/* A container waits for the init containers before it; a sidecar only has to run. */
static bool is_blocked(const struct local_node *node, const struct run *run)
{
	for (const struct run *before = node->runs; before < run; before++) {
		if (before->unwanted || !local_container_same_pod(before->c, run->c))
			continue;
		if (before->c->kind == CONTAINER_INIT &&
		    (before->state != RUN_FINISHED || before->failed))
			return true;
		if (before->c->kind == CONTAINER_SIDECAR && before->state == RUN_WAITING)
			return true;
	}
	return false;
}

/* An old process of the same name still ends: its place is not free yet. */
static bool is_occupied(const struct local_node *node, const struct run *run)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].unwanted && run_is_alive(&node->runs[i]) &&
		    local_container_same(node->runs[i].c, run->c))
			return true;
	return false;
}

/* Sidecars serve the others of their pod; when all of those are done, so are they. */
static bool has_served(const struct local_node *node, const struct run *sidecar)
{
	bool any = false;

	for (size_t i = 0; i < node->n; i++) {
		const struct run *run = &node->runs[i];

		if (run->unwanted || run->c->kind != CONTAINER_APP ||
		    !local_container_same_pod(run->c, sidecar->c))
			continue;
		if (run->state != RUN_FINISHED)
			return false;
		any = true;
	}
	return any;
}

static bool is_due(const struct local_node *node, const struct run *run, int64_t now_ms)
{
	return (run->state == RUN_WAITING && !is_blocked(node, run)) ||
	       (run->state == RUN_BACKOFF && run->restart_at_ms <= now_ms);
}

static void step_run(struct local_node *node, struct run *run, int64_t now_ms,
		     local_node_failure_fn on_failure)
{
	bool may_start = !node->stopping && !run->unwanted && !is_occupied(node, run);

	if (run->c->kind == CONTAINER_SIDECAR && run->state != RUN_FINISHED &&
	    has_served(node, run))
		run_begin_stop(run, now_ms);
	if (may_start && is_due(node, run, now_ms))
		start(node, run, now_ms, on_failure);
	else if (run->state == RUN_STOPPING && run->kill_at_ms <= now_ms)
		(void)container_cgroup_kill(&node->cgroup, run->c, NULL);
}

static int64_t next_due(const struct run *run, int64_t now_ms)
{
	if (run->state == RUN_BACKOFF)
		return run->restart_at_ms > now_ms ? run->restart_at_ms : INT64_MAX;
	if (run->state == RUN_STOPPING)
		return run->kill_at_ms > now_ms ? run->kill_at_ms : now_ms + 10;
	return INT64_MAX;
}

/* CPUs became free: those that were kept off them get them now. */
static void settle(struct local_node *node, local_node_failure_fn on_failure)
{
	struct local_container where;
	struct err err = { 0 };

	node->unsettled = false;
	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];

		if (run->unwanted || !run_is_alive(run) ||
		    !runs_place(node->runs, node->n, run, &where) ||
		    cpuset_eq(&where.cpus, &run->at))
			continue;
		if (local_node_move(node, node->runs, node->n, run, &where, &err) < 0)
			on_failure(&err);
	}
}

static void keep_log_short(const struct local_node *node)
{
	struct stat st;

	if (fstat(node->log_fd, &st) == 0 && st.st_size > LOG_MAX)
		(void)!ftruncate(node->log_fd, 0);
}

static void save(struct local_node *node, local_node_failure_fn on_failure)
{
	struct err err = { 0 };

	if (!node->unsaved || node->stopping)
		return;
	node->unsaved = false;
	if (local_node_save(node, node->runs, node->n, &err) < 0)
		on_failure(&err);
}

int64_t local_node_step(struct local_node *node, int64_t now_ms, local_node_failure_fn on_failure)
{
	int64_t next = INT64_MAX, due;

	save(node, on_failure); /* who has ended, before somebody of the same name starts */
	if (node->unsettled)
		settle(node, on_failure);
	for (size_t i = 0; i < node->n; i++)
		step_run(node, &node->runs[i], now_ms, on_failure);
	for (size_t i = 0; i < node->n; i++) {
		due = next_due(&node->runs[i], now_ms);
		next = due < next ? due : next;
	}
	save(node, on_failure);
	keep_log_short(node);
	return next;
}

/* --- ending --- */

static bool exited_well(const struct run *run)
{
	siginfo_t info = { 0 };

	/* The status of an adopted process went to init; a failure is the careful guess. */
	return run->is_child && waitid(P_PID, (id_t)run->pid, &info, WEXITED) == 0 &&
	       info.si_code == CLD_EXITED && info.si_status == 0;
}

/* Removes what an unwanted run leaves, unless a successor of the same name has it now. */
static void clear_away(struct local_node *node, const struct run *run)
{
	node->unsettled = true;
	if (runs_find(node->runs, node->n, run->c)->unwanted)
		(void)container_cgroup_remove(&node->cgroup, run->c, NULL);
}

void local_node_ended(struct local_node *node, struct run *run, int64_t now_ms)
{
	bool was_stopping = run->state == RUN_STOPPING;
	bool well = exited_well(run);

	(void)close(run->pid_fd);
	run->pid_fd = -1;
	(void)container_cgroup_kill(&node->cgroup, run->c,
				    NULL); /* a container ends with its first process */
	if (now_ms - run->started_at_ms > BACKOFF_FORGET_MS)
		run->restarts = 0;
	if (was_stopping || !run_restarts_after(run->c, well)) {
		run->state = RUN_FINISHED;
		run->failed = !was_stopping && !well && run->is_child;
	} else {
		run_back_off(run, now_ms);
	}
	if (run->unwanted)
		clear_away(node, run);
	node->unsaved = true;
}

void local_node_reap_orphans(const struct local_node *node)
{
	siginfo_t info = { 0 };

	while (getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid) {
		for (size_t i = 0; i < node->n; i++)
			if (node->runs[i].pid_fd >= 0 && node->runs[i].pid == info.si_pid)
				return; /* its end is for local_node_ended to see */
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

void local_node_stop(struct local_node *node, int64_t now_ms)
{
	node->stopping = true;
	for (size_t i = 0; i < node->n; i++)
		run_begin_stop(&node->runs[i], now_ms);
}

bool local_node_is_idle(const struct local_node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (run_is_alive(&node->runs[i]))
			return false;
	return true;
}

bool local_node_is_settled(const struct local_node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].unwanted && run_is_alive(&node->runs[i]))
			return false;
	return !node->unsettled;
}
