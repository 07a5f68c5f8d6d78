#pragma once

/* The cluster as its API server describes it: caches kept up to date by watches on the main
 * thread's loop, read by the threads that serve without locks. */

#include "base/arena.h"
#include "cluster/api.h"
#include "cluster/cache.h"
#include "cluster/cert_rotation.h"
#include "cluster/informers.h"
#include "cluster/kubeconfig.h"
#include "state_source.h"

struct err;

struct state_cluster_config {
	const char *kubeconfig; /* NULL: as a pod of the cluster */
	const char *context;	/* of the kubeconfig; NULL: the current one */
	const char *version;	/* of this program, for the server's logs */
	const char *service;	/* "NAMESPACE/NAME": what our own certificate is for; NULL: ours */
	const char *url;	/* likewise, when we are reached without a Service */
	struct admission_settings settings;
};

struct state_cluster {
	struct state_source source;
	struct arena arena; /* of the access */
	struct kubeconfig kubeconfig;
	struct admission_settings settings;
	char user_agent[64];
	struct api api;
	struct cache cache;
	struct informers facts;
	struct cert_rotation_config keeper_config;
	struct cert_rotation keeper; /* when the certificate is ours to keep */
	const char *names[2];
	bool keeps_certificate;
	uint64_t complained_ms; /* not with every try */
	uint64_t complaints;
	bool is_started;
};

/* Nothing is connected yet. */
int state_cluster_init(struct state_cluster *s, const struct state_cluster_config *config,
		       struct err *err);
void state_cluster_done(struct state_cluster *s);
