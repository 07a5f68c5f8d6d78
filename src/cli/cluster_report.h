#pragma once

/* `status --cluster` and `verify --cluster`: every node of a cluster as its agent reports it,
 * without access to the nodes themselves. */

#include "cluster_client.h"
#include "output.h"

/* The options of both commands. */
struct cluster_report_options {
	struct cluster_client_options client;
	bool cluster;
};

#define CLUSTER_REPORT_OPTIONS(type, field)                                                        \
	{ OPT_GROUP, 0, NULL, NULL, "The whole cluster", NULL, 0 },                                \
		{ OPT_FLAG,                                                                        \
		  0,                                                                               \
		  "cluster",                                                                       \
		  NULL,                                                                            \
		  "every node of the cluster, from its NodePartition, instead of this node",       \
		  NULL,                                                                            \
		  offsetof(type, field.cluster) },                                                 \
		CLUSTER_CLIENT_OPTIONS(type, field.client)

/* -EINVAL when --kubeconfig or --context are given without --cluster. */
int cluster_report_check(const struct cluster_report_options *o, struct err *err);

/* Print, and return EXIT_YES, EXIT_FINDING or an error. */
int cluster_report_status(const struct cluster_report_options *o, enum output_format format,
			  struct arena *a, struct err *err);
int cluster_report_verify(const struct cluster_report_options *o, enum output_format format,
			  struct arena *a, struct err *err);
