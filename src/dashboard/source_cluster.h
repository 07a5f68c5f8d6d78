#pragma once

/* Follows an API server: Nodes, NodePartitions, profiles and pods for the shown state; namespaces,
 * the cluster flag and feature gates for explanations. It only reads, with one list and one watch
 * for each kind. Belongs to the thread of its loop. */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "cluster/cache.h"
#include "cluster/watch.h"
#include "nodesync/api_failures.h"
#include "shown_state.h"

struct err;
struct kubeconfig;
struct loop;
struct source_cluster;

enum source_kind {
	SOURCE_NODES,
	SOURCE_PARTITIONS,
	SOURCE_PROFILES,
	SOURCE_PODS,
	SOURCE_NAMESPACES,
	SOURCE_INFRASTRUCTURE,
	SOURCE_FEATURE_GATES,
	SOURCE__COUNT
};

struct source_watch {
	struct watch watch;
	struct source_cluster *source;
	enum source_kind kind;
	bool is_forbidden;
};

/* A pod that was read on demand; `object` is NULL when there is an error. */
typedef void (*source_pod_fn)(void *context, uint64_t connection, yyjson_val *object,
			      const struct err *err);

#define SOURCE_READING_MAX 16

struct source_reading {
	struct api_call call;
	struct source_cluster *source;
	uint64_t connection;
	bool is_active;
};

struct source_cluster {
	struct shown_state *state;
	struct loop *loop;
	struct api api;
	struct cache cache;
	struct source_watch watches[SOURCE__COUNT];
	struct api_failures failures;
	source_pod_fn on_pod; /* set by the owner, like the next */
	void *context;
	struct source_reading reading[SOURCE_READING_MAX]; /* pods */
	bool is_open;
};

/* `kubeconfig` and `state` must outlive it. */
int source_cluster_open(struct source_cluster *s, struct loop *loop,
			const struct kubeconfig *kubeconfig, const char *user_agent,
			struct err *err);
void source_cluster_close(struct source_cluster *s);
void source_cluster_done(struct source_cluster *s); /* after the loop is done */

/* on_pod follows later. -EBUSY while too many are read. */
int source_cluster_read_pod(struct source_cluster *s, const struct shown_pod *pod,
			    uint64_t connection, struct err *err);

/* A Pod object of an API server as it is shown; false for one without a name. */
bool source_pod_of(yyjson_val *object, struct arena *a, struct shown_pod *ret);
