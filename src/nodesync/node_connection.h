#pragma once

/* How the agent reaches its API server: finds the kubeconfig and the name of its Node, waits for a
 * kubeconfig that does not exist yet, and owns the API client. What is requested is decided by the
 * other parts of nodesync. */

#include <stdbool.h>

#include "base/arena.h"
#include "cluster/api.h"
#include "cluster/backoff.h"
#include "cluster/kubeconfig.h"
#include "net/loop.h"

struct api_failures;
struct err;
struct node_sync_config;

struct node_connection {
	const struct node_sync_config *config;
	struct loop *loop;
	struct arena arena; /* of the kubeconfig and the name */
	struct kubeconfig kubeconfig;
	struct str node_name;
	char user_agent[64];
	struct api api;
	struct timer retry;
	struct backoff backoff;
	struct api_failures *failures;
	void (*on_open)(struct node_connection *c);
	bool is_configured; /* there is a cluster */
	bool is_open;	    /* `api` may be used */
};

/* The kubeconfig and the name of the Node. -ENOENT when there is no cluster. */
int node_connection_find(const struct node_sync_config *config, struct arena *a,
			 struct kubeconfig *ret, struct str *ret_name, struct err *err);

/* The address in the kubelet's kubeconfig at `path` comes first, the present one second. Nothing
 * changes when the file cannot be used. */
void node_connection_prefer_kubelet(const char *path, struct arena *a, struct kubeconfig *ret);

/* -EINVAL for what can never work. Connects to nothing; `config` must outlive it. */
int node_connection_init(struct node_connection *c, const struct node_sync_config *config,
			 struct err *err);

/* Only if is_configured. `on_open` is called once, when the kubeconfig was read. */
void node_connection_start(struct node_connection *c, struct loop *loop,
			   struct api_failures *failures,
			   void (*on_open)(struct node_connection *c));
void node_connection_close(struct node_connection *c);
void node_connection_done(struct node_connection *c); /* after the loop is done */
