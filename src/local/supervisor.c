/* The loop of the supervisor. Signals, requests and the end of processes are all descriptors of one
 * poll() (signalfd, socket, pidfd), so no handler runs at any other time. */

#include "supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/problems.h"
#include "control.h"
#include "local_plan.h"
#include "profile/manifests.h"

enum { POLL_SIGNAL, POLL_CONTROL, POLL_FIXED };

/* A client whose request is in progress. */
struct client {
	int fd; /* -1: none */
	int status;
	struct str text; /* in `memory` */
	struct arena memory;
};

struct supervisor {
	const struct supervisor_settings *settings;
	struct local_node node;
	struct str dir; /* in `memory` */
	struct arena memory;
	int signal_fd, control_fd;
	struct client apply, down;
	bool is_ending, is_going_down;
};

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct str local_plan_report(const struct local_plan *plan, const struct problem_list *p,
			     struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < plan->n_notes; i++)
		strbuf_printf(&b, PRI_STR "/" PRI_STR ": note: " PRI_STR "\n",
			      FMT_STR(plan->notes[i].namespace), FMT_STR(plan->notes[i].pod),
			      FMT_STR(plan->notes[i].text));
	for (size_t i = 0; i < plan->n_refusals; i++)
		strbuf_printf(&b, PRI_STR "/" PRI_STR ": refused: " PRI_STR "\n",
			      FMT_STR(plan->refusals[i].namespace), FMT_STR(plan->refusals[i].pod),
			      FMT_STR(plan->refusals[i].text));
	strbuf_add(&b, problem_list_format(p, a));
	return strbuf_str(&b);
}

/* Reads and applies the directory. Returns an exit status; *ret_text, in `a`, is the report. */
static int apply(struct supervisor *s, const char *dir, struct arena *a, struct local_plan *ret,
		 struct str *ret_text)
{
	struct manifests manifests;
	struct problem_list p;
	struct err err = { 0 };
	struct arena with;
	int r;

	arena_init(&with, 0);
	problem_list_init(&p, a);
	manifests_init(&manifests, &with);
	r = s->settings->read(dir, &manifests, &p, &err);
	if (r < 0)
		problem_error(&p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	else if (!p.n_errors)
		r = local_node_apply(&s->node, &with, &manifests, now_ms(), ret, &p);
	/* Before `with`, which holds the file names, is freed. */
	*ret_text = local_plan_report(ret, &p, a);
	arena_done(&with);
	if (r < 0 || p.n_errors)
		return 2;
	return ret->n_refusals ? 1 : 0;
}

static void respond(struct client *client)
{
	if (client->fd >= 0)
		control_respond(client->fd, client->status, client->text);
	client->fd = -1;
	arena_reset(&client->memory);
}

/* The response follows when removed containers have ended: then the kernel matches the plan. So at
 * most one client waits here, and a second one is refused. */
static void on_apply(struct supervisor *s, struct str dir, int fd)
{
	struct client *client = &s->apply;
	struct local_plan plan = { 0 };

	client->fd = fd;
	client->status =
		apply(s, str_cstr(&client->memory, dir), &client->memory, &plan, &client->text);
	if (client->status >= 2)
		respond(client);
	else if (!str_eq(s->dir, dir)) /* a later `apply` without a directory and SIGHUP use it */
		s->dir = str_dup(&s->memory, dir);
}

/* Asynchronous: run_loop() ends when the last process has ended, and finish() responds. */
static void begin_down(struct supervisor *s)
{
	s->is_going_down = s->is_ending = true;
	local_node_stop(&s->node, now_ms());
}

static void on_request(struct supervisor *s)
{
	static char buf[CONTROL_MAX]; /* one thread, one request at a time */
	struct str request;
	int client;

	if (control_accept(s->control_fd, buf, &request, &client) < 0)
		return;
	if (s->down.fd >= 0) {
		control_respond(client, 2, STR("the machine is being stopped\n"));
	} else if (str_eq(request, STR("down"))) {
		s->down.fd = client;
		begin_down(s);
	} else if (s->apply.fd >= 0) {
		control_respond(client, 2, STR("another apply is in progress\n"));
	} else if (str_starts(request, STR("apply "))) {
		on_apply(s, str_skip(request, sizeof("apply ") - 1), client);
	} else if (str_eq(request, STR("apply"))) {
		on_apply(s, s->dir, client);
	} else {
		control_respond(client, 2, STR("unknown request\n"));
	}
}

static void on_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;
	struct local_plan plan = { 0 };
	struct str text;
	struct arena a;

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
	    info.ssi_signo == SIGCHLD) /* only wakes the loop, which reaps orphans */
		return;
	if (info.ssi_signo != SIGHUP) {
		s->is_ending = true;
		if (s->settings->down_at_end && !s->is_going_down)
			begin_down(s);
		return;
	}
	arena_init(&a, 0);
	(void)apply(s, str_cstr(&a, s->dir), &a, &plan, &text);
	s->settings->on_report(text);
	arena_done(&a);
}

/* poll() takes an int. Waking up after a minute is harmless: the loop computes the rest. */
static int timeout_until(int64_t at_ms)
{
	int64_t wait;

	if (at_ms == INT64_MAX)
		return -1;
	wait = at_ms - now_ms();
	return wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait;
}

/* Waits for one event and handles it. */
static void poll_once(struct supervisor *s, int64_t until_ms)
{
	size_t n = s->node.n;
	struct pollfd *fds = calloc(POLL_FIXED + n, sizeof(*fds));

	if (!fds)
		abort(); /* D21 */
	fds[POLL_SIGNAL] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[POLL_CONTROL] = (struct pollfd){ .fd = s->control_fd, .events = POLLIN };
	/* A run without a process has pid_fd -1, which poll() ignores. */
	for (size_t i = 0; i < n; i++)
		fds[POLL_FIXED + i] =
			(struct pollfd){ .fd = s->node.runs[i].pid_fd, .events = POLLIN };
	(void)poll(fds, POLL_FIXED + n, timeout_until(until_ms));
	for (size_t i = 0; i < n; i++)
		if (fds[POLL_FIXED + i].revents)
			local_node_ended(&s->node, &s->node.runs[i], now_ms());
	/* Last, because both may replace the runs that `fds` was built from. */
	if (fds[POLL_SIGNAL].revents)
		on_signal(s);
	if (fds[POLL_CONTROL].revents)
		on_request(s);
	free(fds);
}

static int open_signals(int *ret, struct err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (getpid() == 1) /* orphans have no pidfd here */
		(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL); /* else the default action ends the process */
	*ret = signalfd(-1, &set, SFD_CLOEXEC);
	if (*ret < 0)
		return err_set(err, errno, "signalfd: %s", strerror(errno));
	return 0;
}

static int finish(struct supervisor *s, struct err *err)
{
	int r = 0;

	respond(&s->apply);
	if (s->is_going_down)
		r = local_node_destroy(&s->node, err);
	else
		control_unlink(s->settings->node.run_dir);
	/* Last, so that `down` returns when everything is removed. */
	s->down.status = r < 0 ? 2 : 0;
	s->down.text = r < 0 ? str_from(err->msg) : STR("");
	respond(&s->down);
	return r;
}

static void run_loop(struct supervisor *s)
{
	while (!s->is_ending || (s->is_going_down && !local_node_is_idle(&s->node))) {
		int64_t until_ms = local_node_step(&s->node, now_ms(), s->settings->on_failure);

		if (local_node_has_converged(&s->node))
			respond(&s->apply);
		poll_once(s, until_ms);
		local_node_reap_orphans(&s->node);
	}
}

static int start_and_run(struct supervisor *s, struct err *err)
{
	struct local_plan plan = { 0 };
	struct str text;
	struct arena a;
	int outcome, r = 0;

	arena_init(&a, 0);
	/* The first plan locks the run directory, which control_listen() requires. */
	outcome = apply(s, str_cstr(&a, s->dir), &a, &plan, &text);
	if (outcome < 2)
		r = control_listen(s->settings->node.run_dir, &s->control_fd, err);
	if (outcome < 2 && r >= 0) /* so that containers run when `up -d` returns */
		(void)local_node_step(&s->node, now_ms(), s->settings->on_failure);
	if (r >= 0)
		s->settings->on_ready(&s->node, &plan, text, outcome);
	arena_done(&a);
	if (r < 0 || outcome == 2)
		return r < 0 ? r : -EINVAL;
	run_loop(s);
	return finish(s, err);
}

int supervisor_run(const struct supervisor_settings *settings, struct err *err)
{
	struct supervisor s = { .settings = settings,
				.signal_fd = -1,
				.control_fd = -1,
				.apply = { .fd = -1 },
				.down = { .fd = -1 } };
	int r;

	r = control_check(settings->node.run_dir, err);
	if (r >= 0)
		r = local_node_open(&s.node, &settings->node, err);
	if (r < 0)
		return r;
	arena_init(&s.memory, 0);
	arena_init(&s.apply.memory, 0);
	arena_init(&s.down.memory, 0);
	s.dir = str_dup(&s.memory, str_from(settings->dir));
	r = open_signals(&s.signal_fd, err);
	if (r >= 0)
		r = start_and_run(&s, err);
	if (s.signal_fd >= 0)
		(void)close(s.signal_fd);
	if (s.control_fd >= 0)
		(void)close(s.control_fd);
	local_node_done(&s.node);
	arena_done(&s.apply.memory);
	arena_done(&s.down.memory);
	arena_done(&s.memory);
	return r;
}
