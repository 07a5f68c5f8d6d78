#pragma once

/* The state of the running operator, shared by the files that act: operator.c (life), informers.c
 * (watches and stores), endpoints.c (metrics and probes). Decisions do not include it. */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cluster/api.h"
#include "cluster/kubeconfig.h"
#include "cluster/leader.h"
#include "cluster/watch.h"
#include "kinds.h"
#include "namespace_scan.h"
#include "net/loop.h"
#include "net/small_server.h"
#include "nodesync/api_failures.h"
#include "object_store.h"
#include "operator.h"
#include "reconcile.h"
#include "writer.h"

struct operator_informer {
	struct watch watch;
	struct operator_daemon *daemon;
	enum operator_kind kind;
};

struct operator_daemon {
	const struct operator_config *config;
	struct arena arena; /* of the configuration */
	struct kubeconfig kubeconfig;
	char user_agent[64];

	/* Of one term, from the start or the loss of the Lease until its next loss. */
	struct loop loop;
	struct api api;
	struct leader_config leader_config;
	struct leader leader;
	struct small_server http;
	struct signal_source terminate, interrupt;
	struct timer timer;	 /* the next reconcile */
	struct timer leave;	 /* waits until the Lease is released */
	uint64_t leave_until_ms; /* 0: the operator does not stop */
	bool is_acting;		 /* it is the leader, or --dry-run */
	struct err failed;	 /* why a dry run ended */
	bool is_ended;		 /* by a signal, or the dry run is complete */
	struct operator_informer informers[OPERATOR_WATCHED];
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct operator_writer writer;
	struct namespace_scan scan;
	struct reconcile_memory memory;
	uint64_t reconciled_ms;

	/* Counted from the start. */
	struct api_failures failures;
	uint64_t terms, reconciles, reconcile_us;
	struct reconcile_figures figures; /* of the last reconcile */
};

/* informers.c */
bool operator_watches(const struct operator_daemon *op, enum operator_kind kind);
void operator_watch_start(struct operator_daemon *op);
void operator_watch_close(struct operator_daemon *op);
void operator_watch_done(struct operator_daemon *op);
bool operator_watch_is_synced(const struct operator_daemon *op);
uint64_t operator_watch_age_ms(const struct operator_daemon *op, enum operator_kind kind);
/* Removes the pods of nodes that are not drained: the next drain must not see old ones. */
void operator_forget_pods(struct operator_daemon *op, const struct reconcile_result *result);
/* The response to a write or to a read on demand. */
void operator_store_response(struct operator_daemon *op, const struct write_done *done);

/* operator.c */
void operator_trigger(struct operator_daemon *op); /* something has changed: reconcile soon */
void operator_give_up(struct operator_daemon *op, const struct err *err); /* ends a dry run */

/* endpoints.c: a small_handler_fn; the context is the struct operator_daemon. */
void operator_handle(const struct small_request *received, struct small_response *response,
		     void *context);
