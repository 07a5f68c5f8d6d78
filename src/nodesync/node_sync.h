#pragma once

/* The agent in its cluster: connects the parts that keep its Node (object_watch.h, node_desired.h,
 * node_writer.h), the namespace allowlist (permission_source.h) and Events (event_sender.h). All of
 * it runs in the agent's one thread, and nothing of pinning waits for it: while the API server is
 * unreachable, containers are placed as before and requests are retried. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api_failures.h"
#include "event_sender.h"
#include "node_connection.h"
#include "node_desired.h"
#include "node_sync_config.h"
#include "node_writer.h"
#include "object_watch.h"
#include "partition_desired.h"
#include "partition_writer.h"
#include "permission_source.h"
#include "profile_watch.h"
#include "trim_schedule.h"

struct err;
struct manager;
struct nrt_node;

struct node_sync {
	struct node_sync_config config;
	int run_fd; /* directory for the last known permissions; -1, the default: not kept */
	struct manager *manager;
	struct loop *loop;
	struct node_connection connection;
	struct api_failures failures;
	struct node_desired_source desired;
	struct object_watch node_watch;
	struct node_writer writer;
	struct permission_source permissions;
	struct event_sender events;
	struct profile_watch profiles;
	struct partition_desired_source partition_source;
	struct partition_writer partition;
	char *labels; /* of the Node, as JSON; NULL: it was never seen */
	struct trim_schedule trim;
	uint64_t ready_deadline_ms; /* READY=1 waits for the Node until then; 0: it was sent */

	/* The permissions of namespaces have changed, and some pod is in the wrong pool: every pod
	 * has to be classified again. */
	void (*on_permissions_changed)(struct node_sync *s);
	/* The profiles of the cluster or the labels of the Node have changed; both are known. */
	void (*on_profiles_changed)(struct node_sync *s);
};

/* Checks the configuration; -EINVAL for what can never work. Connects to nothing. */
int node_sync_init(struct node_sync *s, const struct node_sync_config *config, struct err *err);

/* On the agent's loop. From here on the manager's Events are queued here. */
void node_sync_start(struct node_sync *s, struct loop *loop, struct manager *m);

void node_sync_tick(struct node_sync *s); /* once a second */

/* Reports READY=1 to the service manager: at once, or with `registers` when the Node exists or 20
 * seconds have passed. Units that start after the agent, such as the kubelet, wait for it. */
void node_sync_send_ready(struct node_sync *s);

enum permission node_sync_permission(const struct node_sync *s, struct str namespace,
				     struct str type);

/* A pod runs on the management CPUs whose namespace does not allow it; a pod does not although its
 * namespace allows it. Both decide by classify_permission(). */
bool node_sync_has_untrusted_pod(const struct manager *m);
bool node_sync_has_permitted_pod(const struct manager *m);

/* The agent's Node and the API client; false while the Node is not known to exist. */
bool node_sync_get_node(struct node_sync *s, struct nrt_node *ret);

/* The profiles have to be decided on again, because the machine has changed. */
void node_sync_recheck_profiles(struct node_sync *s);

/* For `status` and metrics: {"cluster":{"node":"worker-0","connected":true,...}}. */
void node_sync_describe(const struct node_sync *s, yyjson_mut_doc *doc, yyjson_mut_val *root);
void node_sync_metrics(const struct node_sync *s, struct strbuf *b);

/* Writes to the Node that the agent stops; runs the loop for at most two seconds. */
void node_sync_leave(struct node_sync *s);
void node_sync_close(struct node_sync *s);
void node_sync_done(struct node_sync *s); /* after the loop is done */

/* node_uninstall.c: removes resources, condition and taint from the Node. 0 also when there is no
 * cluster or no such Node. */
int node_sync_uninstall(const struct node_sync_config *config, struct err *err);
