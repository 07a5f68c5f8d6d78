/* Set-up and removal of a local node: the run directory and its files, the ledger, and the adoption
 * of processes that an earlier supervisor started. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "control.h"
#include "cpu/topology_read.h"
#include "kube/shares.h"
#include "local_node_private.h"
#include "lock.h"
#include "process.h"

#define STATE_FILE_NAME "state.json"
#define GRACE_UNKNOWN_S 30 /* the default of Kubernetes */
#define LEDGER_FILE "cpus.json"
#define LOG_FILE "log"

/* --- opening --- */

int local_node_open(struct local_node *node, const struct local_node_settings *settings,
		    struct err *err)
{
	int r;

	*node = (struct local_node){ .settings = *settings, .dir_fd = -1, .log_fd = -1 };
	arena_init(&node->machine, 0);
	arena_init(&node->plan, 0);
	r = topology_read(settings->topology, &node->machine, &node->topology, err);
	if (r >= 0)
		r = container_cgroup_open(&node->cgroup, settings->name, settings->run_dir, err);
	if (r < 0) {
		arena_done(&node->machine);
		return r;
	}
	if (settings->affinity_only) {
		container_cgroup_use_affinity(&node->cgroup);
		(void)err_set(&node->cgroup_error, EPERM, "requested by --affinity-only");
	}
	return 0;
}

/* Other users must not be able to replace the files: the directory is the caller's own, inside one
 * of the caller or of root, and no other user may write to either. /tmp is allowed: its sticky bit
 * prevents others from renaming the directory. */
static int check_owner(int fd, const char *path, struct err *err)
{
	const mode_t others = S_IWGRP | S_IWOTH;
	struct stat own, above;

	if (fstat(fd, &own) < 0 || fstatat(fd, "..", &above, 0) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (own.st_uid != geteuid() || (above.st_uid != geteuid() && above.st_uid != 0))
		return err_set(err, EPERM, "%s: belongs to another user", path);
	if (own.st_mode & others || (above.st_mode & others && !(above.st_mode & S_ISVTX)))
		return err_set(err, EPERM, "%s: other users may write to it or to its parent: %s",
			       path, "remove their permission with chmod go-w");
	return 0;
}

static int open_run_dir(const struct local_node_settings *settings, int *ret, struct err *err)
{
	const char *path = settings->run_dir;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return err_set(err, errno, "open %s: %s", path, strerror(errno));
	r = check_owner(fd, path, err);
	if (r >= 0 && lock_wait(fd) < 0)
		r = err_set(err, EBUSY, "local machine \"%s\" is already running in %s",
			    settings->name, path);
	if (r < 0)
		(void)close(fd);
	else
		*ret = fd;
	return r;
}

/* A concurrent `down` may remove the directory between creating and locking it: then once more. The
 * lock alone does not show it, because a removed directory can still be locked. */
static int create_run_dir(struct local_node *node, struct err *err)
{
	const char *path = node->settings.run_dir;
	struct stat st;
	int fd = -1, r;

	for (int round = 0; round < 3; round++) {
		r = file_mkdirs_at(AT_FDCWD, path, 0700, err);
		if (r >= 0)
			r = open_run_dir(&node->settings, &fd, err);
		if (r < 0)
			return r;
		if (fstat(fd, &st) == 0 && st.st_nlink > 0) {
			node->dir_fd = fd;
			return 0;
		}
		(void)close(fd);
	}
	return err_set(err, EAGAIN, "%s: another process keeps removing it", path);
}

static int remove_files(const struct local_node *node, struct err *err)
{
	/* Also locks, temporary files and copies of a corrupt ledger, whose names begin like these.
	 */
	static const char *const prefixes[] = { STATE_FILE_NAME, LEDGER_FILE, LOG_FILE };
	struct str *names;
	struct arena a;
	size_t n = 0;
	int r;

	control_unlink(node->settings.run_dir);
	arena_init(&a, 0);
	r = file_list_at(node->dir_fd, ".", &a, &names, &n, err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_LEN(prefixes); k++)
			if (str_starts(names[i], str_from(prefixes[k])) &&
			    unlinkat(node->dir_fd, str_cstr(&a, names[i]), 0) < 0 &&
			    errno != ENOENT)
				r = err_set(err, errno, "remove " PRI_STR ": %s", FMT_STR(names[i]),
					    strerror(errno));
	arena_done(&a);
	if (r >= 0)
		(void)rmdir(node->settings.run_dir); /* fails if it holds other files */
	return r;
}

/* Processes keep running: `down` has ended them before, otherwise the next supervisor adopts them.
 */
void local_node_done(struct local_node *node)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].pid_fd >= 0)
			(void)close(node->runs[i].pid_fd);
	free(node->runs);
	if (node->has_ledger) {
		ledger_done(&node->ledger);
		store_done(&node->store);
	}
	if (node->is_new && !node->has_plan) { /* the first plan was refused */
		(void)container_cgroup_destroy(&node->cgroup, NULL);
		(void)remove_files(node, NULL);
	}
	container_cgroup_done(&node->cgroup);
	if (node->log_fd >= 0)
		(void)close(node->log_fd);
	if (node->dir_fd >= 0)
		(void)close(node->dir_fd);
	arena_done(&node->plan);
	arena_done(&node->machine);
}

/* --- state file --- */

int local_node_read_state(const char *run_dir, struct arena *a, struct local_state_file *ret,
			  struct err *err)
{
	struct str path = str_printf(a, "%s/" STATE_FILE_NAME, run_dir), text;
	int r;

	r = file_read_at(AT_FDCWD, path.p, STATE_FILE_MAX_SIZE, a, &text, err);
	return r < 0 ? r : state_file_decode(text, path, a, ret, err);
}

int local_node_save(struct local_node *node, const struct run *runs, size_t n, struct err *err)
{
	struct local_state_file in = { .mode = node->cgroup.mode,
				       .boot_id = str_from(node->boot_id),
				       .topology = str_from(node->settings.topology),
				       .config = node->ledger.now.config };
	struct str text;
	struct arena a;
	int r;

	arena_init(&a, 0);
	in.containers = arena_array(&a, struct local_container, n);
	in.states = arena_array(&a, enum local_state, n);
	in.restarts = arena_array(&a, unsigned, n);
	for (size_t i = 0; i < n; i++) {
		if (runs[i].is_removed && !run_is_alive(&runs[i]))
			continue;
		in.containers[in.n] = *runs[i].c;
		in.states[in.n] = run_local_state(&runs[i]);
		in.restarts[in.n++] = runs[i].restarts;
	}
	r = state_file_encode(&in, &a, &text, err);
	if (r >= 0)
		r = file_replace_at(node->dir_fd, STATE_FILE_NAME, text, 0600, err);
	arena_done(&a);
	return r;
}

/* --- set-up and adoption --- */

static void adopt_process(struct local_node *node, struct run *run, int64_t now_ms)
{
	struct arena a;
	pid_t *pids;
	size_t n = 0;

	arena_init(&a, 0);
	if (container_cgroup_procs(&node->cgroup, run->c, &a, &pids, &n, NULL) >= 0 && n)
		run->pid = process_root(pids, n);
	if (run->pid)
		run->pid_fd = run_open_pid(run->pid, NULL);
	arena_done(&a);
	if (run->pid_fd >= 0) {
		run->state = RUN_RUNNING;
		run->was_started = true;
		run->started_at_ms = now_ms;
	} else if (run->was_started && run_restarts_after(run->c, false)) {
		run_back_off(run, now_ms);
	} else if (run->was_started) { /* ended without a supervisor: its exit status is unknown */
		run->state = RUN_FINISHED;
	}
}

struct run *runs_new(size_t n)
{
	struct run *runs = calloc(n + 1, sizeof(*runs)); /* of 0 elements it may return NULL */

	if (!runs)
		abort(); /* D21 */
	return runs;
}

bool runs_have_predecessor(const struct run *runs, size_t n, const struct run *run)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].is_removed && run_is_alive(&runs[i]) &&
		    local_container_same(runs[i].c, run->c))
			return true;
	return false;
}

/* Removed containers first: a process under a name that was reused belongs to the removed one. The
 * recorded CPUs are the planned ones and may not be in the kernel after a crash; the plan that
 * follows writes every cpuset again. */
static void restore_runs(struct local_node *node, const struct local_state_file *old,
			 int64_t now_ms)
{
	node->runs = runs_new(old->n);
	node->n = old->n;
	for (size_t i = 0; i < old->n; i++) {
		struct run *run = &node->runs[i];
		enum local_state state = old->states[i];

		*run = (struct run){ .c = &old->containers[i],
				     .state = state == LOCAL_FINISHED || state == LOCAL_FAILED ?
						      RUN_FINISHED :
						      RUN_NOT_STARTED,
				     .pid_fd = -1,
				     .was_started = state != LOCAL_NOT_STARTED,
				     .failed = state == LOCAL_FAILED,
				     .is_removed = state == LOCAL_STOPPING,
				     .current_cpus = old->containers[i].settings.cpus,
				     .restarts = old->restarts[i] };
		if (run->is_removed)
			adopt_process(node, run, now_ms);
	}
	for (size_t i = 0; i < old->n; i++)
		if (!node->runs[i].is_removed && node->runs[i].state == RUN_NOT_STARTED &&
		    !runs_have_predecessor(node->runs, node->n, &node->runs[i]))
			adopt_process(node, &node->runs[i], now_ms);
}

/* The state file is damaged or gone: of what runs only the names are known. It counts as no longer
 * planned, so that it is stopped before a container of the same name starts. */
static int find_remaining(struct local_node *node, struct local_state_file *ret, struct err *err)
{
	struct local_state_file found = { .mode = node->cgroup.mode };
	int r;

	r = container_cgroup_list(&node->cgroup, &node->plan, &found.containers, &found.n, err);
	if (r < 0)
		return r;
	found.states = arena_array(&node->plan, enum local_state, found.n + 1);
	found.restarts = arena_array(&node->plan, unsigned, found.n + 1);
	for (size_t i = 0; i < found.n; i++) {
		found.states[i] = LOCAL_STOPPING;
		found.containers[i].grace_s = GRACE_UNKNOWN_S;
		found.containers[i].pool = POOL_SHARED; /* until it has ended */
		found.containers[i].settings = (struct cpu_settings){
			.shares = CPU_SHARES_MIN,
			.has_quota = true,
			.quota_us = CGROUP_UNLIMITED,
			.period_us = CGROUP_PERIOD_US,
		};
	}
	*ret = found;
	return 0;
}

static int read_old_state(struct local_node *node, struct local_state_file *ret, struct err *err)
{
	struct local_state_file old = { 0 };
	int r;

	r = local_node_read_state(node->settings.run_dir, &node->plan, &old, NULL);
	if (r < 0) {
		const bool is_missing = r == -ENOENT;

		r = find_remaining(node, ret, err);
		node->is_new = is_missing && r == 0 && ret->n == 0;
		return r;
	}
	if (!str_eq(old.boot_id, str_from(node->boot_id))) /* nothing to adopt */
		old = (struct local_state_file){ 0 };
	if (old.n && old.mode != node->cgroup.mode)
		return err_set(err, EBUSY,
			       "containers run with %s, but only %s is available: stop them with "
			       "'pinfold local down' first",
			       local_mode_name(old.mode), local_mode_name(node->cgroup.mode));
	*ret = old;
	return 0;
}

/* The ledger file was lost or corrupt: running containers keep their CPUs. The request is
 * reconstructed from them, because ledger_adopt() refuses a set of another size. */
static int adopt_assignments(struct local_node *node, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < node->n; i++) {
		const struct local_container *c = node->runs[i].c;
		struct ledger_request request = {
			.pod_namespace = c->namespace,
			.pod_name = c->pod,
			.container = c->name,
			.demand = { .kind = c->kind,
				    .is_guaranteed = true,
				    .cpu_milli = 1000 * (int64_t)cpuset_count(&c->settings.cpus) },
		};
		struct arena a;

		if (!c->is_exclusive)
			continue;
		arena_init(&a, 0);
		/* A local pod has no UID; its name takes this place everywhere. */
		request.pod_uid =
			str_printf(&a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->pod));
		r = ledger_adopt(&node->ledger, &request, &c->settings.cpus, err);
		arena_done(&a);
	}
	return r;
}

static int open_ledger(struct local_node *node, const struct pool_config *config, struct err *err)
{
	struct store_settings settings = { .dir_fd = node->dir_fd,
					   .path = LEDGER_FILE,
					   .boot_id = node->boot_id,
					   .topology = &node->topology,
					   .config = config };
	struct store_report report;
	int r;

	r = store_open(&node->store, &node->ledger, &settings, &report, err);
	if (r < 0)
		return r;
	node->has_ledger = true;
	if (report.outcome == STORE_FRESH || report.outcome == STORE_CORRUPT)
		r = adopt_assignments(node, err);
	return r;
}

static int open_log(struct local_node *node, struct err *err)
{
	node->log_fd =
		openat(node->dir_fd, LOG_FILE, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (node->log_fd < 0)
		return err_set(err, errno, "open %s/" LOG_FILE ": %s", node->settings.run_dir,
			       strerror(errno));
	return 0;
}

int local_node_set_up(struct local_node *node, const struct pool_config *config, int64_t now_ms,
		      struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct local_state_file old;
	int r;

	/* First, because it locks: all that follows assumes that no other supervisor runs. */
	r = create_run_dir(node, err);
	if (r >= 0) /* its links can be resolved only now */
		r = container_cgroup_set_mark(&node->cgroup, node->settings.run_dir, err);
	if (r >= 0)
		r = store_read_boot_id(root, node->boot_id, err);
	if (r >= 0)
		r = container_cgroup_make(&node->cgroup, &node->cgroup_error, err);
	if (r >= 0)
		r = read_old_state(node, &old, err);
	if (r < 0)
		return r;
	restore_runs(node, &old, now_ms);
	r = open_log(node, err);
	/* With the old pools, so that the plan resizes them to the new ones or refuses to. */
	return r < 0 ? r : open_ledger(node, old.n ? &old.config : config, err);
}

/* --- removal --- */

int local_node_remove_unknown(const struct container_cgroup *cgroup, struct run *runs, size_t n,
			      struct err *err)
{
	struct local_container *there;
	struct arena a;
	size_t n_there;
	int r;

	arena_init(&a, 0);
	r = container_cgroup_list(cgroup, &a, &there, &n_there, err);
	for (size_t i = 0; r >= 0 && i < n_there; i++)
		if (!runs_find(runs, n, &there[i]))
			r = container_cgroup_remove(cgroup, &there[i], err);
	arena_done(&a);
	return r;
}

int local_node_destroy(struct local_node *node, struct err *err)
{
	/* Also processes of affinity mode, which an earlier supervisor may have used. A copy that
	 * owns nothing: it is never passed to container_cgroup_done(). */
	struct container_cgroup by_mark = node->cgroup;
	int r;

	by_mark.mode = LOCAL_AFFINITY;
	r = local_node_remove_unknown(&node->cgroup, NULL, 0, err);
	if (r >= 0)
		r = local_node_remove_unknown(&by_mark, NULL, 0, err);
	if (r >= 0)
		r = container_cgroup_destroy(&node->cgroup, err);
	if (r >= 0 && node->dir_fd >= 0)
		r = remove_files(node, err);
	return r;
}

int local_node_clean(const struct local_node_settings *settings, struct err *err)
{
	struct local_node node;
	int was_there, r;

	r = local_node_open(&node, settings, err);
	if (r < 0)
		return r;
	r = open_run_dir(settings, &node.dir_fd, err);
	/* Cgroups may remain where the run directory was deleted by hand. */
	was_there = r != -ENOENT || container_cgroup_is_made(&node.cgroup);
	if (r == -ENOENT)
		r = 0;
	if (r >= 0)
		r = local_node_destroy(&node, err);
	local_node_done(&node);
	return r < 0 ? r : was_there;
}
