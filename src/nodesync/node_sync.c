#include "node_sync.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/notify.h"
#include "base/trim.h"
#include "cluster/object_path.h"
#include "pin/manager.h"

#define COMPLAIN_MS 60000
#define QUIET_MS 10000	       /* after that a write is not part of a quarrel */
#define REGISTER_WAIT_MS 20000 /* the API server may run on this node, after the kubelet */
#define LEAVE_MS 2000
#define TRIM_TICKS 2
#define EVENT_RETRY_MS 5000
#define NAMESPACE_PAGE 50 /* each is about a kilobyte; all of a page are in memory at once */

static const struct watch_config namespace_config = {
	.path = "/api/v1/namespaces",
	.only_metadata = true,
	.page = NAMESPACE_PAGE,
	.frees_memory = true,
};

static void turn(struct node_sync *l);

static uint64_t now_ms(const struct node_sync *l)
{
	return loop_now_ms(l->loop);
}

/* Every try fails while the API server is away; one line in a while is enough. */
static void complain(struct node_sync *l, const char *what, const struct err *err)
{
	l->stats.failures++;
	if (l->complaints++ && now_ms(l) - l->complained_ms < COMPLAIN_MS)
		return;
	l->complained_ms = now_ms(l);
	log_warning("the cluster does not answer as it should, trying again; pinning goes on",
		    LOG_STR("doing", str_from(what)), LOG_ERR(err));
}

/* Writing. */

static void again_later(struct node_sync *l)
{
	timer_start(&l->timer, backoff_next(&l->backoff, backoff_random()), 0);
}

static void announce_now(struct node_sync *l)
{
	if (!l->holds_ready)
		return;
	l->holds_ready = false;
	notify_manager("READY=1");
}

static void take(struct node_sync *l, yyjson_val *node)
{
	node_observed_of(node, &l->observed);
	l->existed |= l->observed.exists;
	if (l->observed.exists)
		announce_now(l);
}

static void note_written(struct node_sync *l)
{
	static const char *const did[] = { [NODE_CALL_STATUS] = "status",
					   [NODE_CALL_TAINT] = "taint",
					   [NODE_CALL_REGISTER] = "created" };

	l->stats.status_patches += l->doing == NODE_CALL_STATUS;
	l->stats.taint_patches += l->doing == NODE_CALL_TAINT;
	l->stats.registrations += l->doing == NODE_CALL_REGISTER;
	if (l->doing == NODE_CALL_TAINT || l->doing == NODE_CALL_REGISTER)
		log_info("the Node was written", LOG_STR("node", l->name),
			 LOG_STR("did", str_from(did[l->doing])));
	/* Whoever undoes what we write is not fought at full speed. */
	if (now_ms(l) - l->written_ms > QUIET_MS)
		backoff_reset(&l->backoff);
	l->written_ms = now_ms(l);
}

static void on_written(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_sync *l = container_of(call, struct node_sync, call);

	l->is_busy = false;
	if (l->is_leaving) {
		loop_stop(l->loop);
		return;
	}
	/* Somebody was faster, or it is gone: the watch tells. */
	if (err && err->code != EEXIST && err->code != ENOENT)
		complain(l, "writing the Node", err);
	if (call->http.status == 403 && l->doing == NODE_CALL_TAINT &&
	    l->backoff.n >= BACKOFF_SURE_FAILURES)
		l->taint_after_ms = now_ms(l) + BACKOFF_FORBIDDEN_MS;
	if (!err) {
		note_written(l);
		if (l->doing != NODE_CALL_TAINT)
			l->heartbeat_ms = now_ms(l);
		take(l, object);
	}
	again_later(l);
}

static void write_node(struct node_sync *l, const struct api_request *request)
{
	l->is_busy = true;
	api_start(&l->api, &l->call, request, on_written);
}

/* Somebody took from the Node, or changed, what we had written there. */
static void tell_restored(struct node_sync *l, const struct node_desired *want)
{
	const bool was_written = memcmp(&l->written, &want->amounts, sizeof(l->written)) == 0;
	const struct event_subject node = { 0 };

	l->written = want->amounts;
	if (!was_written ||
	    memcmp(l->observed.capacity, want->amounts.milli, sizeof(l->observed.capacity)) == 0)
		return;
	log_warning("our resources are not on the Node as they were, putting them back",
		    LOG_STR("node", l->name));
	event_queue_add(&l->events, EVENT_RESOURCES_RESTORED, &node,
			STR("resources of CPU partitioning were missing or changed and are back"));
}

/* One step towards what the Node shall say; on_written leads to the next. */
static int step(struct node_sync *l, struct arena *a, struct err *err)
{
	const struct node_desired want = node_sync_desired(l, a);
	struct api_request request = { .method = "PATCH" };
	int r;

	if (!l->observed.exists) {
		const struct node_registration birth = { l->name, l->config.labels,
							 l->config.n_labels, l->config.taints,
							 l->config.n_taints };

		if (!l->config.registers || l->existed || l->is_leaving)
			return 0;
		l->doing = NODE_CALL_REGISTER;
		request.method = "POST";
		request.content_type = API_JSON;
		request.path = node_path(STR(""), STR(""), a);
		r = node_plan_registration(&birth, &want, a, &request.body, err);
	} else {
		l->doing = NODE_CALL_STATUS;
		request.content_type = API_PATCH_STRATEGIC;
		request.path = node_path(l->name, STR("status"), a);
		r = node_plan_status(&l->observed, &want, a, &request.body, err);
		if (r > 0)
			tell_restored(l, &want);
		if (r == 0 && !l->is_leaving && now_ms(l) >= l->taint_after_ms) {
			l->doing = NODE_CALL_TAINT;
			request.content_type = API_PATCH_JSON;
			request.path = node_path(l->name, STR(""), a);
			r = node_plan_taint(&l->observed, want.taint, a, &request.body, err);
		}
	}
	if (r > 0)
		write_node(l, &request);
	return r;
}

static void turn(struct node_sync *l)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };

	arena_init(&a, 0);
	if (!l->is_open || !l->node_watch.is_synced || l->is_busy || timer_is_active(&l->timer))
		return;
	if (step(l, &a, &err) < 0)
		complain(l, "describing the Node", &err);
}

/* Events. */

static void on_told(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_sync *l = container_of(call, struct node_sync, event_call);

	(void)object;
	/* What the server will never take is not tried again: a namespace that is going, say. */
	if (err && call->http.status != 403 && err->code != ENOENT && err->code != EINVAL &&
	    err->code != EEXIST)
		l->event_after_ms = now_ms(l) + EVENT_RETRY_MS;
	else
		event_queue_sent(&l->events, l->event_in_flight, l->event_in_flight_count,
				 now_ms(l));
	if (err)
		complain(l, "writing an Event", err);
	l->event_in_flight = NULL;
}

static void tell(struct node_sync *l)
{
	CLEANUP(arena_done) struct arena a;
	const struct event *event;
	struct object_event object;
	struct api_request request = { .method = "POST", .content_type = API_JSON };
	struct err err = { 0 };

	arena_init(&a, 0);
	if (!l->is_open || l->event_in_flight || l->is_leaving || now_ms(l) < l->event_after_ms)
		return;
	event = event_queue_next(&l->events, now_ms(l));
	if (!event)
		return;
	object = (struct object_event){
		.api = STR("v1"),
		.kind = *event->pod ? STR("Pod") : STR("Node"),
		.namespace = str_from(event->namespace),
		.name = *event->pod ? str_from(event->pod) : l->name,
		/* As kubelets do it: `kubectl describe node` looks for the name. */
		.uid = *event->pod ? str_from(event->uid) : l->name,
		.reason = str_from(event_reason(event->kind)),
		.message = str_from(event->text),
		.component = STR("pinfold-agent"),
		.host = l->name,
		.is_warning = event_is_warning(event->kind),
		.count = event->count,
		.now_s = (int64_t)time(NULL),
		.random = backoff_random(),
	};
	if (object_event_write(&object, &a, &request.path, &request.body, &err) < 0) {
		complain(l, "describing an Event", &err);
		return;
	}
	l->event_in_flight = event;
	l->event_in_flight_count = event->count;
	api_start(&l->api, &l->event_call, &request, on_told);
}

/* Watching. */

static void on_node(struct watch *w, yyjson_val *node)
{
	struct node_sync *l = container_of(w, struct node_sync, node_watch);

	take(l, node);
	turn(l);
}

static void on_node_gone(struct watch *w, yyjson_val *node)
{
	struct node_sync *l = container_of(w, struct node_sync, node_watch);

	(void)node;
	log_warning("our Node was deleted", LOG_STR("node", l->name));
	take(l, NULL);
}

static void on_node_list(struct watch *w)
{
	take(container_of(w, struct node_sync, node_watch), NULL);
}

static void on_node_synced(struct watch *w)
{
	struct node_sync *l = container_of(w, struct node_sync, node_watch);

	log_info("following our Node", LOG_STR("node", l->name),
		 LOG_STR("exists", l->observed.exists ? STR("yes") : STR("no")));
	turn(l);
	(void)malloc_trim(0);
}

static void on_node_trouble(struct watch *w, const struct err *err)
{
	complain(container_of(w, struct node_sync, node_watch), w->config->path, err);
}

static const struct watch_callbacks node_events = {
	.on_object = on_node,
	.on_deleted = on_node_gone,
	.on_list = on_node_list,
	.on_synced = on_node_synced,
	.on_trouble = on_node_trouble,
};

static struct namespace_allowlist *permits_of(struct watch *w)
{
	return &container_of(w, struct node_sync, namespace_watch)->allowlist;
}

static void on_namespace(struct watch *w, yyjson_val *namespace)
{
	namespace_allowlist_put(permits_of(w), namespace);
}

static void on_namespace_gone(struct watch *w, yyjson_val *namespace)
{
	namespace_allowlist_remove(permits_of(w), namespace);
}

static void on_namespace_list(struct watch *w)
{
	namespace_allowlist_begin_list(permits_of(w));
}

bool node_sync_has_untrusted_pod(const struct manager *m)
{
	const struct registry *r = &m->registry;

	for (size_t i = 0; i < r->n_pods; i++)
		if (r->pods[i]->is_management &&
		    classify_permission(&m->rules, r->pods[i]->is_static,
					str_from(r->pods[i]->namespace)) == PERMISSION_DENIED)
			return true;
	return false;
}

static void on_namespaces_synced(struct watch *w)
{
	struct node_sync *l = container_of(w, struct node_sync, namespace_watch);
	const bool was_known = l->allowlist.is_known;

	l->said_forbidden = false;
	namespace_allowlist_end_list(&l->allowlist);
	(void)malloc_trim(0);
	if (was_known)
		return;
	log_info("following the namespaces", LOG_INT("permitted", l->allowlist.n));
	if (node_sync_has_untrusted_pod(l->manager) && l->on_distrust)
		l->on_distrust(l);
}

static void on_namespace_trouble(struct watch *w, const struct err *err)
{
	complain(container_of(w, struct node_sync, namespace_watch), w->config->path, err);
}

/* A kubelet's identity may not list them. */
static void on_namespaces_forbidden(struct watch *w, const struct err *err)
{
	struct node_sync *l = container_of(w, struct node_sync, namespace_watch);

	if (!l->said_forbidden)
		log_warning("may not read namespaces: pods are believed when they look converted",
			    LOG_ERR(err));
	l->said_forbidden = true;
}

static const struct watch_callbacks namespace_events = {
	.on_object = on_namespace,
	.on_deleted = on_namespace_gone,
	.on_list = on_namespace_list,
	.on_synced = on_namespaces_synced,
	.on_trouble = on_namespace_trouble,
	.on_forbidden = on_namespaces_forbidden,
};

/* Beginning. */

static int find_access(const struct node_sync_config *config, struct arena *a,
		       struct kubeconfig *ret, struct err *err)
{
	if (config->kubeconfig)
		return kubeconfig_read(config->kubeconfig, config->context, a, ret, err);
	return kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
				     getenv("KUBERNETES_SERVICE_PORT"), KUBECONFIG_POD_DIR, a, ret,
				     err);
}

static int find_name(const struct node_sync_config *config, struct arena *a, struct str *ret,
		     struct err *err)
{
	const char *name = config->node_name ? config->node_name : getenv("NODE_NAME");
	char host[256] = "";

	if (!name || !*name) {
		(void)gethostname(host, sizeof(host) - 1);
		name = host;
	}
	return node_name_of(str_from(name), a, ret, err);
}

int node_sync_find(const struct node_sync_config *config, struct arena *a, struct kubeconfig *ret,
		   struct str *ret_name, struct err *err)
{
	int r = find_name(config, a, ret_name, err);

	return r < 0 ? r : find_access(config, a, ret, err);
}

int node_sync_init(struct node_sync *l, const struct node_sync_config *config, struct err *err)
{
	const struct node_registration birth = { STR(""), config->labels, config->n_labels,
						 config->taints, config->n_taints };
	int r;

	*l = (struct node_sync){ .config = *config };
	arena_init(&l->arena, 0);
	event_queue_init(&l->events);
	l->allowlist.is_legacy = config->is_legacy;
	if (config->is_off)
		return 0;
	r = node_registration_check(&birth, err);
	if (r < 0)
		return r;
	r = node_sync_find(config, &l->arena, &l->kubeconfig, &l->name, err);
	/* A kubeconfig that is not there yet may come: the kubelet makes its own at first boot. */
	if (r == -ENOENT && config->kubeconfig)
		r = 0;
	if (r == -ENOENT)
		return 0;
	l->is_on = r == 0;
	return r;
}

static void open_link(struct node_sync *l)
{
	struct err err = { 0 };

	if (!l->kubeconfig.host && find_access(&l->config, &l->arena, &l->kubeconfig, &err) < 0) {
		complain(l, "reading the kubeconfig", &err);
		again_later(l);
		return;
	}
	l->is_open = true;
	if (api_init(&l->api, l->loop, &l->kubeconfig, l->user_agent, &err) < 0)
		complain(l, "reading the credentials", &err); /* read again with every try */
	watch_init(&l->node_watch, &l->api, &l->node_config, &node_events);
	watch_init(&l->namespace_watch, &l->api, &namespace_config, &namespace_events);
	log_info("following the API server", LOG_STR("host", str_from(l->kubeconfig.host)),
		 LOG_INT("port", l->kubeconfig.port), LOG_STR("node", l->name));
}

static void on_timer(struct timer *t)
{
	struct node_sync *l = container_of(t, struct node_sync, timer);

	if (l->is_leaving)
		loop_stop(l->loop);
	else if (!l->is_open)
		open_link(l);
	else
		turn(l);
}

void node_sync_start(struct node_sync *l, struct loop *loop, struct manager *m)
{
	l->loop = loop;
	l->manager = m;
	if (!l->is_on && !l->config.is_off)
		log_info("not in a cluster and without --kubeconfig: working from annotations and "
			 "the ledger alone");
	if (!l->is_on)
		return;
	(void)snprintf(l->user_agent, sizeof(l->user_agent), "pinfold-agent/%s", l->config.version);
	(void)snprintf(l->selector, sizeof(l->selector), "fieldSelector=metadata.name%%3D" PRI_STR,
		       FMT_STR(l->name));
	l->node_config = (struct watch_config){
		.path = "/api/v1/nodes", .selector = l->selector, .page = 1, .frees_memory = true
	};
	m->events = &l->events;
	m->link = l;
	timer_init(&l->timer, loop, on_timer);
	timer_start(&l->timer, 0, 0);
}

/* A start, and every new connection, need much once. */
static void trim(struct node_sync *l)
{
	const uint64_t connections = l->is_open ? l->api.http.connections : 0;

	if (l->n_ticks++ % TRIM_TICKS != 0 || l->n_ticks == 1)
		return;
	if (connections == l->settled && connections + 1 != l->trimmed) {
		l->trimmed = connections + 1;
		trim_memory();
	}
	l->settled = connections;
}

void node_sync_tick(struct node_sync *l)
{
	trim(l);
	if (!l->is_on || l->is_leaving)
		return;
	turn(l);
	tell(l);
	if (l->holds_ready && now_ms(l) > REGISTER_WAIT_MS + l->announced_ms) {
		log_warning("the Node could not be created in time; the kubelet may start");
		announce_now(l);
	}
}

void node_sync_announce(struct node_sync *l)
{
	l->holds_ready = true;
	l->announced_ms = now_ms(l);
	if (!l->is_on || !l->config.registers)
		announce_now(l);
}

enum permission node_sync_permission(const struct node_sync *l, struct str namespace)
{
	return namespace_allowlist_check(&l->allowlist, namespace);
}

/* End. */

void node_sync_leave(struct node_sync *l)
{
	if (!l->is_open || l->is_busy || !l->node_watch.is_current || !l->observed.exists)
		return;
	l->is_leaving = true;
	timer_stop(&l->timer);
	turn(l);
	if (!l->is_busy)
		return;
	timer_start(&l->timer, LEAVE_MS, 0);
	loop_run(l->loop);
}

void node_sync_close(struct node_sync *l)
{
	if (l->manager) {
		l->manager->events = NULL;
		l->manager->link = NULL;
	}
	if (!l->is_open)
		return;
	watch_close(&l->node_watch);
	watch_close(&l->namespace_watch);
	api_cancel(&l->call);
	api_cancel(&l->event_call);
	api_close(&l->api);
}

void node_sync_done(struct node_sync *l)
{
	if (l->is_open) {
		watch_done(&l->node_watch);
		watch_done(&l->namespace_watch);
		api_done(&l->api);
	}
	namespace_allowlist_done(&l->allowlist);
	event_queue_done(&l->events);
	arena_done(&l->arena);
}
