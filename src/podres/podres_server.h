#pragma once

/* PodResources v1 on our own Unix socket: List, Get and GetAllocatableResources for anybody who
 * speaks to a kubelet's. Lives on the agent's loop and never waits: a question that needs the
 * kubelet is answered when the kubelet has answered, or its time is over. While no kubelet has been
 * seen there are only CPUs; one that was seen and is away is an error, because an exporter would
 * take missing devices for free ones. */

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

/* What the agent knows at this moment; lives in `a` or longer. */
typedef void (*podres_snapshot_fn)(void *user, struct arena *a, struct podres_snapshot *ret);

struct podres_settings {
	const char *path;    /* our socket; replaced when it is there */
	const char *kubelet; /* its socket; NULL: never asked */
	podres_snapshot_fn snapshot;
	void *user;
};

struct podres_server {
	struct loop *loop;
	struct podres_settings settings;
	struct listener listener;
	struct kubelet_client kubelet;
	bool has_kubelet; /* it answered once */
	unsigned n_connections;
	TAILQ_HEAD(podres_conns, podres_conn) conns;
	struct podres_query *waiting; /* in the order they came */
};

/* The settings' texts are the caller's. */
int podres_server_init(struct podres_server *s, struct loop *loop,
		       const struct podres_settings *settings, struct err *err);
void podres_server_done(struct podres_server *s); /* before the loop is */
