#pragma once

/* The PodResources v1 service on a Unix socket: List, Get and GetAllocatableResources for clients
 * that otherwise connect to the kubelet's socket. Runs on the agent's loop and never blocks: a call
 * that needs the kubelet completes with its response or at the deadline. Before a kubelet has
 * responded once, only CPUs are reported; afterwards its absence is an error, because an exporter
 * would take missing devices for free ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kubelet_client.h"
#include "net/loop.h"
#include "response.h"

struct arena;
struct err;
struct podres_query;

#define PODRES_MAX_CONNECTIONS 32

/* The present state of the agent; lives in `a` or longer. */
typedef void (*podres_snapshot_fn)(void *user, struct arena *a, struct podres_snapshot *ret);

struct podres_settings {
	const char *path;    /* socket to listen on; an existing one is replaced */
	const char *kubelet; /* its socket; NULL: it is not queried */
	podres_snapshot_fn snapshot;
	void *user;
};

struct podres_server {
	struct loop *loop;
	struct podres_settings settings;
	struct listener listener;
	struct kubelet_client kubelet;
	bool has_kubelet; /* it has responded once */
	unsigned n_connections;
	TAILQ_HEAD(podres_conns, podres_conn) conns;
	struct podres_query *waiting; /* oldest first */
};

/* The texts of `settings` must outlive it. */
int podres_server_init(struct podres_server *s, struct loop *loop,
		       const struct podres_settings *settings, struct err *err);
void podres_server_done(struct podres_server *s); /* before the loop is done */
