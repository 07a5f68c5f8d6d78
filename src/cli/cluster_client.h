#pragma once

/* The connection of commands that work on a whole cluster (enable, status --cluster, verify
 * --cluster, uninstall), and the question before they change something. */

#include <stdbool.h>

#include "base/options.h"
#include "cluster/api_sync.h"

struct arena;
struct err;
struct invocation;

struct cluster_client_options {
	const char *kubeconfig, *context;
};

#define CLUSTER_CLIENT_OPTIONS(type, field)                                                        \
	{ OPT_STR,                                                                                 \
	  0,                                                                                       \
	  "kubeconfig",                                                                            \
	  "FILE",                                                                                  \
	  "how to reach the API server (default: $KUBECONFIG, ~/.kube/config, or the pod's "       \
	  "service account)",                                                                      \
	  NULL,                                                                                    \
	  offsetof(type, field.kubeconfig) },                                                      \
	{                                                                                          \
		OPT_STR, 0, "context", "NAME",                                                     \
			"the context of the kubeconfig (default: its current context)", NULL,      \
			offsetof(type, field.context)                                              \
	}

#define YES_OPTION(type, field)                                                                    \
	{                                                                                          \
		OPT_FLAG, 'y', "yes", NULL, "do not ask", NULL, offsetof(type, field)              \
	}

/* Reads the kubeconfig; connects with the first call. */
int cluster_client_open(struct api_sync *s, const struct cluster_client_options *o, struct arena *a,
			struct err *err);

/* Reads one object; *ret is NULL when it does not exist or its kind is not served. */
int cluster_client_find(struct api_sync *s, struct str path, struct arena *a, yyjson_val **ret,
			struct err *err);

/* Asks on the terminal and reads the answer. 1 for yes, 0 for any other answer. Without a terminal
 * -EINVAL: --yes is needed then. */
int confirm(const char *question, bool yes, struct err *err);
