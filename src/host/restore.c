/* Units first get their former value by a call, which takes effect at once. Then the file that the
 * call left is removed, and systemd reads its configuration again. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "host_dirs.h"
#include "host_live.h"

#define RELOAD_TIMEOUT_MS 600000 /* a reload starts the generators, and reads every unit */

/* A unit that had no list of CPUs takes two steps: the kernel refuses to empty the cpuset of a
 * cgroup with processes, so it first gets all CPUs that the machine can have. Then the property is
 * cleared, which does not change the cpuset any more. */
enum restore_step { STEP_SET, STEP_CLEAR, STEP_RELOAD };

struct restoring {
	struct systemd_client client;
	struct loop loop;
	const struct host_settings *settings;
	const struct unit_original **units; /* those that exist */
	size_t n;
	struct cpuset possible;
	enum restore_step step;
	struct systemd_call *calls; /* of this step */
	struct arena *a;
	struct err err;
};

/* No list, or all CPUs, as after an earlier uninstallation. */
static bool is_unrestricted(const struct restoring *t, const struct unit_original *u)
{
	struct cpuset cpus;

	return !u->cpus.n || (cpuset_parse_kernel(u->cpus, &cpus, NULL) == 0 &&
			      cpuset_is_subset(&t->possible, &cpus));
}

static void start_set(struct restoring *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct cpuset *own = NULL;

		if (!is_unrestricted(t, t->units[i])) {
			own = arena_new(t->a, struct cpuset);
			*own = t->possible;
			(void)cpuset_parse_kernel(t->units[i]->cpus, own, NULL);
		}
		t->calls[i] = (struct systemd_call){ .method = SYSTEMD_SET_CPUS,
						     .unit = str_cstr(t->a, t->units[i]->name),
						     .cpus = own ? own : &t->possible };
	}
	t->step = STEP_SET;
	systemd_client_start(&t->client, t->calls, t->n);
}

static bool start_clear(struct restoring *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (is_unrestricted(t, t->units[i]))
			t->calls[n++] =
				(struct systemd_call){ .method = SYSTEMD_SET_CPUS,
						       .unit = str_cstr(t->a, t->units[i]->name) };
	t->step = STEP_CLEAR;
	if (n)
		systemd_client_start(&t->client, t->calls, n);
	return n > 0;
}

static bool remove_drop_in(const struct restoring *t, const struct unit_original *u)
{
	struct err err = { 0 };
	const int r = u->has_drop_in ?
			      0 :
			      host_remove_drop_in(t->settings->root, str_cstr(t->a, u->name), &err);

	/* Its list is empty by now, and it ends with the boot: not worth a failure. */
	if (r < 0)
		log_warning("cannot remove a file of systemd, leaving it", LOG_ERR(&err));
	return r > 0;
}

/* Only when files of systemd were removed, so that it forgets them. */
static bool start_reload(struct restoring *t)
{
	bool removed = false;

	for (size_t i = 0; i < t->n; i++)
		removed |= remove_drop_in(t, t->units[i]);
	t->step = STEP_RELOAD;
	t->calls[0] = (struct systemd_call){ .method = SYSTEMD_RELOAD };
	if (removed)
		systemd_client_start(&t->client, t->calls, 1);
	return removed;
}

static void keep_first(struct err *to, const struct err *problem)
{
	if (!to->code)
		*to = *problem;
}

static void on_done(struct systemd_client *c)
{
	struct restoring *t = container_of(c, struct restoring, client);

	keep_first(&t->err, &c->err);
	for (size_t i = 0; i < c->n; i++)
		keep_first(&t->err, &c->calls[i].err);
	if (!t->err.code && t->step == STEP_SET && start_clear(t))
		return;
	if (!t->err.code && t->step != STEP_RELOAD && start_reload(t))
		return;
	loop_stop(&t->loop);
}

static int read_possible(const char *root, struct cpuset *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	char path[4096];
	struct str text;
	int r;

	arena_init(&a, 0);
	(void)snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/possible", host_prefix(root));
	r = file_read_at(AT_FDCWD, path, 65536, &a, &text, NULL);
	if (r < 0) /* a container without that mount has it in its own */
		r = file_read_at(AT_FDCWD, "/sys/devices/system/cpu/possible", 65536, &a, &text,
				 err);
	return r < 0 ? r : cpuset_parse_kernel(text, ret, err);
}

/* The units that exist; of others, such as the slice of a session, only the file is removed. */
static void find_units(struct restoring *t, const struct originals *o)
{
	for (size_t i = 0; i < o->n_units; i++) {
		const struct unit_original *u = &o->units[i];
		const char *name = str_cstr(t->a, u->name);

		if (faccessat(t->settings->cgroups->cpuset_fd, name, F_OK, 0) == 0)
			t->units[t->n++] = u;
		else
			(void)remove_drop_in(t, u);
	}
}

static int restore_units(const struct host_settings *settings, const struct originals *o,
			 struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct restoring t = { .settings = settings, .a = &a };
	int r;

	arena_init(&a, 0);
	t.units = arena_array(&a, const struct unit_original *, o->n_units);
	t.calls = arena_array(&a, struct systemd_call, o->n_units + 1);
	find_units(&t, o);
	if (t.n == 0)
		return 0;
	r = read_possible(settings->root, &t.possible, err);
	if (r == 0)
		r = loop_init(&t.loop, err);
	if (r < 0)
		return r;
	systemd_client_init(&t.client, &t.loop, settings->root, on_done);
	t.client.timeout_ms = RELOAD_TIMEOUT_MS;
	start_set(&t);
	loop_run(&t.loop);
	loop_done(&t.loop);
	if (t.err.code)
		*err = t.err;
	return -t.err.code;
}

/* Each part is tried. */
static size_t restore_parts(const struct host_settings *settings, const struct host_dirs *dirs,
			    const struct originals *o)
{
	struct interrupts_result interrupts = { 0 };
	struct processes_result processes = { 0 };
	struct err problems[4] = { 0 };
	size_t failed = 0;

	(void)restore_units(settings, o, &problems[0]);
	if (dirs->proc >= 0)
		(void)processes_restore(dirs->proc, o, &processes, &problems[1]);
	if (o->n_irqs && dirs->irq < 0)
		(void)err_set(&problems[2], ENOENT, "%s/proc/irq cannot be opened",
			      host_prefix(settings->root));
	else if (o->n_irqs)
		(void)interrupts_restore(dirs->irq, o, &interrupts, &problems[2]);
	if (o->workqueue.n && dirs->workqueue < 0)
		(void)err_set(&problems[3], ENOENT,
			      "%s/sys/devices/virtual/workqueue cannot be opened",
			      host_prefix(settings->root));
	else if (o->workqueue.n)
		(void)workqueue_restore(dirs->workqueue, o, &problems[3]);
	for (size_t i = 0; i < ARRAY_LEN(problems); i++)
		if (problems[i].code) {
			log_warning("cannot restore the host", LOG_ERR(&problems[i]));
			failed++;
		}
	log_info("host restored", LOG_INT("units", o->n_units),
		 LOG_INT("interrupts", interrupts.n_written),
		 LOG_INT("refused", interrupts.n_refused), LOG_INT("threads", processes.n_moved));
	return failed;
}

bool host_has_record(const char *state_dir)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" ORIGINALS_FILE, state_dir);
	return access(path, F_OK) == 0;
}

int host_restore(const struct host_settings *settings, struct err *err)
{
	struct originals o;
	struct host_dirs dirs;
	size_t failed;
	int r;

	if (!host_has_record(settings->state_dir))
		return 0;
	r = host_dirs_open(&dirs, settings, err);
	if (r < 0)
		return r;
	r = originals_load(dirs.state, settings->boot_id, &o, err);
	if (r == 0 && o.has_applied) {
		failed = restore_parts(settings, &dirs, &o);
		r = failed ? err_set(err, EIO,
				     "%zu parts of the host could not be restored, run this again",
				     failed) :
			     1;
	}
	if (r >= 0) {
		const int removed = originals_remove(dirs.state, err);

		r = removed < 0 ? removed : r;
	}
	originals_done(&o);
	host_dirs_close(&dirs);
	return r;
}
