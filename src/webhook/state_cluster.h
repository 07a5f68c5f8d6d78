#pragma once

/* The state of a cluster from its API server: caches that watches on the main thread's loop keep up
 * to date and that the serving threads read without locks. Also rotates the serving certificate
 * where no files are given. State from manifests is state_files.h. */

#include <stdatomic.h>

#include "base/arena.h"
#include "cluster/api.h"
#include "cluster/cache.h"
#include "cluster/cert_rotation.h"
#include "cluster/informers.h"
#include "cluster/kubeconfig.h"
#include "cluster/node_recheck.h"
#include "state_source.h"

struct err;

struct state_cluster_config {
	const char *kubeconfig; /* NULL: in-cluster configuration */
	const char *context;	/* of the kubeconfig; NULL: the current one */
	const char *version;	/* of this program, for the server's logs */
	const char *service;	/* "NAMESPACE/NAME" for the certificate; NULL: the default */
	const char *url;	/* likewise, when the webhook is reached without a Service */
	struct admission_settings settings;
};

/* Whether the API server calls the webhook for Nodes that join. */
enum node_hook { NODE_HOOK_UNKNOWN, NODE_HOOK_MISSING, NODE_HOOK_OK };

struct state_cluster {
	struct state_source source;
	struct arena arena; /* of the kubeconfig */
	struct kubeconfig kubeconfig;
	struct admission_settings settings;
	char user_agent[64];
	struct api api;
	struct cache cache;
	struct informers informers;
	struct cert_rotation_config rotation_config;
	struct cert_rotation rotation; /* used when rotates_certificate */
	struct node_recheck recheck;   /* likewise, when nodes get a taint */
	_Atomic int node_hook;	       /* enum node_hook */
	atomic_bool was_ready;
	_Atomic uint64_t nodes_tainted;
	const char *names[2];
	bool rotates_certificate; /* no certificate files were given */
	uint64_t logged_ms;	  /* the last failure that was logged */
	uint64_t n_failures;
	bool is_started, rechecks_nodes;
};

/* Reads the kubeconfig; connects to nothing yet. */
int state_cluster_init(struct state_cluster *s, const struct state_cluster_config *config,
		       struct err *err);
void state_cluster_done(struct state_cluster *s);
