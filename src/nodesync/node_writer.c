/* One write at a time: node_writer_update() compares, sends the first difference and waits for the
 * response; on_response() starts a delay, and on_delay() compares again. The response to a write is
 * the new state of the Node, so a second difference need not wait for the watch. The delay grows
 * with every write, successful or not, and starts over after a quiet period. */

#include "node_writer.h"

#include <errno.h>
#include <string.h>

#include "api_failures.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "pin/event_queue.h"

#define HEARTBEAT_MS 300000 /* the kubelet's interval for a status that does not change */
#define QUIET_MS 10000	    /* a write after this long without one starts at the shortest delay */
#define LEAVE_MS 2000

int node_write_plan(const struct node_observed *observed, const struct node_desired *want,
		    const struct node_write_rules *rules, struct arena *a, struct node_write *ret,
		    struct err *err)
{
	struct node_write write = { .kind = NODE_WRITE_STATUS, .request.method = "PATCH" };
	struct api_request *request = &write.request;
	int r;

	if (!observed->exists) {
		if (!rules->may_register)
			return 0;
		write.kind = NODE_WRITE_REGISTER;
		request->method = "POST";
		request->content_type = API_JSON;
		request->path = node_path(STR(""), STR(""), a);
		r = node_plan_registration(&rules->registration, want, a, &request->body, err);
	} else if (want->is_undecided) {
		return 0;
	} else {
		request->content_type = API_PATCH_STRATEGIC;
		request->path = node_path(rules->registration.name, STR("status"), a);
		r = node_plan_status(observed, want, a, &request->body, err);
		if (r == 0 && rules->may_taint) {
			write.kind = NODE_WRITE_TAINT;
			request->content_type = API_PATCH_JSON;
			request->path = node_path(rules->registration.name, STR(""), a);
			r = node_plan_taint(observed, want->taint, a, &request->body, err);
		}
	}
	if (r > 0)
		*ret = write;
	return r;
}

static uint64_t now_ms(const struct node_writer *w)
{
	return loop_now_ms(w->api->loop);
}

void node_writer_observe(struct node_writer *w, yyjson_val *node)
{
	node_observed_of(node, &w->observed);
	w->has_existed |= w->observed.exists;
}

static void on_success(struct node_writer *w, enum node_write_kind kind, yyjson_val *node)
{
	static const char *const changes[] = {
		[NODE_WRITE_TAINT] = "taint", [NODE_WRITE_REGISTER] = "registered"
	};

	w->n_written[kind]++;
	if (kind != NODE_WRITE_STATUS) /* heartbeats and restored resources have their own lines */
		log_info("wrote the Node", LOG_STR("node", w->config.registration.name),
			 LOG_STR("change", str_from(changes[kind])));
	/* Compared before written_ms is set: writes in quick succession mean that something reverts
	 * them. */
	if (now_ms(w) - w->written_ms > QUIET_MS)
		backoff_reset(&w->backoff);
	w->written_ms = now_ms(w);
	/* Status and registration contain the condition. */
	if (kind != NODE_WRITE_TAINT)
		w->heartbeat_ms = now_ms(w);
	node_writer_observe(w, node);
}

static void on_response(struct api_call *call, yyjson_val *node, const struct err *err)
{
	struct node_writer *w = container_of(call, struct node_writer, call);
	const enum node_write_kind kind = w->writing;

	w->writing = NODE_WRITE_NONE;
	if (w->is_leaving) {
		loop_stop(w->api->loop);
		return;
	}
	/* After a conflict or a deletion the watch delivers the present state. */
	if (err && err->code != EEXIST && err->code != ENOENT)
		api_failures_add(w->config.failures, now_ms(w), "write the Node", err);
	/* The admission plugin NodeRestriction forbids a kubelet's identity to change taints; the
	 * status may still be written. */
	if (kind == NODE_WRITE_TAINT &&
	    backoff_refused(&w->n_taint_refused, err && call->http.status == 403))
		w->taint_after_ms = now_ms(w) + BACKOFF_FORBIDDEN_MS;
	if (!err)
		on_success(w, kind, node);
	timer_start(&w->delay, backoff_next(&w->backoff, backoff_random()), 0);
}

/* Reports resources that differ from what was sent last. A kubelet that registers again sets
 * extended resources to zero. */
static void report_restored(struct node_writer *w, const struct node_desired *want)
{
	const bool was_sent = memcmp(&w->written, &want->amounts, sizeof(w->written)) == 0;
	const struct event_subject node = { 0 };

	w->written = want->amounts;
	if (!was_sent || node_has_capacity(&w->observed, &want->amounts))
		return;
	log_warning("resources on the Node were removed or changed, restoring them",
		    LOG_STR("node", w->config.registration.name));
	event_queue_add(w->config.events, EVENT_RESOURCES_RESTORED, &node,
			STR("CPU partitioning resources were removed or changed and are restored"));
}

void node_writer_update(struct node_writer *w)
{
	const struct node_writer_config *config = &w->config;
	CLEANUP(arena_done) struct arena a;
	struct node_write_rules rules;
	struct node_desired want;
	struct node_write write;
	struct err err = { 0 };
	int r;

	arena_init(&a, 0);
	if (!w->api || w->writing != NODE_WRITE_NONE || timer_is_active(&w->delay))
		return;
	want = config->desired(config->desired_data, w->is_leaving, &a);
	want.is_heartbeat_due = !w->heartbeat_ms || now_ms(w) - w->heartbeat_ms >= HEARTBEAT_MS;
	rules = (struct node_write_rules){
		/* An administrator who deletes the Node of a running agent wants it gone. */
		.may_register = config->registers && !w->has_existed && !w->is_leaving,
		.may_taint = !w->is_leaving && now_ms(w) >= w->taint_after_ms,
		.registration = config->registration,
	};
	r = node_write_plan(&w->observed, &want, &rules, &a, &write, &err);
	if (r < 0)
		api_failures_add(config->failures, now_ms(w), "describe the Node", &err);
	if (r <= 0)
		return;
	if (write.kind == NODE_WRITE_STATUS)
		report_restored(w, &want);
	w->writing = write.kind;
	api_start(w->api, &w->call, &write.request, on_response);
}

static void on_delay(struct timer *t)
{
	struct node_writer *w = container_of(t, struct node_writer, delay);

	if (w->is_leaving)
		loop_stop(w->api->loop);
	else
		node_writer_update(w);
}

void node_writer_init(struct node_writer *w, const struct node_writer_config *config)
{
	*w = (struct node_writer){ .config = *config };
}

void node_writer_start(struct node_writer *w, struct api *api)
{
	w->api = api;
	timer_init(&w->delay, api->loop, on_delay);
}

void node_writer_leave(struct node_writer *w)
{
	/* A request in flight is not waited for: the agent must stop in time. */
	if (!w->api || w->writing != NODE_WRITE_NONE || !w->observed.exists)
		return;
	w->is_leaving = true;
	/* The last write must not wait for the delay after the previous one. */
	timer_stop(&w->delay);
	node_writer_update(w);
	if (w->writing == NODE_WRITE_NONE)
		return;
	timer_start(&w->delay, LEAVE_MS, 0);
	/* The agent's own run of the loop has ended; on_response() or the timer stops this one. */
	loop_run(w->api->loop);
}

void node_writer_close(struct node_writer *w)
{
	api_cancel(&w->call);
}
