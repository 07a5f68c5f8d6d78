/* The foreground or background process that supervises the containers. In the background the parent
 * waits until the containers have started, so that its exit status is that of the start. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "command.h"
#include "local/local_plan.h"
#include "local/supervisor.h"
#include "local_common.h"
#include "manifest_paths.h"
#include "output.h"

static const struct command_example examples[] = {
	{ "pinfold local up examples/local", "run the pods of a directory until interrupted" },
	{ "pinfold local up -d examples/local && pinfold local map", "in the background" },
	{ 0 },
};

/* Write end of the pipe on which the parent of a detached supervisor waits for the outcome of the
 * start; -1 in the foreground. */
static int ready_fd = -1;
/* What on_ready() found out; callbacks of the supervisor have no argument for it. */
static bool was_refused, is_ready;

static int read_directory(const char *dir, struct manifests *ret, struct problem_list *p,
			  struct err *err)
{
	const struct option_list paths = { &dir, 1 };

	return manifests_read(ret, &paths, p, err);
}

static void on_failure(const struct err *err)
{
	log_warning("cannot start, move or save a container, retrying", LOG_ERR(err));
}

static void on_report(struct str text)
{
	(void)file_write_fd(STDERR_FILENO, text);
}

static struct str summary(const struct local_node *node, const struct local_plan *plan,
			  struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "%zu container%s, %s\n", plan->n, plan->n == 1 ? "" : "s",
		      local_mode_name(node->cgroup.mode));
	if (node->cgroup_error.code)
		strbuf_printf(&b,
			      "notice: CPU affinity only: weights and quotas are not enforced "
			      "(%s)\n",
			      node->cgroup_error.msg);
	strbuf_add(&b, local_table(&(struct local_machine){ .containers = plan->containers,
							    .n = plan->n },
				   a));
	return strbuf_str(&b);
}

static void on_ready(const struct local_node *node, const struct local_plan *plan,
		     struct str report, int outcome)
{
	AUTO_CLOSE int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct arena a;

	arena_init(&a, 0);
	(void)file_write_fd(STDERR_FILENO, report);
	was_refused = outcome == 2;
	if (outcome < 2)
		(void)file_write_fd(STDOUT_FILENO, summary(node, plan, &a));
	if (ready_fd >= 0 && outcome < 2) { /* detached_child() reports failures */
		char status = (char)('0' + outcome);

		/* From here on the terminal may go away. The parent is notified last, so that
		 * nothing appears on its terminal after it has ended. */
		(void)dup2(null_fd, STDIN_FILENO);
		(void)dup2(node->log_fd, STDOUT_FILENO);
		(void)dup2(node->log_fd, STDERR_FILENO);
		(void)file_write_fd(ready_fd, (struct str){ &status, 1 });
		(void)close(ready_fd);
		is_ready = true;
	}
	arena_done(&a);
}

static int supervise(const struct local_options *o, const char *dir, struct err *err)
{
	struct supervisor_settings s = {
		.node = { .name = o->name,
			  .run_dir = o->run_dir,
			  .topology = o->topology,
			  .affinity_only = o->affinity_only },
		.dir = dir,
		.read = read_directory,
		.down_at_end = !o->detach,
		.on_ready = on_ready,
		.on_report = on_report,
		.on_failure = on_failure,
	};
	int r = supervisor_run(&s, err);

	if (r < 0 && was_refused) /* on_ready() printed the reasons */
		return err_set(err, EINVAL, "refused, nothing was changed");
	return r;
}

/* Sends the exit status to the parent as a digit, with the error behind a '2'. Keeps the parent's
 * terminal until it is ready. */
__attribute__((noreturn)) static void detached_child(const struct local_options *o, const char *dir,
						     struct arena *a)
{
	struct err err = { 0 };

	/* Otherwise an interrupt typed at the terminal would stop the supervisor. */
	(void)setsid();
	if (supervise(o, dir, &err) >= 0)
		_exit(EXIT_YES);
	if (was_refused || !is_ready)
		(void)file_write_fd(ready_fd, str_printf(a, "2%s", err.msg));
	else
		log_error("supervisor stopped", LOG_ERR(&err));
	_exit(EXIT_BAD);
}

static int detach(const struct local_options *o, const char *dir, struct arena *a, struct err *err)
{
	struct str report;
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return err_set(err, errno, "fork: %s", strerror(errno));
	if (pid == 0) {
		(void)close(ends[0]);
		ready_fd = ends[1];
		detached_child(o, dir, a);
	}
	/* The parent's copy; with it open, the end of the child would not end the read. */
	(void)close(ends[1]);
	r = file_read_fd(ends[0], "the detached supervisor", sizeof(err->msg) + 1, a, &report, err);
	(void)close(ends[0]);
	if (r < 0)
		return r;
	if (!report.n)
		return err_set(err, EPIPE, "the supervisor stopped before it was ready");
	if (report.p[0] != '2')
		return report.p[0] - '0';
	return err_set(err, EINVAL, PRI_STR, FMT_STR(str_skip(report, 1)));
}

static int run(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	const char *given;
	char *dir;
	int r;

	local_options_fill(o, inv->arena);
	r = local_directory(inv, false, &given, err);
	if (r < 0)
		return r;
	dir = realpath(given, NULL);
	if (!dir)
		return err_set(err, errno, "%s: %s", given, strerror(errno));
	r = o->detach ? detach(o, dir, inv->arena, err) : supervise(o, dir, err);
	free(dir);
	return r;
}

const struct command cmd_local_up = {
	.name = "local up",
	.group = COMMAND_TOOL,
	.summary = "run the pods of a directory on this machine, each on its CPUs",
	.operands = "DIR",
	.about =
		"DIR contains manifests: an Infrastructure, one PerformanceProfile, namespaces, "
		"pods "
		"and\n"
		"workloads. Every pod passes admission and gets its CPUs from the same ledger that "
		"a\n"
		"node's agent uses. The commands of its containers run as processes on these CPUs: "
		"in\n"
		"cgroups where they are writable, otherwise by CPU affinity. Containers are "
		"restarted\n"
		"according to the restartPolicy of their pod.\n\n"
		"In the foreground an interrupt stops everything. If pinfold is killed, the "
		"processes\n"
		"continue, and the next 'local up' of the same name adopts them.",
	LOCAL_OPTIONS(LOCAL_FILES, LOCAL_DETACH, LOCAL_NAME, LOCAL_AFFINITY_ONLY),
	.examples = examples,
	.run = run,
};
