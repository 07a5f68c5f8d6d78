#include "use_meter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu_use.h"
#include "kube/manifest.h"
#include "kube/names.h"
#include "net/loop.h"
#include "shown_state.h"

#define RETRY_MS 10000
#define MAX_BYTES ((size_t)1 << 20) /* 8192 CPUs have less; an agent may be an attacker's */
#define AGENT_PODS "/api/v1/namespaces/" NAME_NAMESPACE_AGENT "/pods"

/* --- where the counters are --- */

static int64_t metrics_port(yyjson_val *pod)
{
	yyjson_val *container, *port;
	int64_t n = 0;

	DOC_EACH_ITEM (doc_find(pod, "/spec/containers"), container)
		DOC_EACH_ITEM (doc_get(container, STR("ports")), port)
			if (str_eq(doc_str(doc_get(port, STR("name"))), STR("metrics")))
				(void)doc_int(doc_get(port, STR("containerPort")), &n);
	return n;
}

int use_meter_path(yyjson_val *pods, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_val *pod;

	DOC_EACH_ITEM (doc_get(pods, STR("items")), pod) {
		const int64_t port = metrics_port(pod);

		if (port <= 0 || !str_eq(doc_str(doc_find(pod, "/status/phase")), STR("Running")))
			continue;
		*ret = str_printf(a, AGENT_PODS "/" PRI_STR ":%" PRId64 "/proxy/cpus",
				  FMT_STR(object_name(pod)), port);
		return 0;
	}
	return err_set(err, ENOENT,
		       "no agent runs on the node as a pod of namespace " NAME_NAMESPACE_AGENT);
}

/* --- one node --- */

static void forget(struct node_measurement *m)
{
	/* Not what was measured long ago. */
	if (shown_state_find_node(m->of->state, str_from(m->node)))
		shown_state_set_use(m->of->state, str_from(m->node), STR(""));
	free(m->node);
	free(m->path);
	free(m->counters);
	*m = (struct node_measurement){ 0 };
}

static void fail(struct node_measurement *m, const struct err *err)
{
	m->why = *err;
	m->next_ms = loop_now_ms(m->of->loop) + RETRY_MS;
	free(m->path); /* the pod may be another one */
	m->path = NULL;
}

static void on_counters(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_measurement *m = container_of(call, struct node_measurement, call);
	struct use_meter *u = m->of;
	CLEANUP(arena_done) struct arena a;
	struct str use;

	arena_init(&a, 0);
	m->is_active = false;
	if (!object) {
		fail(m, err);
		return;
	}
	m->why = (struct err){ 0 };
	use = cpu_use_read(m->counters, doc_str(object), &a);
	if (!use.n || !shown_state_find_node(u->state, str_from(m->node)))
		return;
	shown_state_set_use(u->state, str_from(m->node), use);
	u->on_use(u->context, str_from(m->node));
}

static void read_counters(struct node_measurement *m)
{
	m->is_active = true;
	m->next_ms = loop_now_ms(m->of->loop) + USE_METER_PERIOD_MS;
	api_start(m->of->api, &m->call,
		  &(struct api_request){ .method = "GET",
					 .path = str_from(m->path),
					 .accept = "*/*",
					 .is_text = true,
					 .max_bytes = MAX_BYTES },
		  on_counters);
}

static void on_pods(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_measurement *m = container_of(call, struct node_measurement, call);
	struct err own = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct str path;

	arena_init(&a, 0);
	m->is_active = false;
	if (!object || use_meter_path(object, &a, &path, &own) < 0) {
		fail(m, object ? &own : err);
		return;
	}
	m->path = strndup(path.p, path.n);
	if (!m->path)
		abort(); /* D21 */
	read_counters(m);
}

/* A name of the API server needs no escape. */
static void find_pod(struct node_measurement *m)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	m->is_active = true;
	api_start(m->of->api, &m->call,
		  &(struct api_request){
			  .method = "GET",
			  .path = str_printf(&a,
					     AGENT_PODS "?labelSelector=app.kubernetes.io%%2Fname"
							"%%3D" NAME_AGENT
							"&fieldSelector=spec.nodeName%%3D%s",
					     m->node) },
		  on_pods);
}

/* --- all of them --- */

static struct node_measurement *find(struct use_meter *u, struct str node)
{
	for (size_t i = 0; i < USE_METER_MAX; i++)
		if (u->places[i].node && str_eq(str_from(u->places[i].node), node))
			return &u->places[i];
	return NULL;
}

static struct node_measurement *add(struct use_meter *u, struct str node)
{
	for (size_t i = 0; i < USE_METER_MAX; i++) {
		struct node_measurement *m = &u->places[i];

		if (m->node)
			continue;
		*m = (struct node_measurement){ .of = u,
						.node = strndup(node.p, node.n),
						.counters = calloc(1, sizeof(*m->counters)) };
		if (!m->node || !m->counters)
			abort(); /* D21 */
		return m;
	}
	return NULL;
}

int use_meter_ask(struct use_meter *u, struct str node, struct err *err)
{
	struct node_measurement *m = find(u, node);

	if (!m)
		m = add(u, node);
	if (!m)
		return err_set(err, EBUSY, "%d other nodes are being measured", USE_METER_MAX);
	m->asked_ms = loop_now_ms(u->loop);
	if (m->why.code)
		return err_set(err, m->why.code, "%s", m->why.msg);
	return 0;
}

void use_meter_tick(struct use_meter *u)
{
	const uint64_t now = loop_now_ms(u->loop);

	for (size_t i = 0; i < USE_METER_MAX; i++) {
		struct node_measurement *m = &u->places[i];

		if (!m->node || m->is_active)
			continue;
		if (now - m->asked_ms > USE_METER_ASKED_MS)
			forget(m);
		else if (now >= m->next_ms && m->path)
			read_counters(m);
		else if (now >= m->next_ms)
			find_pod(m);
	}
}

void use_meter_close(struct use_meter *u)
{
	for (size_t i = 0; i < USE_METER_MAX; i++) {
		if (u->places[i].is_active)
			api_cancel(&u->places[i].call);
		if (u->places[i].node)
			forget(&u->places[i]);
	}
}
