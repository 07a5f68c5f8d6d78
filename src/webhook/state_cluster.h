#pragma once

/* The cluster as its API server describes it: caches kept up to date by watches on the main
 * thread's loop, read by the threads that serve without locks. */

#include "base/arena.h"
#include "cluster/access.h"
#include "cluster/api.h"
#include "cluster/cache.h"
#include "cluster/facts.h"
#include "source.h"

struct err;

struct state_cluster_config {
	const char *kubeconfig; /* NULL: as a pod of the cluster */
	const char *context;	/* of the kubeconfig; NULL: the current one */
	const char *version;	/* of this program, for the server's logs */
	struct admission_settings settings;
};

struct state_cluster {
	struct state_source source;
	struct arena arena; /* of the access */
	struct access access;
	struct admission_settings settings;
	char user_agent[64];
	struct api api;
	struct cache cache;
	struct facts facts;
	uint64_t complained_ms; /* about the API server; not with every try */
	uint64_t complaints;
	bool is_started;
};

/* Nothing is connected yet. */
int state_cluster_init(struct state_cluster *s, const struct state_cluster_config *config,
		       struct err *err);
void state_cluster_done(struct state_cluster *s);
