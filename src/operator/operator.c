/* The life of the daemon. A term begins with a new event loop and new connections, waits for the
 * Lease, acts, and ends when the Lease is lost; then the next term begins. A replica that waits
 * watches nothing. Everything runs on the main thread. */

#include "operator.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/notify.h"
#include "base/trim.h"
#include "checks.h"
#include "confine/confine.h"
#include "openshift_apply.h"
#include "openshift_objects.h"
#include "operator_private.h"

#define LEASE_NAME "pinfold-operator"
#define SETTLE_MS 50	  /* changes often come in groups */
#define GAP_MS 200	  /* between two reconciles */
#define REDECIDE_MS 10000 /* decisions depend on time, too */
#define LEAVE_MS 6000	  /* to end requests and to release the Lease */
#define LEAVE_STEP_MS 20

/* Not before GAP_MS after the last reconcile. A timer that fires earlier stays. */
static void schedule(struct operator_daemon *op, uint64_t after_ms)
{
	const uint64_t now_ms = loop_now_ms(&op->loop);
	const uint64_t earliest_ms = op->reconciled_ms + GAP_MS;

	if (now_ms + after_ms < earliest_ms)
		after_ms = earliest_ms - now_ms;
	if (timer_is_active(&op->timer) && uv_timer_get_due_in(&op->timer.uv) <= after_ms)
		return;
	timer_start(&op->timer, after_ms, 0);
}

void operator_trigger(struct operator_daemon *op)
{
	schedule(op, SETTLE_MS);
}

static uint64_t cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool is_read(const struct operator_write *write)
{
	return strcmp(write->request.method, "GET") == 0;
}

/* Of a finding, which is printed itself. */
static bool is_event(const struct operator_write *write)
{
	return str_ends(write->request.path, STR("/events"));
}

void operator_give_up(struct operator_daemon *op, const struct err *err)
{
	op->failed = *err;
	op->is_ended = true;
	loop_stop(&op->loop);
}

/* Reads that decisions wait for are made; the rest is printed when none is left. */
static void rehearse(struct operator_daemon *op, const struct operator_snapshot *s,
		     const struct operator_writes *w)
{
	struct cluster_findings found = { .arena = w->arena };
	struct operator_writes reads = { .arena = w->arena };
	struct strbuf b;

	strbuf_init(&b, w->arena);
	check_cluster(s, &found);
	strbuf_add(&b, cluster_findings_format(&found, w->arena));
	for (size_t i = 0; i < w->n; i++) {
		const struct operator_write *write = &w->items[i];

		if (is_read(write) && !object_store_find(&op->stores[write->kind], write->object))
			*operator_writes_add(&reads) = *write;
		else if (!is_read(write) && !is_event(write))
			strbuf_printf(&b, PRI_STR "\n  %s " PRI_STR "\n  " PRI_STR "\n",
				      FMT_STR(write->key), write->request.method,
				      FMT_STR(write->request.path), FMT_STR(write->request.body));
	}
	if (reads.n) {
		schedule(op, operator_writer_send(&op->writer, &reads));
		return;
	}
	op->config->print(strbuf_str(&b));
	op->is_ended = true;
	loop_stop(&op->loop);
}

static void reconcile(struct operator_daemon *op)
{
	CLEANUP(arena_done) struct arena a;
	struct operator_snapshot snapshot;
	struct reconcile_result result;
	struct openshift_objects openshift;
	const uint64_t before_us = cpu_us();
	uint64_t next_ms;

	arena_init(&a, 0);
	op->reconciled_ms = loop_now_ms(&op->loop);
	operator_snapshot_build(op->stores, (int64_t)time(NULL), op->reconciled_ms, &a, &snapshot);
	namespace_scan_run(&op->scan, &op->stores[OPERATOR_NAMESPACES],
			   cluster_is_partitioned(&snapshot));
	if (op->scan.is_complete)
		snapshot.scanned = &op->scan.found;
	snapshot.has_current_namespaces = !operator_watch_age_ms(op, OPERATOR_NAMESPACES);
	snapshot.has_current_profiles = !operator_watch_age_ms(op, OPERATOR_PROFILES);
	snapshot.counts_pools = op->config->counts_pools;
	if (op->config->is_openshift) {
		openshift_objects_build(&snapshot, &openshift);
		snapshot.openshift = &openshift;
	}
	operator_reconcile(&snapshot, &op->memory, &result);
	operator_forget_pods(op, &result);
	op->figures = result.figures;
	op->reconciles++;
	op->reconcile_us += cpu_us() - before_us;
	if (op->config->is_dry_run) {
		if (op->scan.is_complete)
			rehearse(op, &snapshot, &result.writes);
		return;
	}
	next_ms = operator_writer_send(&op->writer, &result.writes);
	schedule(op, next_ms < REDECIDE_MS ? next_ms : REDECIDE_MS);
}

static void on_timer(struct timer *t)
{
	struct operator_daemon *op = container_of(t, struct operator_daemon, timer);

	/* The end of the Lease by time is noticed here first. */
	if (!op->is_acting || (!op->config->is_dry_run && !leader_is(&op->leader)))
		return;
	if (operator_watch_is_synced(op))
		reconcile(op);
}

static void on_written(struct operator_writer *w, const struct write_done *done)
{
	struct operator_daemon *op = container_of(w, struct operator_daemon, writer);

	if (done->err && op->config->is_dry_run)
		operator_give_up(op, done->err);
	else if (done->err && done->result >= WRITE_REFUSED)
		api_failures_add(&op->failures, loop_now_ms(&op->loop), done->what, done->err);
	if (!done->err)
		operator_store_response(op, done);
	else if (done->result == WRITE_FAILED && done->kind < OPERATOR_WATCHED)
		object_store_doubt(&op->stores[done->kind], done->object,
				   loop_now_ms(&op->loop) + WRITER_FENCE_MS);
	if (done->err && done->err->code == EEXIST && strcmp(done->what, OPENSHIFT_WRITE) == 0)
		log_warning("another controller manages an object of a profile, leaving it",
			    LOG_STR("object", done->key), LOG_ERR(done->err));
	operator_trigger(op);
}

static void on_scanned(struct namespace_scan *scan)
{
	operator_trigger(container_of(scan, struct operator_daemon, scan));
}

static void on_scan_failure(struct namespace_scan *scan, const struct err *err)
{
	struct operator_daemon *op = container_of(scan, struct operator_daemon, scan);

	api_failures_add(&op->failures, loop_now_ms(&op->loop), "check the namespaces", err);
	if (op->config->is_dry_run)
		operator_give_up(op, err);
}

static void act(struct operator_daemon *op)
{
	op->is_acting = true;
	namespace_scan_start(&op->scan, &op->api);
	operator_writer_start(&op->writer, &op->api);
	operator_watch_start(op);
}

static void on_leader_change(struct leader *l)
{
	struct operator_daemon *op = container_of(l, struct operator_daemon, leader);

	if (op->leave_until_ms)
		return;
	switch (leader_state(l)) {
	case LEADER_ACTS:
		if (op->is_acting) {
			log_info("renewed the Lease, going on");
			operator_trigger(op);
			return;
		}
		log_info("elected as leader", LOG_STR("identity", str_from(l->config->identity)));
		act(op);
		return;
	case LEADER_LATE: /* the watches go on: to read everything again would be load for a
			   * server that is slow already */
		log_warning(
			"could not renew the Lease in time, writing nothing until it is renewed");
		return;
	case LEADER_NOT:
		log_warning("lost the Lease, waiting for it again");
		loop_stop(&op->loop);
	}
}

static void on_leader_failure(struct leader *l, const struct err *err)
{
	struct operator_daemon *op = container_of(l, struct operator_daemon, leader);

	api_failures_add(&op->failures, loop_now_ms(&op->loop), "renew the Lease", err);
}

/* Requests in flight end first: the next leader must not read before they are executed. The next
 * replica need not wait until the Lease expires. */
static void on_leave(struct timer *t)
{
	struct operator_daemon *op = container_of(t, struct operator_daemon, leave);

	if (op->writer.in_flight && loop_now_ms(&op->loop) < op->leave_until_ms) {
		timer_start(&op->leave, LEAVE_STEP_MS, 0);
		return;
	}
	/* If they did not end, the Lease expires by itself. */
	if (!op->writer.in_flight)
		leader_want(&op->leader, false);
	if (!op->writer.in_flight && op->leader.renewed_ms &&
	    loop_now_ms(&op->loop) < op->leave_until_ms)
		timer_start(&op->leave, LEAVE_STEP_MS, 0);
	else
		loop_stop(&op->loop);
}

static void on_terminate(struct signal_source *s, int number)
{
	struct operator_daemon *op = s->uv.signum == SIGTERM ?
					     container_of(s, struct operator_daemon, terminate) :
					     container_of(s, struct operator_daemon, interrupt);

	if (op->leave_until_ms)
		return;
	log_info("shutting down", LOG_INT("signal", number));
	notify_manager("STOPPING=1");
	op->is_ended = true;
	op->leave_until_ms = loop_now_ms(&op->loop) + LEAVE_MS;
	timer_stop(&op->timer);
	timer_start(&op->leave, 0, 0);
}

static int watch_signals(struct operator_daemon *op, struct err *err)
{
	int r = signal_source_init(&op->terminate, &op->loop, SIGTERM, on_terminate, err);

	if (r >= 0)
		r = signal_source_init(&op->interrupt, &op->loop, SIGINT, on_terminate, err);
	return r;
}

static int start_term(struct operator_daemon *op, struct err *err)
{
	int r = api_init(&op->api, &op->loop, &op->kubeconfig, op->user_agent, err);

	timer_init(&op->timer, &op->loop, on_timer);
	timer_init(&op->leave, &op->loop, on_leave);
	leader_init(&op->leader, &op->api, &op->leader_config);
	/* Later, credentials that cannot be read are a failure of a request. */
	if (r < 0 && !op->terms)
		return r;
	r = watch_signals(op, err);
	if (r < 0)
		return r;
	if (op->config->is_dry_run) {
		act(op);
		return 0;
	}
	leader_want(&op->leader, true);
	if (!op->config->listen)
		return 0;
	op->http = (struct small_server){ .handler = operator_handle, .context = op };
	return small_server_listen(&op->http, &op->loop, op->config->listen, err);
}

static void end_term(struct operator_daemon *op)
{
	small_server_close(&op->http);
	leader_close(&op->leader);
	if (op->is_acting) {
		operator_writer_close(&op->writer);
		namespace_scan_close(&op->scan);
		operator_watch_close(op);
	}
	api_close(&op->api);
	loop_done(&op->loop);
	if (op->is_acting) {
		operator_writer_done(&op->writer);
		namespace_scan_done(&op->scan);
		operator_watch_done(op);
	}
	leader_done(&op->leader);
	api_done(&op->api);
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&op->stores[i]);
	reconcile_memory_done(&op->memory);
	op->is_acting = false;
	op->reconciled_ms = 0;
}

static int confine(const struct operator_daemon *op, struct err *err)
{
	int r;

	if (op->config->is_unconfined || op->terms)
		return 0;
	r = confine_files(&(struct confine_files){ .may_bind = true }, err);
	if (r >= 0)
		r = confine_syscalls(CONFINE_WEBHOOK, err);
	return r < 0 ? err_wrap(err,
				"cannot confine the operator (--no-confinement turns it off)") :
		       0;
}

static int run_term(struct operator_daemon *op, struct err *err)
{
	int r = loop_init(&op->loop, err);

	if (r < 0)
		return r;
	r = start_term(op, err);
	if (r >= 0)
		r = confine(op, err);
	if (r >= 0) {
		if (!op->terms++ && !op->config->is_dry_run)
			log_info("operator started", LOG_STR("host", str_from(op->kubeconfig.host)),
				 LOG_INT("port", op->kubeconfig.port));
		notify_manager("READY=1");
		trim_memory();
		loop_run(&op->loop);
	}
	end_term(op);
	return r;
}

static int configure(struct operator_daemon *op, struct err *err)
{
	const struct operator_config *config = op->config;

	(void)snprintf(op->user_agent, sizeof(op->user_agent), "pinfold-operator/%s",
		       config->version);
	op->leader_config = (struct leader_config){ .namespace = config->namespace,
						    .name = LEASE_NAME,
						    .identity = leader_identity(&op->arena),
						    .on_change = on_leader_change,
						    .on_failure = on_leader_failure };
	op->writer.on_done = on_written;
	op->scan.on_complete = on_scanned;
	op->scan.on_failure = on_scan_failure;
	if (config->kubeconfig)
		return kubeconfig_read(config->kubeconfig, config->context, &op->arena,
				       &op->kubeconfig, err);
	return kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
				     getenv("KUBERNETES_SERVICE_PORT"), KUBECONFIG_POD_DIR,
				     &op->arena, &op->kubeconfig, err);
}

int operator_run(const struct operator_config *config, struct err *err)
{
	struct operator_daemon op = { .config = config };
	int r = config->is_unconfined ? 0 : confine_io_uring(err);

	(void)mallopt(M_MMAP_THRESHOLD, 256 << 10); /* large lists are returned to the kernel */
	(void)signal(SIGPIPE, SIG_IGN);
	arena_init(&op.arena, 0);
	if (r >= 0)
		r = configure(&op, err);
	while (r >= 0 && !op.is_ended)
		r = run_term(&op, err);
	arena_done(&op.arena);
	if (r >= 0 && op.failed.code)
		return err_set(err, op.failed.code, "%s", op.failed.msg);
	if (r >= 0 && !config->is_dry_run)
		log_info("stopped");
	return r < 0 ? r : 0;
}
