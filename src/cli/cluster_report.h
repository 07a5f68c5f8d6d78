#pragma once

/* `status --cluster` and `verify --cluster`: every node of a cluster as its agent reports it,
 * without access to the nodes themselves. */

#include "bundle_input.h"
#include "cluster_client.h"
#include "output.h"

struct cluster_nodes;

/* The nodes of a support bundle, sorted, and its cluster flag; no node when it has no objects. */
int cluster_report_objects(const struct saved_bundle *b, struct arena *a, struct cluster_nodes *ret,
			   struct str *ret_flag, struct err *err);

/* The options of both commands. */
struct cluster_report_options {
	struct cluster_client_options client;
	bool cluster;
	bool is_strict; /* differences that are only reported count as findings */
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

/* -EINVAL when --kubeconfig or --context are given without --cluster, or with a bundle. */
int cluster_report_check(const struct cluster_report_options *o, const struct bundle_options *from,
			 struct err *err);

/* Print, and return EXIT_YES, EXIT_FINDING or an error. With a bundle, its objects are those of the
 * cluster. */
int cluster_report_status(const struct cluster_report_options *o, const struct bundle_options *from,
			  enum output_format format, struct arena *a, struct err *err);
int cluster_report_verify(const struct cluster_report_options *o, const struct bundle_options *from,
			  enum output_format format, struct arena *a, struct err *err);
