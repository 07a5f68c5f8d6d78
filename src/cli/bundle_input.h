#pragma once

/* A support bundle in place of a node: the options of commands that accept one, and what they read
 * from it. Objects of the cluster are read by bundle/manifest_load.h. */

#include "agentclient/status_client.h"
#include "base/options.h"
#include "bundle/bundle_load.h"

struct arena;
struct err;
struct node_verify;
struct topology;

struct bundle_options {
	const char *path, *node;
};

#define BUNDLE_OPTION(type, field)                                                                 \
	{                                                                                          \
		OPT_STR, 0, "bundle", "FILE",                                                      \
			"read a support bundle (pinfold bundle), an archive or a directory", NULL, \
			offsetof(type, field)                                                      \
	}

#define BUNDLE_OPTIONS(type, field)                                                                \
	BUNDLE_OPTION(type, field.path),                                                           \
	{                                                                                          \
		OPT_STR, 0, "node", "NAME", "the node of the bundle, when it has several", NULL,   \
			offsetof(type, field.node)                                                 \
	}

/* -EINVAL when --node is given without --bundle. */
int bundle_options_check(const struct bundle_options *o, struct err *err);

int bundle_input_status(const struct bundle_options *o, struct arena *a, struct agent_status *ret,
			struct err *err);
int bundle_input_topology(const struct bundle_options *o, struct arena *a, struct topology *ret,
			  struct err *err);
int bundle_input_verify(const struct bundle_options *o, struct arena *a, struct node_verify *ret,
			struct err *err);

/* The same from a bundle that is loaded, for one of its nodes. */
int bundle_node_status(const struct saved_bundle *b, struct str node, struct arena *a,
		       struct agent_status *ret, struct err *err);
int bundle_node_topology(const struct saved_bundle *b, struct str node, struct arena *a,
			 struct topology *ret, struct err *err);
int bundle_node_verify(const struct saved_bundle *b, struct str node, struct arena *a,
		       struct node_verify *ret, struct err *err);
