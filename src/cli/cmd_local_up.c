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
#include "input.h"
#include "local/local_plan.h"
#include "local/supervisor.h"
#include "local_common.h"
#include "output.h"

static const struct command_example examples[] = {
	{ "pinfold local up examples/local", "run the pods of a directory until interrupted" },
	{ "pinfold local up -d examples/local && pinfold local map", "in the background" },
	{ 0 },
};

/* Where the parent of a detached supervisor waits to hear how it went; -1 in the foreground. */
static int ready_fd = -1;
static bool was_refused, is_ready;

static int read_directory(const char *dir, struct manifests *ret, struct problem_list *p,
			  struct err *err)
{
	return input_read(ret, dir, p, err);
}

static void on_failure(const struct err *err)
{
	log_warning("failed, trying again", LOG_ERR(err));
}

static void tell(int fd, struct str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);

		if (n <= 0 && errno != EINTR)
			return;
		text = str_skip(text, n > 0 ? (size_t)n : 0);
	}
}

static void on_report(struct str text)
{
	tell(STDERR_FILENO, text);
}

static struct str summary(const struct local_node *node, const struct local_plan *plan,
			  struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "%zu container%s by %s\n", plan->n, plan->n == 1 ? "" : "s",
		      local_mode_name(node->cgroup.mode));
	if (node->cgroup_error.code)
		strbuf_printf(&b,
			      "notice: CPU affinity only, so weights and quotas are not enforced "
			      "(%s)\n",
			      node->cgroup_error.msg);
	strbuf_add(&b, local_table(plan->containers, NULL, NULL, plan->n, a));
	return strbuf_str(&b);
}

static void on_ready(const struct local_node *node, const struct local_plan *plan,
		     struct str report, int outcome)
{
	AUTO_CLOSE int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct arena a;

	arena_init(&a, 0);
	tell(STDERR_FILENO, report);
	was_refused = outcome == 2;
	if (outcome < 2)
		tell(STDOUT_FILENO, summary(node, plan, &a));
	if (ready_fd >= 0 && outcome < 2) { /* else detached_child() tells */
		char status = (char)('0' + outcome);

		(void)dup2(null_fd, STDIN_FILENO);
		(void)dup2(node->log_fd, STDOUT_FILENO);
		(void)dup2(node->log_fd, STDERR_FILENO);
		tell(ready_fd, (struct str){ &status, 1 });
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

	if (r < 0 && was_refused) /* on_ready printed why */
		return err_set(err, EINVAL, "refused; nothing was changed");
	return r;
}

/* Tells the parent '0', '1', or '2' and what is wrong. Shares its terminal until it is ready. */
__attribute__((noreturn)) static void detached_child(const struct local_options *o, const char *dir,
						     struct arena *a)
{
	struct err err = { 0 };

	(void)setsid();
	if (supervise(o, dir, &err) >= 0)
		_exit(EXIT_YES);
	if (was_refused || !is_ready)
		tell(ready_fd, str_printf(a, "2%s", err.msg));
	else
		log_error("ended", LOG_ERR(&err));
	_exit(EXIT_BAD);
}

static int detach(const struct local_options *o, const char *dir, struct arena *a, struct err *err)
{
	struct str said;
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
	(void)close(ends[1]);
	r = file_read_fd(ends[0], "the detached supervisor", sizeof(err->msg) + 1, a, &said, err);
	(void)close(ends[0]);
	if (r < 0)
		return r;
	if (!said.n)
		return err_set(err, EPIPE, "the supervisor ended before it was ready");
	if (said.p[0] != '2')
		return said.p[0] - '0';
	return err_set(err, EINVAL, PRI_STR, FMT_STR(str_skip(said, 1)));
}

static int run(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	char *dir;
	int r;

	local_options_fill(o, inv->arena);
	if (inv->args.n != 1)
		return err_set(err, EINVAL, "name one directory of manifests");
	dir = realpath(inv->args.items[0], NULL);
	if (!dir)
		return err_set(err, errno, "%s: %s", inv->args.items[0], strerror(errno));
	r = o->detach ? detach(o, dir, inv->arena, err) : supervise(o, dir, err);
	free(dir);
	return r;
}

const struct command cmd_local_up = {
	.name = "local up",
	.group = COMMAND_TOOL,
	.summary = "run a directory of pods on this machine, each on its CPUs",
	.operands = "DIR",
	.about = "DIR holds manifests: an Infrastructure, one PerformanceProfile, namespaces, pods "
		 "and\n"
		 "workloads. Every pod goes through admission, gets its CPUs from the same ledger "
		 "a\n"
		 "node's agent uses, and its containers' commands are started as processes on "
		 "them:\n"
		 "in cgroups of their own where the machine allows that, by CPU affinity "
		 "elsewhere.\n"
		 "Containers are restarted by their pod's restartPolicy.\n\n"
		 "In the foreground an interrupt takes everything down again. When pinfold is "
		 "killed\n"
		 "the processes stay, and the next 'local up' of the same name takes them over.",
	LOCAL_OPTIONS(LOCAL_DETACH, LOCAL_NAME, LOCAL_AFFINITY_ONLY),
	.examples = examples,
	.run = run,
};
