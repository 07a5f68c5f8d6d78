/* Order of a change: record what was there and which restart will be owed, write the files, request
 * the restart. An agent that ends in between finds the restart in the record. A restart is done
 * when systemd has given the unit another invocation ID, also when another program requested it. */

#include "files_follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/macro.h"
#include "distro/distro.h"
#include "files_apply.h"
#include "files_seen.h"
#include "host_files_read.h"

#define CHECK_TICKS 30 /* between two checks of all files */
#define FULL_TICKS 600 /* between two checks without a known change */
#define BUSY_TICKS 2
#define RETRY_TICKS 60 /* of what systemd was asked for */

static void set_problem(struct files_follow *f, const struct err *problem)
{
	if (f->problem.code == problem->code && strcmp(f->problem.msg, problem->msg) == 0)
		return;
	if (problem->code)
		log_warning("cannot configure host files, retrying", LOG_ERR(problem));
	f->problem = *problem;
}

/* --- facts --- */

/* The unit that runs now: a server of k3s has another one than an agent. */
static struct str running_unit(const struct files_settings *s, const char *const *units, size_t n,
			       struct arena *a)
{
	for (size_t i = 0; i < n; i++)
		if (units[i] && host_unit_invocation(s->root, str_from(units[i]), a).n)
			return str_from(units[i]);
	return STR("");
}

static void find_units(const struct files_follow *f, const struct files_input *in,
		       struct host_facts *facts, struct arena *a)
{
	const struct distro *d = f->settings.distro;
	const struct distro crio = distro_on_crio(d);
	const char *runtime = in->has_crio ? crio.runtime_unit : d->runtime_unit;

	facts->units[HOST_FILE_KUBELET] =
		running_unit(&f->settings, d->kubelet_units, ARRAY_LEN(d->kubelet_units), a);
	facts->units[HOST_FILE_RUNTIME] = running_unit(&f->settings, &runtime, 1, a);
}

static void find_owed(const struct files_follow *f, struct files_record *record,
		      struct host_facts *facts)
{
	for (size_t i = 0; i < HOST_FILE_CLASS__COUNT; i++) {
		struct owed_restart *owed = &record->owed[i];

		if (!owed->unit.n)
			continue;
		facts->owes_restart[i] =
			str_eq(owed->invocation,
			       host_unit_invocation(f->settings.root, owed->unit, record->a));
		if (facts->owes_restart[i])
			continue;
		log_info("unit was restarted with its new files", LOG_STR("unit", owed->unit));
		*owed = (struct owed_restart){ 0 };
		record->is_changed = true;
	}
	facts->owes_reboot = str_eq(record->reboot_owed, record->boot_id);
}

/* Calls that systemd has answered are owed no more. */
static void find_answer(struct files_follow *f, struct files_record *record)
{
	struct str_split split = str_split(record->systemd_owed);
	struct str line;

	if (!f->n_answered)
		return;
	for (size_t i = 0; i < f->n_answered; i++)
		(void)str_next(&split, '\n', &line);
	record->systemd_owed = split.rest;
	record->is_changed = true;
	f->n_answered = 0;
	f->next_units = 0; /* more than fit into one batch */
}

static void find_boot(const struct files_follow *f, const struct host_files *files,
		      struct files_record *record, struct host_facts *facts)
{
	const struct files_settings *s = &f->settings;
	struct arena *a = record->a;
	const struct str applied = host_file_content(s->root, HOST_KERNEL_ARGS_APPLIED, a);
	struct str cmdline = host_file_content(s->root, "/proc/cmdline", a);

	if (!cmdline.n) /* of the same kernel */
		cmdline = host_file_content("/", "/proc/cmdline", a);
	facts->missing_args = host_missing_args(files->kernel_args, cmdline, a);
	facts->has_applied_args = applied.n > 0;
	facts->has_boot_loader = files->kernel_args.n && str_eq(applied, files->kernel_args);
	if (facts->has_boot_loader && !str_eq(record->loader_args, files->kernel_args)) {
		record->loader_args = files->kernel_args;
		record->loader_boot = record->boot_id;
		record->is_changed = true;
	}
	if (!applied.n && record->loader_args.n) {
		record->loader_args = record->loader_boot = STR("");
		record->is_changed = true;
	}
	facts->was_rebooted = facts->has_boot_loader &&
			      !str_eq(record->loader_boot, record->boot_id);
}

/* --- acting --- */

static void on_systemd_done(struct systemd_client *c)
{
	struct files_follow *f = container_of(c, struct files_follow, systemd);
	struct err problem = c->err;

	for (size_t i = 0; i < f->n_calls && !problem.code; i++)
		problem = f->calls[i].err;
	f->n_calls = 0;
	f->n_answered = problem.code ? 0 : f->n_asked;
	f->n_asked = 0;
	set_problem(f, &problem);
	f->next_check = f->n_ticks + BUSY_TICKS;
}

static void request(struct files_follow *f, enum systemd_method method, const char *unit)
{
	if (f->n_calls < FILES_CALLS_MAX)
		f->calls[f->n_calls++] = (struct systemd_call){ .method = method, .unit = unit };
}

static bool is_time(struct files_follow *f, uint64_t *next)
{
	if (f->n_ticks < *next)
		return false;
	*next = f->n_ticks + RETRY_TICKS;
	return true;
}

static int restart(struct files_follow *f, const struct host_files *files,
		   const struct host_facts *facts, enum host_file_class class,
		   struct files_record *record, struct err *err)
{
	const struct str unit = facts->units[class];
	int r;

	if (f->changes.writes[class]) {
		record->owed[class] = (struct owed_restart){
			unit, host_unit_invocation(f->settings.root, unit, record->a)
		};
		record->is_changed = true;
		r = host_files_write(f->settings.root, f->settings.state_dir, files, class, record,
				     err);
		if (r < 0)
			return r;
	}
	if (!is_time(f, &f->next_restart))
		return 0;
	if (class == HOST_FILE_KUBELET) {
		r = files_forget_kubelet_state(&f->settings, files->kubelet_is_static, record->a,
					       err);
		if (r < 0)
			return r;
	}
	log_info("restarting a unit as granted", LOG_STR("unit", unit));
	request(f, SYSTEMD_RELOAD, NULL); /* a drop-in of the unit may have changed */
	request(f, SYSTEMD_RESTART, str_cstr(&f->arena, unit));
	return 0;
}

/* What disturbs nothing. */
static int write_quiet(struct files_follow *f, const struct host_files *files,
		       struct files_record *record, struct err *err)
{
	bool *writes = f->changes.writes;
	int r = 0;

	if (!writes[HOST_FILE_QUIET] && !writes[HOST_FILE_BOOT])
		return 0;
	/* Units that are removed before they have run once need no reboot any more. */
	if (writes[HOST_FILE_BOOT])
		record->reboot_owed = files->has_profile ? record->boot_id : STR("");
	record->systemd_owed = files_unit_calls(files, record->systemd_owed, &f->arena);
	record->is_changed = true;
	f->next_units = 0;
	for (enum host_file_class c = 0; c < HOST_FILE_CLASS__COUNT && r == 0; c++)
		if ((c == HOST_FILE_QUIET || c == HOST_FILE_BOOT) && writes[c])
			r = host_files_write(f->settings.root, f->settings.state_dir, files, c,
					     record, err);
	if (r < 0)
		return r;
	log_info("host files written");
	return 0;
}

/* Until systemd has answered all of them without an error: the files are as wanted then, and
 * nothing else would tell that a unit is not enabled. */
static void request_owed(struct files_follow *f, const struct files_record *record)
{
	/* A restart, the boot loader and a reboot may follow. */
	const size_t max = FILES_CALLS_MAX - HOST_FILE_CLASS__COUNT - 2;

	if (!record->systemd_owed.n || !f->settings.may_write || !is_time(f, &f->next_units))
		return;
	f->n_asked = files_parse_calls(record->systemd_owed, f->calls, max, &f->arena);
	f->n_calls = f->n_asked;
}

static void use_boot_loader(struct files_follow *f)
{
	const struct host_changes *c = &f->changes;

	if ((c->updates_boot_loader || c->undoes_boot_loader) && is_time(f, &f->next_boot_loader))
		request(f, SYSTEMD_START,
			c->undoes_boot_loader ? HOST_KERNEL_ARGS_UNDO : HOST_KERNEL_ARGS_UPDATE);
	if (c->reboots && is_time(f, &f->next_reboot)) {
		log_warning("rebooting as granted");
		request(f, SYSTEMD_REBOOT, "reboot.target");
	}
}

static int act(struct files_follow *f, const struct host_files *files,
	       const struct host_facts *facts, struct files_record *record, struct err *err)
{
	int r = write_quiet(f, files, record, err);

	if (r == 0)
		request_owed(f, record);
	for (enum host_file_class c = 0; c < HOST_FILE_CLASS__COUNT && r == 0; c++)
		if (f->changes.restarts[c])
			r = restart(f, files, facts, c, record, err);
	if (r == 0)
		r = files_put_sentinel(f->settings.root, f->changes.leaves_sentinel, record->a,
				       err);
	if (r == 0)
		use_boot_loader(f);
	return r;
}

/* --- check --- */

static int decide(struct files_follow *f, const struct files_input *in, struct host_files *files,
		  struct files_record *record, struct host_facts *facts, struct err *err)
{
	const struct host_files_source source = { .profile = in->profile,
						  .topology = in->topology,
						  .distro = f->settings.distro,
						  .has_crio = in->has_crio,
						  .kubelet_is_static =
							  f->settings.kubelet_is_static };
	int r;

	r = files_record_load(f->settings.state_dir, f->settings.boot_id, &f->arena, record, err);
	if (r == 0)
		r = host_files_build(&source, &f->arena, files, err);
	if (r < 0)
		return r;
	host_files_choose_tuned(f->settings.root, files);
	host_files_add_originals(files, record);
	host_files_read(f->settings.root, files);
	host_files_forget(files, record);
	find_answer(f, record);
	*facts = (struct host_facts){ .files = files,
				      .may_write = f->settings.may_write,
				      .was_managed = record->n > 0 || record->systemd_owed.n,
				      .owes_systemd = record->systemd_owed.n > 0,
				      .granted = str_from(f->granted),
				      .problem = str_from(f->problem.code ? f->problem.msg : "") };
	find_units(f, in, facts, &f->arena);
	find_owed(f, record, facts);
	find_boot(f, files, record, facts);
	host_changes_decide(facts, &f->arena, &f->changes);
	return files_record_save(record, f->settings.state_dir, err);
}

static bool is_busy(const struct host_changes *c)
{
	bool busy = c->updates_boot_loader || c->undoes_boot_loader || c->reboots;

	for (size_t i = 0; i < HOST_FILE_CLASS__COUNT; i++)
		busy |= c->writes[i] || c->restarts[i];
	return busy;
}

/* After what was done, so that the agent's own writes are no change. */
static void settle(struct files_follow *f, bool has_crio, bool is_done)
{
	f->is_settled = is_done && !f->n_calls && !f->problem.code && !is_busy(&f->changes);
	f->has_crio = has_crio;
	f->next_full = f->n_ticks + FULL_TICKS;
	if (f->is_settled)
		f->seen = files_seen(&f->settings, &f->files, has_crio);
}

void files_follow_check(struct files_follow *f, const struct files_input *input)
{
	struct files_record record;
	struct host_facts facts;
	struct err err = { 0 };
	int r;

	if (!systemd_client_is_idle(&f->systemd))
		return;
	arena_reset(&f->arena);
	f->is_decided = f->is_settled = false;
	f->next_check = f->n_ticks + CHECK_TICKS;
	f->n_calls = 0;
	r = decide(f, input, &f->files, &record, &facts, &err);
	f->is_decided = r == 0;
	if (r == 0 && is_busy(&f->changes))
		f->next_check = f->n_ticks + BUSY_TICKS;
	if (r == 0)
		r = act(f, &f->files, &facts, &record, &err);
	if (r == 0)
		r = files_record_save(&record, f->settings.state_dir, &err);
	/* What systemd refused stays the problem until it is asked again. */
	if (r < 0 || (!f->n_calls && !record.systemd_owed.n))
		set_problem(f, &err);
	settle(f, input->has_crio, r == 0 && !record.systemd_owed.n);
	if (f->n_calls)
		systemd_client_start(&f->systemd, f->calls, f->n_calls);
}

bool files_follow_tick(struct files_follow *f, const char *granted)
{
	f->n_ticks++;
	if (strcmp(granted, f->granted) != 0) {
		(void)snprintf(f->granted, sizeof(f->granted), "%s", granted);
		f->next_check = f->next_restart = f->next_reboot = 0;
		f->is_settled = false;
	}
	if (f->n_ticks < f->next_check || !systemd_client_is_idle(&f->systemd))
		return false;
	if (!f->is_settled || f->n_ticks >= f->next_full ||
	    files_seen(&f->settings, &f->files, f->has_crio) != f->seen)
		return true;
	f->next_check = f->n_ticks + CHECK_TICKS;
	return false;
}

void files_follow_soon(struct files_follow *f)
{
	f->next_check = 0;
	f->is_settled = false;
}

void files_follow_init(struct files_follow *f, const struct files_settings *settings)
{
	*f = (struct files_follow){ .settings = *settings };
	arena_init(&f->arena, 0);
}

void files_follow_start(struct files_follow *f, struct loop *loop)
{
	systemd_client_init(&f->systemd, loop, f->settings.root, on_systemd_done);
}

void files_follow_done(struct files_follow *f)
{
	systemd_client_close(&f->systemd);
	arena_done(&f->arena);
}

/* --- status --- */

/* The state of the files is not known: the host must not pass as configured, and what was granted
 * not as applied. */
static void describe_undecided(const struct files_follow *f, struct condition *ret, struct arena *a)
{
	if (f->problem.code)
		*ret = (struct condition){ .status = CONDITION_FALSE,
					   .reason = STR(HOST_REASON_FILES_FAIL),
					   .message = str_dup(a, str_from(f->problem.msg)) };
	else if (f->is_awaited && ret->status == CONDITION_TRUE)
		*ret = (struct condition){ .status = CONDITION_UNKNOWN,
					   .reason = STR("HostNotChecked") };
}

void files_follow_describe(const struct files_follow *f, struct node_partition_status *s,
			   struct arena *a)
{
	struct condition *condition = &s->conditions[PARTITION_HOST_CONFIGURED];
	const struct host_changes *c = &f->changes;
	struct pending_change *items;
	bool has_reboot = false;
	size_t n = 0;

	if (!f->is_decided) {
		describe_undecided(f, condition, a);
		return;
	}
	items = arena_array(a, struct pending_change, s->n_pending + HOST_CHANGES_MAX);
	for (size_t i = 0; i < c->n_pending; i++) {
		has_reboot |= c->pending[i].need == NEED_REBOOT && c->pending[i].hash.n;
		items[n++] = c->pending[i];
	}
	/* A reboot that the agent has prepared also corrects boot parameters. */
	for (size_t i = 0; i < s->n_pending && n < NODE_PARTITION_PENDING_MAX; i++)
		if (s->pending[i].need != NEED_REBOOT || !has_reboot)
			items[n++] = s->pending[i];
	s->pending = items;
	s->n_pending = n;
	if (condition->status != CONDITION_FALSE && c->condition.status == CONDITION_FALSE)
		*condition = c->condition;
}
