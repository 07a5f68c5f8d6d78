/* The life of the processes of a local node: start, restart with backoff, stop with a grace period,
 * and what follows when a process ends. Restart rules are those of the kubelet. */

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
#define BACKOFF_RESET_MS 60000	 /* after a run of this length the backoff starts again */
#define LOG_MAX ((off_t)8 << 20) /* /run is a tmpfs: the log takes memory */

bool run_is_alive(const struct run *run)
{
	return run->state == RUN_RUNNING || run->state == RUN_STOPPING;
}

enum local_state run_local_state(const struct run *run)
{
	if (run->is_removed)
		return LOCAL_STOPPING;
	if (run->state == RUN_FINISHED)
		return run->failed ? LOCAL_FAILED : LOCAL_FINISHED;
	return run->was_started ? LOCAL_RUNNING : LOCAL_NOT_STARTED;
}

/* A sidecar is an init container with restartPolicy Always of its own, so the pod's policy does not
 * apply to it; an ordinary init container has to succeed once, so Always means OnFailure. */
bool run_restarts_after(const struct local_container *c, bool succeeded)
{
	if (c->kind == CONTAINER_SIDECAR)
		return true;
	if (c->kind == CONTAINER_INIT)
		return !succeeded && c->restart != LOCAL_RESTART_NEVER;
	return c->restart == LOCAL_RESTART_ALWAYS ||
	       (c->restart == LOCAL_RESTART_ON_FAILURE && !succeeded);
}

void run_back_off(struct run *run, int64_t now_ms)
{
	/* 100 ms << 7 is above the maximum already; more doublings would overflow in the end. */
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
		/* By pidfd: the pid of an adopted process may have been reused. The first process
		 * only, as container runtimes do; when it ends, local_node_ended() kills the
		 * others. */
		(void)syscall(SYS_pidfd_send_signal, run->pid_fd, SIGTERM, NULL, 0);
		run->state = RUN_STOPPING;
		run->kill_at_ms = now_ms + (int64_t)run->c->grace_s * 1000;
	} else if (run->state != RUN_STOPPING) {
		run->state = RUN_FINISHED;
	}
}

/* --- starting --- */

static int start_process(struct local_node *node, struct run *run,
			 const struct local_container *target, struct err *err)
{
	pid_t pid;
	int fd, r;

	/* Before the process exists: it enters a cgroup that already has its CPU settings. */
	r = local_node_move(node, node->runs, node->n, run, target, err);
	if (r >= 0)
		r = container_cgroup_start(&node->cgroup, target, node->log_fd, &pid, err);
	if (r < 0)
		return r;
	fd = run_open_pid(pid, err);
	if (fd < 0) { /* its end could not be noticed */
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return fd;
	}
	run->pid = pid;
	run->pid_fd = fd;
	return 0;
}

static void start_run(struct local_node *node, struct run *run, int64_t now_ms,
		      local_node_failure_fn on_failure)
{
	struct local_container target;
	struct err err = { 0 };

	if (!runs_available_cpus(node->runs, node->n, run, &target))
		return; /* its CPUs are still in use */
	if (start_process(node, run, &target, &err) < 0) {
		on_failure(&err);
		run_back_off(run, now_ms);
		return;
	}
	run->is_child = run->was_started = true;
	run->state = RUN_RUNNING;
	run->started_at_ms = now_ms;
	node->is_unsaved = true;
}

/* A container waits for the init containers before it; a sidecar only has to have been started.
 * Depends on the order of the runs: the containers of a pod are in the order of its spec. */
static bool waits_for_init(const struct local_node *node, const struct run *run)
{
	for (const struct run *before = node->runs; before < run; before++) {
		if (before->is_removed || !local_container_same_pod(before->c, run->c))
			continue;
		if (before->c->kind == CONTAINER_INIT &&
		    (before->state != RUN_FINISHED || before->failed))
			return true;
		if (before->c->kind == CONTAINER_SIDECAR && before->state == RUN_NOT_STARTED)
			return true;
	}
	return false;
}

/* A sidecar is stopped when all app containers of its pod have finished, as the kubelet does. */
static bool sidecar_is_done(const struct local_node *node, const struct run *sidecar)
{
	bool any = false;

	for (size_t i = 0; i < node->n; i++) {
		const struct run *run = &node->runs[i];

		if (run->is_removed || run->c->kind != CONTAINER_APP ||
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
	return (run->state == RUN_NOT_STARTED && !waits_for_init(node, run)) ||
	       (run->state == RUN_BACKOFF && run->restart_at_ms <= now_ms);
}

static void step_run(struct local_node *node, struct run *run, int64_t now_ms,
		     local_node_failure_fn on_failure)
{
	bool may_start = !node->is_stopping && !run->is_removed &&
			 !runs_have_predecessor(node->runs, node->n, run);

	if (run->c->kind == CONTAINER_SIDECAR && run->state != RUN_FINISHED &&
	    sidecar_is_done(node, run))
		run_begin_stop(run, now_ms);
	if (may_start && is_due(node, run, now_ms))
		start_run(node, run, now_ms, on_failure);
	else if (run->state == RUN_STOPPING && run->kill_at_ms <= now_ms)
		(void)container_cgroup_kill(&node->cgroup, run->c, NULL);
}

/* A backoff that is over is not due again: the container was not started in this step, so it waits
 * for CPUs or for its predecessor, and the end of a process is an event. A process that does not
 * end after SIGKILL is signalled again every 10 ms. */
static int64_t next_due(const struct run *run, int64_t now_ms)
{
	if (run->state == RUN_BACKOFF)
		return run->restart_at_ms > now_ms ? run->restart_at_ms : INT64_MAX;
	if (run->state == RUN_STOPPING)
		return run->kill_at_ms > now_ms ? run->kill_at_ms : now_ms + 10;
	return INT64_MAX;
}

/* CPUs of removed containers became free: applies the planned CPUs of containers that wait for
 * them. */
static void apply_waiting_moves(struct local_node *node, local_node_failure_fn on_failure)
{
	struct local_container target;
	struct err err = { 0 };

	node->has_waiting_moves = false;
	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];

		if (run->is_removed || !run_is_alive(run) ||
		    !runs_available_cpus(node->runs, node->n, run, &target) ||
		    cpuset_eq(&target.settings.cpus, &run->current_cpus))
			continue;
		if (local_node_move(node, node->runs, node->n, run, &target, &err) < 0)
			on_failure(&err);
	}
}

static void save_if_changed(struct local_node *node, local_node_failure_fn on_failure)
{
	struct err err = { 0 };

	/* While the machine is being stopped, the file keeps its content until it is deleted. */
	if (!node->is_unsaved || node->is_stopping)
		return;
	node->is_unsaved = false;
	if (local_node_save(node, node->runs, node->n, &err) < 0)
		on_failure(&err);
}

int64_t local_node_step(struct local_node *node, int64_t now_ms, local_node_failure_fn on_failure)
{
	int64_t next = INT64_MAX, due;
	struct stat st;

	/* Before a successor starts: after a crash its process must not be taken for the old one.
	 */
	save_if_changed(node, on_failure);
	if (node->has_waiting_moves)
		apply_waiting_moves(node, on_failure);
	for (size_t i = 0; i < node->n; i++)
		step_run(node, &node->runs[i], now_ms, on_failure);
	for (size_t i = 0; i < node->n; i++) {
		due = next_due(&node->runs[i], now_ms);
		next = due < next ? due : next;
	}
	save_if_changed(node, on_failure);
	/* The containers have this description open with O_APPEND, so they continue at the new end,
	 * and no hole remains. */
	if (fstat(node->log_fd, &st) == 0 && st.st_size > LOG_MAX)
		(void)!ftruncate(node->log_fd, 0);
	return next;
}

/* --- the end of a process --- */

static bool has_succeeded(const struct run *run)
{
	siginfo_t info = { 0 };

	/* Does not block: the pidfd is readable, so the process has ended. This also reaps it. The
	 * exit status of an adopted process goes to init: it counts as a failure, so that restart
	 * policy OnFailure restarts it. */
	return run->is_child && waitid(P_PID, (id_t)run->pid, &info, WEXITED) == 0 &&
	       info.si_code == CLD_EXITED && info.si_status == 0;
}

void local_node_ended(struct local_node *node, struct run *run, int64_t now_ms)
{
	bool was_stopping = run->state == RUN_STOPPING;
	bool succeeded = has_succeeded(run);

	(void)close(run->pid_fd);
	run->pid_fd = -1;
	/* A container ends with its first process. In a pid namespace the kernel would see to that,
	 * but local containers have none. */
	(void)container_cgroup_kill(&node->cgroup, run->c, NULL);
	if (now_ms - run->started_at_ms > BACKOFF_RESET_MS)
		run->restarts = 0;
	if (was_stopping || !run_restarts_after(run->c, succeeded)) {
		run->state = RUN_FINISHED;
		run->failed = !was_stopping && !succeeded && run->is_child;
	} else {
		run_back_off(run, now_ms);
	}
	if (run->is_removed) {
		node->has_waiting_moves = true; /* its CPUs are free now */
		/* A planned run comes before a removed one: then a successor of the same name uses
		 * the cgroup. */
		if (runs_find(node->runs, node->n, run->c)->is_removed)
			(void)container_cgroup_remove(&node->cgroup, run->c, NULL);
	}
	node->is_unsaved = true;
}

void local_node_reap_orphans(const struct local_node *node)
{
	siginfo_t info = { 0 };

	/* WNOWAIT returns the same process again until it is reaped, so the loop must stop at a
	 * process of a container; the orphans behind it are reaped in the next round. */
	while (getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid) {
		for (size_t i = 0; i < node->n; i++)
			if (node->runs[i].pid_fd >= 0 && node->runs[i].pid == info.si_pid)
				return; /* local_node_ended() reads its exit status */
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}

void local_node_stop(struct local_node *node, int64_t now_ms)
{
	node->is_stopping = true;
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

bool local_node_has_converged(const struct local_node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].is_removed && run_is_alive(&node->runs[i]))
			return false;
	return !node->has_waiting_moves;
}
