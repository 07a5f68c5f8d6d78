/* Starts processes with fork and exec, finds them again in /proc, and sets the affinity of their
 * threads. The supervisor has one thread, so the child may use any function between fork and exec.
 */

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/proc.h"
#include "local.h"

#define ENVIRONMENT_MAX ((size_t)1 << 20)
#define EXEC_ROUNDS 3 /* of 1 ms: how long a process may be without an environment */

/* The failed step of the child, sent to the parent through a pipe that exec closes. */
enum child_step { CHILD_ENTER, CHILD_CHDIR, CHILD_EXEC };
struct child_report {
	enum child_step step;
	int code;
};

struct launch {
	char **argv, **env;
	const char *workdir;
	const struct process_settings *settings;
	int null_fd, report_fd;
	pid_t parent;
};

static char **copy_strings(const struct str *items, size_t n, struct arena *a)
{
	char **list = arena_array(a, char *, n + 1);

	for (size_t i = 0; i < n; i++) {
		struct str copy = str_dup(a, items[i]);

		memcpy(&list[i], &copy.p, sizeof(copy.p)); /* exec takes char *, without const */
	}
	return list;
}

static bool same_variable(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* The mark first, so that a manifest cannot forge it; then the container's variables; then those of
 * the supervisor. Each name once: programs differ in which of two equal names they use. */
static char **build_environment(const struct local_container *c, struct str mark, struct arena *a)
{
	size_t inherited = 0, n = 0;
	char **own = copy_strings(c->env, c->n_env, a);
	char **env, *candidate;

	while (environ[inherited])
		inherited++;
	env = arena_array(a, char *, 1 + c->n_env + inherited + 1); /* the mark, and a NULL */
	mark = str_printf(a, PROCESS_MARK "=" PRI_STR, FMT_STR(mark));
	memcpy(&env[n++], &mark.p, sizeof(mark.p));
	for (size_t i = 0; i < c->n_env + inherited; i++) {
		bool is_set = false;

		candidate = i < c->n_env ? own[i] : environ[i - c->n_env];
		for (size_t k = 0; k < n && !is_set; k++)
			is_set = same_variable(env[k], candidate);
		if (!is_set)
			env[n++] = candidate;
	}
	return env;
}

__attribute__((noreturn)) static void child_fail(const struct launch *l, enum child_step step,
						 int code)
{
	struct child_report report = { step, code };

	(void)!write(l->report_fd, &report, sizeof(report));
	_exit(127); /* not exit(): the buffers of stdio are the supervisor's */
}

__attribute__((noreturn)) static void child_main(const struct launch *l)
{
	sigset_t none;
	int r;

	(void)setsid(); /* Ctrl-C at the terminal must reach the supervisor only */
	/* The supervisor blocks the signals of its signalfd, and exec keeps the mask: a container
	 * would not get SIGTERM. */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The copies have no FD_CLOEXEC, unlike all other descriptors, which exec closes. */
	(void)dup2(l->null_fd, STDIN_FILENO);
	(void)dup2(l->settings->output_fd, STDOUT_FILENO);
	(void)dup2(l->settings->output_fd, STDERR_FILENO);
	r = l->settings->enter(l->settings->data);
	if (r < 0)
		child_fail(l, CHILD_ENTER, -r);
	if (*l->workdir && chdir(l->workdir) < 0)
		child_fail(l, CHILD_CHDIR, errno);
	/* The supervisor was killed: the next one starts the container itself. Until exec this
	 * child holds the lock of the run directory (lock.h), so there cannot be two. */
	if (getppid() != l->parent)
		_exit(127);
	(void)execvpe(l->argv[0], l->argv, l->env);
	child_fail(l, CHILD_EXEC, errno);
}

static int set_child_error(const struct child_report *report, const struct launch *l, struct str id,
			   struct err *err)
{
	switch (report->step) {
	case CHILD_ENTER:
		return err_set(err, report->code,
			       PRI_STR ": cannot enter its cgroup or set its CPUs: %s", FMT_STR(id),
			       strerror(report->code));
	case CHILD_CHDIR:
		return err_set(err, report->code, PRI_STR ": %s: %s", FMT_STR(id), l->workdir,
			       strerror(report->code));
	case CHILD_EXEC:
		break;
	}
	return err_set(err, report->code, PRI_STR ": cannot run %s: %s", FMT_STR(id), l->argv[0],
		       strerror(report->code));
}

/* End of file means that exec succeeded: exec closed the last writing end. So when this returns,
 * the process is in its cgroup and its mark can be read. */
static bool read_report(int fd, struct child_report *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*ret);
}

static int launch(struct launch *l, struct str id, pid_t *ret, struct err *err)
{
	AUTO_CLOSE int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct child_report report;
	int ends[2];
	pid_t pid;

	if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, PRI_STR ": start: %s", FMT_STR(id), strerror(errno));
	l->null_fd = null_fd;
	l->report_fd = ends[1];
	l->parent = getpid();
	pid = fork();
	if (pid == 0)
		child_main(l);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return err_set(err, errno, PRI_STR ": fork: %s", FMT_STR(id), strerror(errno));
	}
	if (read_report(ends[0], &report)) {
		(void)close(ends[0]);
		(void)waitpid(pid, NULL, 0);
		return set_child_error(&report, l, id, err);
	}
	(void)close(ends[0]);
	*ret = pid;
	return 0;
}

int process_start(const struct local_container *c, const struct process_settings *s, pid_t *ret,
		  struct err *err)
{
	struct launch l = { .settings = s };
	struct arena a;
	int r;

	arena_init(&a, 0);
	l.argv = copy_strings(c->argv, c->n_argv, &a);
	l.env = build_environment(c, s->mark, &a);
	l.workdir = str_cstr(&a, c->workdir);
	r = launch(&l, local_container_id(c, &a), ret, err);
	arena_done(&a);
	return r;
}

/* --- finding processes --- */

/* Finds a mark with the prefix in /proc/PID/environ, which is NUL-separated. Only the first
 * variable of that name counts: it is the one that build_environment() wrote. */
static bool find_mark(struct str environment, struct str prefix, struct str *ret)
{
	struct str_split split = str_split(environment);
	struct str item;

	while (str_next(&split, '\0', &item)) {
		if (!str_starts(item, STR(PROCESS_MARK "=")))
			continue;
		item = str_skip(item, sizeof(PROCESS_MARK "=") - 1);
		if (!str_starts(item, prefix))
			return false;
		*ret = str_skip(item, prefix.n);
		return true;
	}
	return false;
}

static bool read_mark(int proc_fd, pid_t pid, struct str prefix, struct arena *a, struct str *ret)
{
	const struct timespec pause_1ms = { .tv_nsec = 1000000 };
	struct proc_stat stat;
	struct str text;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/environ", (int)pid);
	for (int round = 0; round < EXEC_ROUNDS; round++) {
		if (file_read_at(proc_fd, path, ENVIRONMENT_MAX, a, &text, NULL) < 0)
			return false; /* it has ended, or belongs to another user */
		if (text.n > 0 && find_mark(text, prefix, ret))
			return proc_stat(proc_fd, pid, a, &stat) && !stat.is_zombie;
		/* Kernel threads and zombies have no environment, and a process has none for a
		 * short time during exec. */
		if (text.n > 0 || !proc_stat(proc_fd, pid, a, &stat) || stat.is_zombie ||
		    stat.is_kernel)
			return false;
		(void)nanosleep(&pause_1ms, NULL);
	}
	return false;
}

int process_open_proc(struct err *err)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_set(err, errno, "open /proc: %s", strerror(errno)) : fd;
}

int process_list(struct str prefix, struct arena *a, struct process_mark **ret, size_t *ret_n,
		 struct err *err)
{
	AUTO_CLOSE int proc = process_open_proc(err);
	CLEANUP(arena_done) struct arena scratch;
	struct process_mark *marks;
	size_t n, found = 0;
	struct str id;
	pid_t *pids;
	int r;

	arena_init(&scratch, 0);
	r = proc < 0 ? proc : proc_list(proc, a, &pids, &n, err);
	if (r < 0)
		return r;
	marks = arena_array(a, struct process_mark, n);
	for (size_t i = 0; i < n; i++) {
		arena_reset(&scratch);
		if (pids[i] != getpid() && read_mark(proc, pids[i], prefix, &scratch, &id))
			marks[found++] = (struct process_mark){ pids[i], str_dup(a, id) };
	}
	*ret = marks;
	*ret_n = found;
	return 0;
}

pid_t process_root(const pid_t *pids, size_t n)
{
	AUTO_CLOSE int proc = process_open_proc(NULL);
	CLEANUP(arena_done) struct arena a;
	struct proc_stat stat;

	arena_init(&a, 0);
	for (size_t i = 0; proc >= 0 && i < n; i++) {
		bool is_root = proc_stat(proc, pids[i], &a, &stat) && stat.parent > 0;

		for (size_t k = 0; is_root && k < n; k++)
			is_root = pids[k] != stat.parent;
		if (is_root)
			return pids[i];
	}
	return 0;
}

/* --- affinity --- */

/* A struct cpuset in the kernel's format. */
union affinity {
	cpu_set_t set;
	struct cpuset cpus;
};
_Static_assert(sizeof(unsigned long) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "a cpuset has the layout of the kernel's mask");

static int list_threads(pid_t pid, struct arena *a, struct str **ret, size_t *ret_n,
			struct err *err)
{
	char path[40];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	r = file_list_at(AT_FDCWD, path, a, ret, ret_n, err);
	if (r == -ENOENT)
		return err_set(err, ESRCH, "process %d has ended", (int)pid);
	return r;
}

int process_pin_self(const struct cpuset *cpus)
{
	union affinity wanted = { .cpus = *cpus };

	return sched_setaffinity(0, sizeof(wanted.cpus), &wanted.set) < 0 ? -errno : 0;
}

int process_free_affinity(void)
{
	union affinity all;

	memset(&all, 0xff, sizeof(all));
	return sched_setaffinity(0, sizeof(all.cpus), &all.set) < 0 ? -errno : 0;
}

/* Thread by thread: despite its parameter "pid", sched_setaffinity() changes one thread. */
int process_pin(pid_t pid, const struct cpuset *cpus, struct arena *a, struct err *err)
{
	union affinity wanted = { .cpus = *cpus };
	bool changed = false;
	struct str *tids;
	size_t n;
	int r;

	r = list_threads(pid, a, &tids, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		union affinity current = { .cpus = { { 0 } } };
		uint64_t tid;

		if (!str_to_u64(tids[i], INT32_MAX, &tid) ||
		    sched_getaffinity((pid_t)tid, sizeof(current.cpus), &current.set) < 0 ||
		    cpuset_eq(&current.cpus, cpus))
			continue;
		if (sched_setaffinity((pid_t)tid, sizeof(wanted.cpus), &wanted.set) == 0)
			changed = true;
		else if (errno != ESRCH)
			r = err_set(err, errno, "process %d: cannot set its CPUs: %s", (int)pid,
				    strerror(errno));
	}
	return r < 0 ? r : changed;
}

int process_allowed_cpus(struct cpuset *ret, struct err *err)
{
	union affinity before = { .cpus = { { 0 } } }, most = { .cpus = { { 0 } } };

	if (sched_getaffinity(0, sizeof(before.cpus), &before.set) < 0)
		return err_set(err, errno, "own CPU affinity: %s", strerror(errno));
	/* The supervisor's own mask may be smaller than its cpuset (taskset, CPUAffinity= of
	 * systemd). The kernel reports the limit only as the result of requesting all CPUs. */
	most = before;
	if (process_free_affinity() == 0) {
		(void)sched_getaffinity(0, sizeof(most.cpus), &most.set);
		(void)sched_setaffinity(0, sizeof(before.cpus), &before.set);
	}
	*ret = most.cpus;
	return 0;
}
