#pragma once

/* The agent's link to its cluster: keeps what the Node object says about us (node_plan.h), watches
 * which namespaces may use the reserved CPUs (permits.h), and sends Events (notices.h). All of it
 * in the agent's one thread, none of it while the runtime waits for an answer, and nothing of
 * pinning depends on it: while the API server is away everything goes on, and it is tried again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/api.h"
#include "cluster/kubeconfig.h"
#include "cluster/watch.h"
#include "namespace_allowlist.h"
#include "net/loop.h"
#include "node_plan.h"
#include "pin/event_queue.h"

struct err;
struct manager;

struct node_sync_config {
	bool is_off;		/* --no-cluster */
	const char *kubeconfig; /* NULL: as a pod of the cluster, or without one */
	const char *context;
	const char *node_name; /* NULL: the environment's NODE_NAME, or the host's name */
	const char *version;   /* of this program */
	bool registers;	       /* creates the Node when there is none at the start */
	bool taints_unready;
	bool is_legacy;		   /* dialect of the namespaces */
	const char *const *labels; /* of a Node that we create */
	const char *const *taints; /* likewise */
	size_t n_labels, n_taints;
};

struct node_sync_stats {
	uint64_t status_patches, taint_patches, registrations, failures;
};

struct node_sync {
	struct node_sync_config config;
	struct manager *manager;
	struct loop *loop;
	struct arena arena; /* of the access and the names */
	struct kubeconfig kubeconfig;
	struct str name;
	char user_agent[64], selector[512];
	struct watch_config node_config;
	struct api api;
	struct watch node_watch, namespace_watch;
	struct timer timer; /* tries again: to read the kubeconfig, or to write the Node */

	struct node_observed observed;
	struct node_amounts written; /* what the Node last got from us */
	struct api_call call;
	uint64_t written_ms, heartbeat_ms; /* last write, last heartbeat */
	uint64_t taint_after_ms;	   /* until then we may not touch it */
	uint64_t unready_ms;		   /* since when; 0: ready */
	uint64_t write_failures;	   /* of cgroups, as last seen... */
	uint64_t writes_failed_ms;	   /* ...and when that last changed */

	struct namespace_allowlist allowlist;
	struct event_queue events;
	struct api_call event_call;
	const struct event *event_in_flight; /* NULL: no Event is under way */
	uint64_t event_after_ms;

	uint64_t announced_ms; /* since when holds_ready */
	uint64_t complained_ms, complaints;
	struct node_sync_stats stats;
	uint64_t n_ticks;
	uint64_t trimmed, settled; /* connections after which memory was given back, or will be */

	/* The namespaces are known for the first time, and some pod has more than they allow. */
	void (*on_distrust)(struct node_sync *l);

	enum { NODE_CALL_STATUS, NODE_CALL_TAINT, NODE_CALL_REGISTER } doing;
	uint32_t event_in_flight_count;
	struct backoff backoff;
	bool is_on;	     /* there is a cluster to talk to, sooner or later */
	bool is_open;	     /* the API client is there */
	bool existed;	     /* since we run: a Node that was deleted is not ours to bring back */
	bool is_busy;	     /* writing the Node */
	bool holds_ready;    /* the service manager waits for the Node */
	bool said_forbidden; /* that namespaces are not ours to read */
	bool is_leaving;
};

/* Where the API server is, and which Node is ours. -ENOENT where there is no cluster. */
int node_sync_find(const struct node_sync_config *config, struct arena *a, struct kubeconfig *ret,
		   struct str *ret_name, struct err *err);

/* Checks the configuration; -EINVAL for what can never work. Nothing is connected yet, and where
 * there is no cluster nothing ever will be. */
int node_sync_init(struct node_sync *l, const struct node_sync_config *config, struct err *err);

/* On the agent's loop. The manager tells us what happened from here on. */
void node_sync_start(struct node_sync *l, struct loop *loop, struct manager *m);

void node_sync_tick(struct node_sync *l); /* once a second */

/* Tells the service manager that we are ready: at once, or with `registers` when the Node is there
 * or it takes too long. */
void node_sync_announce(struct node_sync *l);

enum permission node_sync_permission(const struct node_sync *l, struct str namespace);

/* A pod runs on the management CPUs that would be refused now. Until the namespaces are known, pods
 * are accepted when they look converted. Decides by classify_permission(), so a static pod is
 * trusted whatever its namespace says. */
bool node_sync_has_untrusted_pod(const struct manager *m);

/* For `status` and metrics: {"cluster":{"node":"worker-0","connected":true,...}}. */
void node_sync_describe(const struct node_sync *l, yyjson_mut_doc *doc, yyjson_mut_val *root);
void node_sync_metrics(const struct node_sync *l, struct strbuf *b);

/* node_desired.c: what the Node shall say now. The message lives in the arena. */
struct node_desired node_sync_desired(struct node_sync *l, struct arena *a);

/* Says on the Node that we stop; waits for that a moment. Runs the loop. */
void node_sync_leave(struct node_sync *l);
void node_sync_close(struct node_sync *l);
void node_sync_done(struct node_sync *l); /* after the loop is done */

/* node_uninstall.c: takes from the Node all that is ours. 0 also where there is no cluster or no
 * such Node. */
int node_sync_uninstall(const struct node_sync_config *config, struct err *err);
