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
#include "codec/problems.h"
#include "control.h"
#include "cpu/topology_read.h"
#include "kube/shares.h"
#include "lock.h"
#include "node_private.h"
#include "plan.h"
#include "process.h"

#define INTENT_FILE "intent.json"
#define LEDGER_FILE "cpus.json"
#define LOG_FILE "log"

/* --- opening --- */

int node_open(struct node *node, const struct node_settings *settings, struct err *err)
{
	int r;

	*node = (struct node){ .settings = *settings, .dir_fd = -1, .log_fd = -1 };
	arena_init(&node->machine, 0);
	arena_init(&node->plan, 0);
	r = topology_read(settings->topology, &node->machine, &node->topology, err);
	if (r >= 0)
		r = cage_open(&node->cage, settings->name, settings->run_dir, err);
	if (r < 0) {
		arena_done(&node->machine);
		return r;
	}
	if (settings->affinity_only) {
		cage_use_affinity(&node->cage);
		(void)err_set(&node->cage_why, EPERM, "asked for");
	}
	return 0;
}

/* Others may not swap what we read and write: ours, in a directory of ours or of root. */
static int check_owner(int fd, const char *path, struct err *err)
{
	struct stat own, above;

	if (fstat(fd, &own) < 0 || fstatat(fd, "..", &above, 0) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (own.st_uid != geteuid() || (above.st_uid != geteuid() && above.st_uid != 0))
		return err_set(err, EPERM, "%s: belongs to somebody else", path);
	return 0;
}

static int open_dir(const struct node_settings *settings, int *ret, struct err *err)
{
	const char *path = settings->run_dir;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return err_set(err, errno, "open %s: %s", path, strerror(errno));
	r = check_owner(fd, path, err);
	if (r >= 0 && lock_wait(fd) < 0)
		r = err_set(err, EBUSY, "pinfold local \"%s\" is already running, in %s",
			    settings->name, path);
	if (r < 0)
		(void)close(fd);
	else
		*ret = fd;
	return r;
}

static bool is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

/* Made and locked. Between the two a `down` may have removed it: then once more. */
static int make_dir(struct node *node, struct err *err)
{
	const char *path = node->settings.run_dir;
	int fd, r;

	for (int round = 0; round < 3; round++) {
		r = file_mkdirs_at(AT_FDCWD, path, 0755, err);
		if (r >= 0)
			r = open_dir(&node->settings, &fd, err);
		if (r < 0)
			return r;
		if (!is_removed(fd)) {
			node->dir_fd = fd;
			return 0;
		}
		(void)close(fd);
	}
	return err_set(err, EAGAIN, "%s: is removed again and again", path);
}

static int remove_files(const struct node *node, struct err *err)
{
	static const char *const ours[] = { INTENT_FILE, LEDGER_FILE, LOG_FILE };
	struct str *names;
	struct arena a;
	size_t n = 0;
	int r;

	control_unlink(node->settings.run_dir);
	arena_init(&a, 0);
	r = file_list_at(node->dir_fd, ".", &a, &names, &n, err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_LEN(ours); k++) /* with temporary and kept ones */
			if (str_starts(names[i], str_from(ours[k])) &&
			    unlinkat(node->dir_fd, str_cstr(&a, names[i]), 0) < 0 &&
			    errno != ENOENT)
				r = err_set(err, errno, "remove " PRI_STR ": %s", FMT_STR(names[i]),
					    strerror(errno));
	arena_done(&a);
	if (r >= 0)
		(void)rmdir(node->settings.run_dir); /* unless somebody put something there */
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
	if (node->is_new && !node->has_plan) { /* refused: as if we had never been here */
		(void)cage_destroy(&node->cage, NULL);
		(void)remove_files(node, NULL);
	}
	cage_done(&node->cage);
	if (node->log_fd >= 0)
		(void)close(node->log_fd);
	if (node->dir_fd >= 0)
		(void)close(node->dir_fd);
	arena_done(&node->plan);
	arena_done(&node->machine);
}

/* --- the intent --- */

int node_read_intent(const char *run_dir, struct arena *a, struct intent *ret, struct err *err)
{
	struct str path = str_printf(a, "%s/" INTENT_FILE, run_dir), text;
	int r;

	r = file_read_at(AT_FDCWD, path.p, INTENT_MAX_SIZE, a, &text, err);
	return r < 0 ? r : intent_decode(text, path, a, ret, err);
}

int node_save(struct node *node, const struct run *runs, size_t n, struct err *err)
{
	struct intent in = { .mode = node->cage.mode,
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
		if (runs[i].unwanted && !run_is_alive(&runs[i]))
			continue;
		in.containers[in.n] = *runs[i].c;
		in.states[in.n] = run_local_state(&runs[i]);
		in.restarts[in.n++] = runs[i].restarts;
	}
	r = intent_encode(&in, &a, &text, err);
	if (r >= 0)
		r = file_replace_at(node->dir_fd, INTENT_FILE, text, 0600, err);
	arena_done(&a);
	return r;
}

/* --- moving in: what a supervisor before us left --- */

static void adopt(struct node *node, struct run *run, int64_t now_ms)
{
	struct arena a;
	pid_t *pids;
	size_t n = 0;

	arena_init(&a, 0);
	if (cage_procs(&node->cage, run->c, &a, &pids, &n, NULL) >= 0 && n)
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
	} else if (run->was_started) { /* ended while nobody looked: whether well is not known */
		run->state = RUN_FINISHED;
	}
}

static struct run *new_runs(size_t n)
{
	struct run *runs = calloc(n + 1, sizeof(*runs));

	if (!runs)
		abort(); /* CONVENTIONS: process-wide exhaustion aborts */
	return runs;
}

/* Its name may have been given to another command since; processes are the old one's then. */
static bool is_succeeding(const struct node *node, const struct run *run)
{
	for (size_t i = 0; i < node->n; i++)
		if (node->runs[i].unwanted && run_is_alive(&node->runs[i]) &&
		    local_container_same(node->runs[i].c, run->c))
			return true;
	return false;
}

static void recall(struct node *node, const struct intent *old, int64_t now_ms)
{
	node->runs = new_runs(old->n);
	node->n = old->n;
	for (size_t i = 0; i < old->n; i++) {
		struct run *run = &node->runs[i];
		enum local_state state = old->states[i];

		*run = (struct run){ .c = &old->containers[i],
				     .state = state == LOCAL_FINISHED || state == LOCAL_FAILED ?
						      RUN_FINISHED :
						      RUN_WAITING,
				     .pid_fd = -1,
				     .was_started = state != LOCAL_WAITING,
				     .failed = state == LOCAL_FAILED,
				     .unwanted = state == LOCAL_LEAVING,
				     .at = old->containers[i].cpus,
				     .restarts = old->restarts[i] };
		if (run->unwanted)
			adopt(node, run, now_ms);
	}
	for (size_t i = 0; i < old->n; i++)
		if (!node->runs[i].unwanted && node->runs[i].state == RUN_WAITING &&
		    !is_succeeding(node, &node->runs[i]))
			adopt(node, &node->runs[i], now_ms);
}

static int read_old(struct node *node, struct intent *ret, struct err *err)
{
	struct intent old = { 0 };
	int r;

	r = node_read_intent(node->settings.run_dir, &node->plan, &old, NULL);
	node->is_new = r == -ENOENT;
	/* None yet, of another version or of another boot: nothing to take over. */
	if (r < 0 || !str_eq(old.boot_id, str_from(node->boot_id)))
		old = (struct intent){ 0 };
	if (old.n && old.mode != node->cage.mode)
		return err_set(err, EBUSY,
			       "containers run by %s, but this would be by %s: end them with "
			       "'pinfold local down' first",
			       local_mode_name(old.mode), local_mode_name(node->cage.mode));
	*ret = old;
	return 0;
}

/* Should the ledger's file be lost, running containers still have what they have. */
static int restore_ledger(struct node *node, struct err *err)
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
				    .cpu_milli = 1000 * (int64_t)cpuset_count(&c->cpus) },
		};
		struct arena a;

		if (!c->is_exclusive)
			continue;
		arena_init(&a, 0);
		request.pod_uid =
			str_printf(&a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->pod));
		r = ledger_adopt(&node->ledger, &request, &c->cpus, err);
		arena_done(&a);
	}
	return r;
}

static int open_ledger(struct node *node, const struct pool_config *config, struct err *err)
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
		r = restore_ledger(node, err);
	return r;
}

static int read_boot_id(struct node *node, struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return store_read_boot_id(root, node->boot_id, err);
}

static int open_log(struct node *node, struct err *err)
{
	node->log_fd =
		openat(node->dir_fd, LOG_FILE, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (node->log_fd < 0)
		return err_set(err, errno, "open %s/" LOG_FILE ": %s", node->settings.run_dir,
			       strerror(errno));
	return 0;
}

/* The first time: everything that has to be there before a plan can be made. */
static int move_in(struct node *node, const struct pool_config *config, int64_t now_ms,
		   struct err *err)
{
	struct intent old;
	int r;

	r = make_dir(node, err);
	if (r >= 0)
		r = read_boot_id(node, err);
	if (r >= 0)
		r = cage_make(&node->cage, &node->cage_why, err);
	if (r >= 0)
		r = read_old(node, &old, err);
	if (r < 0)
		return r;
	recall(node, &old, now_ms);
	r = open_log(node, err);
	/* With the old pools, so that the plan takes the step to the new ones, or refuses to. */
	return r < 0 ? r : open_ledger(node, old.n ? &old.config : config, err);
}

/* --- moving containers --- */

struct run *runs_find(struct run *runs, size_t n, const struct local_container *c)
{
	for (size_t i = 0; i < n; i++)
		if (local_container_same(runs[i].c, c))
			return &runs[i];
	return NULL;
}

bool runs_place(const struct run *runs, size_t n, const struct run *run,
		struct local_container *ret)
{
	struct local_container c = *run->c;

	for (size_t i = 0; i < n; i++) {
		const struct run *leaving = &runs[i];

		if (leaving == run || !leaving->unwanted || !leaving->c->is_exclusive ||
		    !run_is_alive(leaving) || !cpuset_intersects(&leaving->at, &c.cpus))
			continue;
		if (c.is_exclusive)
			return false;
		cpuset_minus(&c.cpus, &leaving->at);
	}
	if (cpuset_is_empty(&c.cpus))
		return false;
	*ret = c;
	return true;
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

int node_move(const struct node *node, const struct run *runs, size_t n, struct run *run,
	      const struct local_container *where, struct err *err)
{
	int r = cage_apply(&node->cage, where, shares_of_pod(runs, n, run), err);

	if (r >= 0)
		run->at = where->cpus;
	return r;
}

/* Whoever owns CPUs stays on them to the end. */
static bool is_moving(const struct run *run)
{
	return run_is_alive(run) && !(run->unwanted && run->c->is_exclusive);
}

/* What must be given up goes before anybody gets more. */
static int move_all(const struct node *node, struct run *runs, size_t n, struct err *err)
{
	struct local_container where;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!is_moving(&runs[i]) || !runs_place(runs, n, &runs[i], &where))
			continue;
		cpuset_intersect(&where.cpus, &runs[i].at);
		if (!cpuset_is_empty(&where.cpus) && !cpuset_eq(&where.cpus, &runs[i].at))
			r = node_move(node, runs, n, &runs[i], &where, err);
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_moving(&runs[i]) && runs_place(runs, n, &runs[i], &where))
			r = node_move(node, runs, n, &runs[i], &where, err);
	return r;
}

/* Back to where everybody was. Adds to `err` how that went. */
static void move_back(const struct node *node, struct err *err)
{
	struct err why = *err;
	int r = 0;

	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];
		struct local_container where = *run->c;

		if (!is_moving(run))
			continue;
		where.cpus = run->at;
		if (node_move(node, node->runs, node->n, run, &where, err) < 0)
			r = -EIO;
	}
	if (r < 0) /* err says which one */
		(void)err_wrap(err, "%.100s; going back failed as well", why.msg);
	else
		(void)err_set(err, why.code, "%s; everything was put back", why.msg);
}

/* --- applying a plan --- */

/* An owner of CPUs cannot be moved: it is started anew when its CPUs change. */
static bool goes_on(const struct run *old, const struct local_container *wanted)
{
	return !old->unwanted && local_container_same_command(wanted, old->c) &&
	       wanted->is_exclusive == old->c->is_exclusive &&
	       (!wanted->is_exclusive || cpuset_eq(&wanted->cpus, &old->c->cpus));
}

/* The list of the plan, with what goes on as it was; what has no place there any more but still
 * runs stands behind, unwanted. Changes nothing yet. */
static struct run *carry_over(const struct node *node, const struct local_plan *plan,
			      struct arena *a, size_t *ret_n)
{
	struct run *runs = new_runs(plan->n + node->n);
	size_t total = plan->n;

	for (size_t i = 0; i < plan->n; i++)
		runs[i] = (struct run){ .c = &plan->containers[i], .pid_fd = -1 };
	for (size_t i = 0; i < node->n; i++) {
		const struct run *old = &node->runs[i];
		struct run *now = runs_find(runs, plan->n, old->c);

		if (now && goes_on(old, now->c)) {
			struct local_container *wanted = now->c;

			*now = *old;
			now->c = wanted;
			continue;
		}
		if (!run_is_alive(old))
			continue;
		runs[total] = *old;
		runs[total].c = local_container_copy(old->c, a);
		runs[total].unwanted = true;
		if (!old->c->is_exclusive) /* keeps off CPUs that were given to somebody */
			(void)ledger_cpus(&node->ledger, old->c->pool, &runs[total].c->cpus);
		total++;
	}
	*ret_n = total;
	return runs;
}

/* Cgroups and processes that no list knows. */
static int remove_strays(const struct cage *cage, struct run *runs, size_t n, struct err *err)
{
	struct local_container *there;
	struct arena a;
	size_t n_there;
	int r;

	arena_init(&a, 0);
	r = cage_list(cage, &a, &there, &n_there, err);
	for (size_t i = 0; r >= 0 && i < n_there; i++)
		if (!runs_find(runs, n, &there[i]))
			r = cage_remove(cage, &there[i], err);
	arena_done(&a);
	return r;
}

/* What can fail, in an order that can be undone: places, intent, ledger. */
static int commit(struct node *node, struct run *runs, size_t n, struct err *err)
{
	int r;

	r = move_all(node, runs, n, err);
	if (r >= 0)
		r = node_save(node, runs, n, err);
	if (r >= 0) {
		r = ledger_commit(&node->ledger, err); /* rolls back when it fails */
		if (r < 0 && node->has_plan)
			(void)node_save(node, node->runs, node->n, NULL);
	} else {
		ledger_rollback(&node->ledger);
	}
	if (r < 0)
		move_back(node, err);
	return r;
}

/* Beyond return: the new list is the list. */
static int take_effect(struct node *node, struct run *runs, size_t n, int64_t now_ms,
		       struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].unwanted)
			run_begin_stop(&runs[i], now_ms);
	free(node->runs);
	node->runs = runs;
	node->n = n;
	node->has_plan = node->unsettled = true;
	return remove_strays(&node->cage, runs, n, err);
}

/* In a container we may have fewer CPUs than the machine. Whoever shares CPUs does with those it
 * can have; an owner needs all of its own. */
static bool keep_to_allowed(const struct node *node, struct local_plan *plan, struct arena *a,
			    struct problem_list *p)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct local_container *c = &plan->containers[i];
		struct cpuset both = c->cpus;

		cpuset_intersect(&both, &node->cage.allowed);
		if (cpuset_eq(&both, &c->cpus))
			continue;
		if (!c->is_exclusive && !cpuset_is_empty(&both)) {
			c->cpus = both;
			continue;
		}
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      PRI_STR ": is to run on CPUs " PRI_STR
				      ", but this machine gives us only " PRI_STR,
			      FMT_STR(local_container_id(c, a)),
			      FMT_STR(cpuset_format(&c->cpus, a)),
			      FMT_STR(cpuset_format(&node->cage.allowed, a)));
		return false;
	}
	return true;
}

/* On success the ledger's transaction is open. */
static int decide(struct node *node, struct arena *with, const struct manifests *manifests,
		  int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan_input in = { .manifests = manifests, .topology = &node->topology };
	struct pool_config config;
	struct err err = { 0 };
	int r = 0;

	if (node->stopping)
		r = err_set(&err, EBUSY, "everything is being taken down");
	else if (!local_plan_config(&in, with, &config, p))
		return -EINVAL;
	else if (!node->has_ledger)
		r = move_in(node, &config, now_ms, &err);
	if (r < 0) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	r = local_plan_make(&in, &config, &node->ledger, with, ret, p);
	if (r >= 0 && !keep_to_allowed(node, ret, with, p)) {
		ledger_rollback(&node->ledger);
		return -EINVAL;
	}
	return r;
}

int node_apply(struct node *node, struct arena *with, const struct manifests *manifests,
	       int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan plan;
	struct err err = { 0 };
	struct run *runs;
	size_t n;
	int r;

	r = decide(node, with, manifests, now_ms, &plan, p);
	if (r < 0)
		return r;
	runs = carry_over(node, &plan, with, &n);
	r = commit(node, runs, n, &err);
	if (r < 0) {
		free(runs);
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	if (take_effect(node, runs, n, now_ms, &err) < 0)
		problem_warn(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	arena_done(&node->plan);
	node->plan = *with;
	arena_init(with, 0);
	*ret = plan;
	return 0;
}

/* --- the end --- */

int node_destroy(struct node *node, struct err *err)
{
	struct cage by_mark = node->cage; /* whatever mode they were started in */
	int r;

	by_mark.mode = LOCAL_AFFINITY;
	r = remove_strays(&node->cage, NULL, 0, err);
	if (r >= 0)
		r = remove_strays(&by_mark, NULL, 0, err);
	if (r >= 0)
		r = cage_destroy(&node->cage, err);
	if (r >= 0 && node->dir_fd >= 0)
		r = remove_files(node, err);
	return r;
}

int node_clean(const struct node_settings *settings, struct err *err)
{
	struct node node;
	int was_there, r;

	r = node_open(&node, settings, err);
	if (r < 0)
		return r;
	r = open_dir(settings, &node.dir_fd, err);
	was_there = r != -ENOENT || cage_is_made(&node.cage);
	if (r == -ENOENT)
		r = 0;
	if (r >= 0)
		r = node_destroy(&node, err);
	node_done(&node);
	return r < 0 ? r : was_there;
}
