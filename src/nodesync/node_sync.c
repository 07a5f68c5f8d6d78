/* Wiring. on_open() starts the parts when the kubeconfig was read; a change of the Node, of the
 * manager's state or of time ends in update_node(). Close cancels requests while the loop still
 * runs; done frees memory that closing sources still use, after the loop. */

#include "node_sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/notify.h"
#include "base/trim.h"
#include "nrt_sync.h"
#include "pin/manager.h"

#define READY_WAIT_MS 20000 /* the API server may run on this node and need the kubelet */

static void send_ready_now(struct node_sync *s)
{
	if (s->ready_deadline_ms)
		notify_manager("READY=1");
	s->ready_deadline_ms = 0;
}

/* Before the first list is complete, a Node that was not seen may still exist. */
static void update_node(struct node_sync *s)
{
	if (s->connection.is_open && s->node_watch.watch.is_synced)
		node_writer_update(&s->writer);
	if (s->writer.observed.exists)
		send_ready_now(s);
}

/* The labels of a deleted Node stay: the node runs on. */
static void take_labels(struct node_sync *s, yyjson_val *node)
{
	yyjson_val *labels = doc_find(node, "/metadata/labels");
	CLEANUP(arena_done) struct arena a;
	struct str text = STR("{}");

	arena_init(&a, 0);
	if (labels && doc_write_val(labels, false, &a, &text, NULL) < 0)
		return;
	if (s->labels && str_eq(str_from(s->labels), text))
		return;
	free(s->labels);
	s->labels = strndup(text.p, text.n);
	if (!s->labels)
		abort();
	s->profiles.is_changed = true;
}

/* Not in the midst of a list: a profile may seem to be there beside the one that replaces it. */
static void update_profiles(struct node_sync *s)
{
	struct profile_watch *w = &s->profiles;

	if (!w->is_known || w->is_listing || !w->is_changed || !s->labels)
		return;
	w->is_changed = false;
	if (s->on_profiles_changed)
		s->on_profiles_changed(s);
}

void node_sync_recheck_profiles(struct node_sync *s)
{
	s->profiles.is_changed = true;
}

static void on_node(struct object_watch *w, yyjson_val *node)
{
	struct node_sync *s = container_of(w, struct node_sync, node_watch);

	node_writer_observe(&s->writer, node);
	if (node)
		take_labels(s, node);
	/* NULL at the beginning of a list does not mean that the Node is gone: on_node_synced()
	 * decides. */
	if (node)
		update_node(s);
}

static void on_node_synced(struct object_watch *w)
{
	struct node_sync *s = container_of(w, struct node_sync, node_watch);

	log_info("watching the Node", LOG_STR("node", w->name),
		 LOG_STR("exists", s->writer.observed.exists ? STR("yes") : STR("no")));
	update_node(s);
}

static bool is_permitted(const struct manager *m, const struct pod_entry *pod)
{
	return pod->type && classify_permission(&m->rules, pod->is_local, str_from(pod->namespace),
						str_from(pod->type)) == PERMISSION_GRANTED;
}

bool node_sync_has_untrusted_pod(const struct manager *m)
{
	const struct registry *r = &m->registry;

	for (size_t i = 0; i < r->n_pods; i++)
		if (r->pods[i]->is_management && !is_permitted(m, r->pods[i]))
			return true;
	return false;
}

bool node_sync_has_permitted_pod(const struct manager *m)
{
	const struct registry *r = &m->registry;

	for (size_t i = 0; i < r->n_pods; i++)
		if (!r->pods[i]->is_management && is_permitted(m, r->pods[i]))
			return true;
	return false;
}

static void reclassify_pods(struct node_sync *s)
{
	if (s->on_permissions_changed)
		s->on_permissions_changed(s);
}

static void on_permissions_known(struct permission_source *p)
{
	struct node_sync *s = container_of(p, struct node_sync, permissions);

	if (node_sync_has_untrusted_pod(s->manager) || node_sync_has_permitted_pod(s->manager))
		reclassify_pods(s);
}

static struct str server_of(const struct kubeconfig *k, struct arena *a)
{
	return str_printf(a, "https://%s:%u%s", k->host, k->port, k->prefix ? k->prefix : "");
}

/* The permissions that an earlier agent knew, for the time until the API server responds. */
static void restore_permissions(struct node_sync *s)
{
	struct node_connection *c = &s->connection;
	struct err err = { 0 };
	int r;

	if (s->run_fd < 0 || s->config.ignores_namespaces || !c->kubeconfig.host)
		return;
	r = namespace_allowlist_read(&s->permissions.namespaces.allowlist, s->run_fd,
				     server_of(&c->kubeconfig, &c->arena), &err);
	if (r < 0 && r != -ENOENT)
		log_warning("cannot use the last known permissions of namespaces, ignoring",
			    LOG_ERR(&err));
	if (r == 0)
		log_info("using the last known permissions of namespaces",
			 LOG_INT("allowed", s->permissions.namespaces.allowlist.n));
}

/* A grant takes effect on running pods, too: their namespace may have been created with them. */
static void update_permissions(struct node_sync *s)
{
	struct namespace_allowlist *list = &s->permissions.namespaces.allowlist;
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };

	arena_init(&a, 0);
	if (!list->is_changed || !list->is_known)
		return;
	list->is_changed = false;
	if (node_sync_has_permitted_pod(s->manager))
		reclassify_pods(s);
	if (s->run_fd >= 0 &&
	    namespace_allowlist_write(list, s->run_fd, server_of(&s->connection.kubeconfig, &a),
				      &err) < 0)
		log_warning("cannot write the permissions of namespaces", LOG_ERR(&err));
}

/* A kept profile may be that of a role which the Node no longer has. Pods that were scheduled to
 * its pools in the meantime could not be taken back. */
static struct node_desired desired(void *data, bool is_leaving, struct arena *a)
{
	struct node_sync *s = data;
	struct node_desired want =
		node_desired_read(&s->desired, loop_now_ms(s->loop), is_leaving, a);

	want.is_undecided = s->manager->status.pools.origin == POOLS_FROM_PROFILE &&
			    profile_watch_is_undecided(&s->profiles);
	return want;
}

int node_sync_init(struct node_sync *s, const struct node_sync_config *config, struct err *err)
{
	const struct node_registration registration = { STR(""), config->labels, config->n_labels,
							config->taints, config->n_taints };
	int r;

	*s = (struct node_sync){
		.config = *config,
		.run_fd = -1,
		.desired.taints_unready = config->taints_unready,
		.permissions = { .on_known = on_permissions_known,
				 .namespaces.allowlist.is_legacy = config->is_legacy },
		.node_watch = { .on_object = on_node, .on_synced = on_node_synced },
	};
	event_sender_init(&s->events);
	/* Also without --register: a wrong flag is an error before it matters. */
	r = config->is_off ? 0 : node_registration_check(&registration, err);
	return r < 0 ? r : node_connection_init(&s->connection, &s->config, err);
}

static struct node_partition_status partition_status(void *data, struct arena *a)
{
	struct node_sync *s = data;
	const struct node_desired node =
		node_desired_read(&s->desired, loop_now_ms(s->loop), false, a);

	return partition_desired(&s->partition_source, node.reason, a);
}

static void on_open(struct node_connection *c)
{
	static const struct object_watch_config node_watch_config = { "/api/v1/nodes",
								      "watch the Node", false };
	struct node_sync *s = container_of(c, struct node_sync, connection);

	node_writer_start(&s->writer, &c->api);
	event_sender_start(&s->events, &c->api, c->node_name, &s->failures);
	object_watch_start(&s->node_watch, &c->api, &node_watch_config, c->node_name, &s->failures);
	partition_writer_start(&s->partition, &c->api, c->node_name,
			       &(struct partition_writer_config){ partition_status, s,
								  &s->failures });
	profile_watch_start(&s->profiles, &c->api, &s->failures);
	if (!s->config.ignores_namespaces)
		permission_source_start(&s->permissions, &c->api, &s->failures);
}

void node_sync_start(struct node_sync *s, struct loop *loop, struct manager *m)
{
	const struct node_sync_config *config = &s->config;

	s->loop = loop;
	s->manager = m;
	s->desired.manager = m;
	s->partition_source.manager = m;
	s->partition_source.version = str_from(config->version);
	if (!s->connection.is_configured) {
		if (!config->is_off)
			log_info("not in a cluster and no --kubeconfig, only --allow-namespace "
				 "permits pods to use the management CPUs");
		return;
	}
	node_writer_init(&s->writer, &(struct node_writer_config){
					     .registration = { s->connection.node_name,
							       config->labels, config->n_labels,
							       config->taints, config->n_taints },
					     .registers = config->registers,
					     .desired = desired,
					     .desired_data = s,
					     .events = &s->events.queue,
					     .failures = &s->failures });
	m->events = &s->events.queue;
	m->status.link = s;
	restore_permissions(s);
	node_connection_start(&s->connection, loop, &s->failures, on_open);
}

void node_sync_tick(struct node_sync *s)
{
	const struct node_connection *c = &s->connection;

	if (trim_schedule_tick(&s->trim, c->is_open ? c->api.http.connections : 0))
		trim_memory();
	if (!c->is_configured)
		return;
	permission_source_tick(&s->permissions);
	update_permissions(s);
	update_profiles(s);
	update_node(s);
	partition_writer_set_node(&s->partition,
				  s->writer.observed.exists ? s->writer.observed.uid : "");
	partition_writer_update(&s->partition);
	event_sender_tick(&s->events);
	if (s->ready_deadline_ms && loop_now_ms(s->loop) > s->ready_deadline_ms) {
		log_warning("the Node was not created in time, reporting ready so that the kubelet "
			    "can start");
		send_ready_now(s);
	}
}

void node_sync_send_ready(struct node_sync *s)
{
	s->ready_deadline_ms = loop_now_ms(s->loop) + READY_WAIT_MS;
	if (!s->connection.is_configured || !s->config.registers)
		send_ready_now(s);
}

enum permission node_sync_permission(const struct node_sync *s, struct str namespace,
				     struct str type)
{
	return namespace_allowlist_check(&s->permissions.namespaces.allowlist, namespace, type);
}

bool node_sync_get_node(struct node_sync *s, struct nrt_node *ret)
{
	if (!s->connection.is_open || !s->writer.observed.exists)
		return false;
	*ret = (struct nrt_node){ &s->connection.api, s->connection.node_name,
				  str_from(s->writer.observed.uid) };
	return true;
}

void node_sync_leave(struct node_sync *s)
{
	/* Without a watch the server is most likely unreachable, and waiting for it would only
	 * delay the end. */
	if (s->connection.is_open && s->node_watch.watch.is_current)
		node_writer_leave(&s->writer);
}

void node_sync_close(struct node_sync *s)
{
	if (s->manager) {
		/* The manager lives longer and must not use these any more. */
		s->manager->events = NULL;
		s->manager->status.link = NULL;
	}
	if (s->connection.is_open) {
		object_watch_close(&s->node_watch);
		partition_writer_close(&s->partition);
		profile_watch_close(&s->profiles);
		permission_source_close(&s->permissions);
		node_writer_close(&s->writer);
		event_sender_close(&s->events);
	}
	node_connection_close(&s->connection);
}

void node_sync_done(struct node_sync *s)
{
	object_watch_done(&s->node_watch);
	partition_writer_done(&s->partition);
	node_connection_done(&s->connection);
	permission_source_done(&s->permissions);
	event_sender_done(&s->events);
	profile_watch_done(&s->profiles);
	free(s->labels);
	s->labels = NULL;
}
