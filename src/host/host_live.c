/* Order of one check: record what is new, write the record, then change. A crash in between leaves
 * a record of things that were not changed, which restoring does not touch. */

#include "host_live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/proc.h"
#include "host_dirs.h"
#include "net/prometheus.h"

#define CHECK_TICKS 10		/* between two checks of everything */
#define SERVICES_RETRY_CHECKS 3 /* after systemd did not answer */
#define VALUE_MAX ((size_t)64 << 10)

static const char *const part_names[HOST__PARTS] = {
	[HOST_RECORD] = "record",
	[HOST_SERVICES] = "services",
	[HOST_INTERRUPTS] = "interrupts",
	[HOST_WORKQUEUES] = "workqueues",
};

/* Logged when it is new: a check that fails is repeated every few seconds. */
static void set_problem(struct host *h, enum host_part part, const struct err *problem)
{
	struct err *have = &h->problems[part];

	if (have->code == problem->code && strcmp(have->msg, problem->msg) == 0)
		return;
	if (problem->code)
		log_warning("host is not configured completely",
			    LOG_STR("part", str_from(part_names[part])), LOG_ERR(problem));
	else if (have->code)
		log_info("host is configured", LOG_STR("part", str_from(part_names[part])));
	*have = *problem;
	h->is_changed = true;
}

/* --- services by systemd --- */

static void unit_cpus(const struct host *h, const char *unit, struct arena *a, struct str *ret)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/cpuset.cpus", unit);
	/* Without the file the controller is not in use there, so nothing is restricted. */
	*ret = file_read_value_at(h->settings.cgroups->cpuset_fd, path, VALUE_MAX, a, ret, NULL) <
			       0 ?
		       STR("") :
		       str_trim(*ret);
}

static bool has_pods(const struct host *h, const char *unit, struct arena *a)
{
	struct str *names;
	size_t n;

	if (file_list_at(h->settings.cgroups->cpuset_fd, unit, a, &names, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (host_cgroup_is_pods(names[i]))
			return true;
	return false;
}

/* Fills unit_names with the units of the host. */
static int find_units(struct host *h, struct arena *a, struct err *err)
{
	struct str *names;
	size_t n;
	int r;

	r = cgroup_children(h->settings.cgroups, "", a, &names, &n, err);
	if (r < 0)
		return r;
	h->n_units = 0;
	for (size_t i = 0; i < n && h->n_units < HOST_MAX_UNITS; i++) {
		const char *name = str_cstr(a, names[i]);

		if (names[i].n < sizeof(h->unit_names[0]) &&
		    host_unit_is_service(names[i], has_pods(h, name, a)))
			(void)snprintf(h->unit_names[h->n_units++], sizeof(h->unit_names[0]), "%s",
				       name);
	}
	return 0;
}

static int record_units(struct host *h, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	int r;

	arena_init(&a, 0);
	r = find_units(h, &a, err);
	for (size_t i = 0; i < h->n_units && r == 0; i++) {
		const char *name = h->unit_names[i];
		struct str cpus;

		if (originals_unit(&h->originals, str_from(name)))
			continue;
		unit_cpus(h, name, &a, &cpus);
		originals_add_unit(&h->originals, str_from(name), cpus,
				   host_has_drop_in(h->settings.root, name));
	}
	return r;
}

static bool unit_is_set(const struct host *h, const char *name, struct arena *a)
{
	struct cpuset now;
	struct str text;

	unit_cpus(h, name, a, &text);
	return cpuset_parse_kernel(text, &now, NULL) == 0 &&
	       cpuset_eq(&now, &h->originals.applied.services);
}

static void on_systemd_done(struct systemd_client *c)
{
	struct host *h = container_of(c, struct host, systemd);
	struct err problem = c->err;

	for (size_t i = 0; i < c->n && problem.code == 0; i++)
		problem = h->calls[i].err;
	set_problem(h, HOST_SERVICES, &problem);
	if (problem.code)
		h->next_services_check = h->n_checks + SERVICES_RETRY_CHECKS;
	else
		h->n_units_set = h->n_units; /* verified by the next check */
	h->is_changed = true;
}

static void apply_units(struct host *h)
{
	CLEANUP(arena_done) struct arena a;
	size_t n = 0;

	arena_init(&a, 0);
	if (!systemd_client_is_idle(&h->systemd) || h->n_checks < h->next_services_check)
		return;
	for (size_t i = 0; i < h->n_units; i++)
		if (!unit_is_set(h, h->unit_names[i], &a))
			h->calls[n++] =
				(struct systemd_call){ .method = SYSTEMD_SET_CPUS,
						       .unit = h->unit_names[i],
						       .cpus = &h->originals.applied.services };
	h->n_units_set = h->n_units - n;
	if (n == 0) {
		set_problem(h, HOST_SERVICES, &(struct err){ 0 });
		return;
	}
	log_info("setting the CPUs of systemd units", LOG_INT("units", n),
		 LOG_STR("cpus", cpuset_format(&h->originals.applied.services, &a)));
	systemd_client_start(&h->systemd, h->calls, n);
}

/* --- a check of everything --- */

/* Where units are restricted, affinities are recorded, too: host files have a CPUAffinity= that
 * services which are started later keep. A host whose processes are not visible goes without. */
static int record_services(struct host *h, struct err *err)
{
	const int r = processes_record(h->dirs.proc, &h->originals, h->uses_systemd ? NULL : err);

	if (!h->uses_systemd)
		return r;
	/* The names are in use while a batch of calls is on its way. */
	return systemd_client_is_idle(&h->systemd) ? record_units(h, err) : 0;
}

/* False when nothing may be changed, because it could not be restored. A part that cannot be
 * recorded has a problem and is left alone. */
static bool record(struct host *h, const struct host_cpus *cpus)
{
	struct err problems[HOST__PARTS] = { 0 };

	(void)record_services(h, &problems[HOST_SERVICES]);
	if (h->dirs.irq >= 0 && !h->settings.keeps_interrupts)
		(void)interrupts_record(h->dirs.irq, &h->originals, &problems[HOST_INTERRUPTS]);
	if (h->dirs.workqueue >= 0)
		(void)workqueue_record(h->dirs.workqueue, &h->originals,
				       &problems[HOST_WORKQUEUES]);
	originals_apply(&h->originals, cpus);
	(void)originals_save(&h->originals, h->dirs.state, &problems[HOST_RECORD]);
	for (enum host_part p = 0; p < HOST__PARTS; p++)
		if (problems[p].code)
			set_problem(h, p, &problems[p]);
	if (!problems[HOST_RECORD].code)
		set_problem(h, HOST_RECORD, &problems[HOST_RECORD]);
	return !problems[HOST_RECORD].code;
}

static void apply_services(struct host *h, bool is_changed)
{
	struct err problem = { 0 };

	if (h->uses_systemd) {
		apply_units(h);
		return;
	}
	(void)processes_apply(h->dirs.proc, &h->originals, is_changed, &h->processes, &problem);
	set_problem(h, HOST_SERVICES, &problem);
}

/* They were moved by an earlier agent, or before the profile changed. */
static void release_interrupts(struct host *h)
{
	struct err problem = { 0 };

	h->interrupts = (struct interrupts_result){ 0 };
	if (h->originals.n_irqs && h->dirs.irq >= 0 &&
	    interrupts_restore(h->dirs.irq, &h->originals, &h->interrupts, &problem) == 0) {
		log_info("interrupts restored", LOG_INT("moved", h->interrupts.n_written));
		originals_forget_irqs(&h->originals);
	}
	set_problem(h, HOST_INTERRUPTS, &problem);
}

static void apply_interrupts(struct host *h, bool is_changed)
{
	const struct interrupts_result before = h->interrupts;
	struct err problem = { 0 };

	if (h->settings.keeps_interrupts) {
		release_interrupts(h);
		return;
	}
	if (h->dirs.irq < 0)
		(void)err_set(&problem, ENOENT, "%s/proc/irq cannot be opened: mount it",
			      host_prefix(h->settings.root));
	else
		(void)interrupts_apply(h->dirs.irq, &h->originals, is_changed, &h->interrupts,
				       &problem);
	set_problem(h, HOST_INTERRUPTS, &problem);
	if (h->interrupts.n_written)
		log_info("moved interrupts off the guaranteed CPUs",
			 LOG_INT("moved", h->interrupts.n_written),
			 LOG_INT("refused", h->interrupts.n_refused));
	if (h->interrupts.n_refused != before.n_refused || h->interrupts.n != before.n)
		h->is_changed = true;
}

static void apply_workqueues(struct host *h, bool is_changed)
{
	struct err problem = { 0 };

	if (h->dirs.workqueue < 0)
		(void)err_set(&problem, ENOENT,
			      "%s/sys/devices/virtual/workqueue cannot be opened: mount it",
			      host_prefix(h->settings.root));
	else
		(void)workqueue_apply(h->dirs.workqueue, &h->originals, is_changed, &problem);
	set_problem(h, HOST_WORKQUEUES, &problem);
}

static void check(struct host *h, const struct host_cpus *cpus)
{
	const bool is_changed = !h->originals.is_complete ||
				!host_cpus_eq(&h->originals.applied, cpus);
	struct err err = { 0 };

	h->n_checks++;
	if (is_changed) {
		h->next_services_check = 0;
		h->is_changed = true;
	}
	if (!record(h, cpus))
		return;
	apply_services(h, is_changed);
	apply_interrupts(h, is_changed);
	apply_workqueues(h, is_changed);
	/* Units are compared with their cgroups in every check, so they need no mark. */
	originals_complete(&h->originals);
	if (originals_save(&h->originals, h->dirs.state, &err) < 0)
		set_problem(h, HOST_RECORD, &err);
}

static bool interrupts_came_or_went(struct host *h)
{
	struct stat st;

	if (h->dirs.irq < 0 || fstat(h->dirs.irq, &st) < 0 || st.st_nlink == h->irq_links)
		return false;
	h->irq_links = st.st_nlink;
	return true;
}

void host_tick(struct host *h, const struct host_pools *pools)
{
	struct host_cpus cpus;
	bool is_due;

	if (!h->is_open || !host_cpus_decide(pools, &cpus))
		return;
	is_due = !h->has_checked || h->n_ticks % CHECK_TICKS == 0 || interrupts_came_or_went(h) ||
		 !host_cpus_eq(&h->originals.applied, &cpus);
	h->n_ticks++;
	if (!is_due)
		return;
	h->has_checked = true;
	check(h, &cpus);
}

void host_keep_interrupts(struct host *h, bool keeps)
{
	h->has_checked &= keeps == h->settings.keeps_interrupts;
	h->settings.keeps_interrupts = keeps;
}

/* --- start and end --- */

static bool init_is_systemd(int proc_fd)
{
	CLEANUP(arena_done) struct arena a;
	struct proc_stat init;

	arena_init(&a, 0);
	return proc_stat(proc_fd, 1, &a, &init) && str_eq(init.name, STR("systemd"));
}

int host_open(struct host *h, const struct host_settings *settings, struct err *err)
{
	int r;

	*h = (struct host){ .settings = *settings };
	r = host_dirs_open(&h->dirs, settings, err);
	if (r == 0)
		r = originals_load(h->dirs.state, settings->boot_id, &h->originals, err);
	if (r < 0) {
		originals_done(&h->originals);
		host_dirs_close(&h->dirs);
		h->problems[HOST_RECORD] = *err;
		return r;
	}
	h->uses_systemd = settings->cgroups->version == CGROUP_V2 && init_is_systemd(h->dirs.proc);
	h->is_open = true;
	return 0;
}

void host_start(struct host *h, struct loop *loop)
{
	systemd_client_init(&h->systemd, loop, h->settings.root, on_systemd_done);
}

void host_done(struct host *h)
{
	if (!h->is_open)
		return;
	systemd_client_close(&h->systemd);
	originals_done(&h->originals);
	host_dirs_close(&h->dirs);
	h->is_open = false;
}

/* --- status --- */

const struct err *host_problem(const struct host *h)
{
	for (enum host_part p = 0; p < HOST__PARTS; p++)
		if (h->problems[p].code)
			return &h->problems[p];
	return NULL;
}

bool host_is_configured(const struct host *h)
{
	return h->has_checked && !host_problem(h) && h->n_units_set == h->n_units;
}

static void describe_problems(const struct host *h, yyjson_mut_doc *doc, yyjson_mut_val *v)
{
	yyjson_mut_val *list;

	if (!host_problem(h))
		return;
	list = doc_put_arr(doc, v, STR("problems"));
	for (enum host_part p = 0; p < HOST__PARTS; p++) {
		yyjson_mut_val *item;

		if (!h->problems[p].code)
			continue;
		item = yyjson_mut_arr_add_obj(doc, list);
		doc_put_str(doc, item, STR("part"), str_from(part_names[p]));
		doc_put_str(doc, item, STR("message"), str_from(h->problems[p].msg));
	}
}

void host_describe(const struct host *h, yyjson_mut_doc *doc, yyjson_mut_val *root, struct arena *a)
{
	yyjson_mut_val *v;

	if (!h->is_open && !host_problem(h))
		return;
	v = doc_put_obj(doc, root, STR("host"));
	doc_put_str(doc, v, STR("mode"), STR("live"));
	doc_put_bool(doc, v, STR("configured"), host_is_configured(h));
	if (h->originals.has_applied) {
		doc_put_str(doc, v, STR("services"),
			    cpuset_format(&h->originals.applied.services, a));
		doc_put_str(doc, v, STR("housekeeping"),
			    cpuset_format(&h->originals.applied.housekeeping, a));
	}
	doc_put_str(doc, v, STR("servicesBy"), h->uses_systemd ? STR("systemd") : STR("affinity"));
	if (h->uses_systemd)
		doc_put_int(doc, v, STR("units"), (int64_t)h->n_units_set);
	doc_put_int(doc, v, STR("interrupts"), (int64_t)h->interrupts.n);
	doc_put_int(doc, v, STR("interruptsRefused"), (int64_t)h->interrupts.n_refused);
	describe_problems(h, doc, v);
}

void host_metrics(const struct host *h, struct strbuf *b)
{
	prometheus_family(b, "pinfold_host_configured", "gauge",
			  "Whether host services, interrupts and workqueues are off the guaranteed "
			  "CPUs.");
	prometheus_uint(b, "pinfold_host_configured", NULL, host_is_configured(h));
	prometheus_family(b, "pinfold_host_interrupts_refused", "gauge",
			  "Interrupts that the kernel does not move off the guaranteed CPUs.");
	prometheus_uint(b, "pinfold_host_interrupts_refused", NULL, h->interrupts.n_refused);
}
