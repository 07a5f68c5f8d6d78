#pragma once

/* What goes into a support bundle: the objects and logs of a cluster, the state of this node. A
 * part that cannot be read is left out, and the index says why. */

#include "bundle/bundle_build.h"
#include "cluster_client.h"
#include "kube/names.h"
#include "node_verify.h"

struct node_collection {
	struct node_verify_source from;
	const char *state_dir, *pools_file;
	const char *topology; /* "host" */
};

/* The name of the node in paths: the agent's, or else that of the host. */
struct str bundle_collect_node(struct bundle_build *b, const struct node_collection *c);

/* Fails only when the API server does not answer at all. */
int bundle_collect_cluster(struct bundle_build *b, const struct kubeconfig *kubeconfig,
			   bool with_logs, struct err *err);

/* The options of commands that collect. */
struct collect_options {
	struct cluster_client_options client;
	struct node_collection node;
	const char *scope;
	unsigned max_mib;
	bool no_logs;
};

#define COLLECT_ROW(type, field, name, value, help)                                                \
	{                                                                                          \
		OPT_STR, 0, name, value, help, NULL, offsetof(type, field)                         \
	}

/* `o` is the struct collect_options in `type`. */
#define COLLECT_OPTIONS(type, o)                                                                   \
	{ OPT_ENUM,                                                                                \
	  0,                                                                                       \
	  "scope",                                                                                 \
	  "WHAT",                                                                                  \
	  "what is collected: this node, the cluster or both (default: the node if it has an "     \
	  "agent's directory, and the cluster if there is a kubeconfig)",                          \
	  "node|cluster|all",                                                                      \
	  offsetof(type, o.scope) },                                                               \
		CLUSTER_CLIENT_OPTIONS(type, o.client),                                            \
		{ OPT_UINT,                                                                        \
		  0,                                                                               \
		  "max-size",                                                                      \
		  "MIB",                                                                           \
		  "size of what is collected in MiB, up to 256 (default: 64)",                     \
		  NULL,                                                                            \
		  offsetof(type, o.max_mib) },                                                     \
		COLLECT_ROW(type, o.node.from.run_dir, "run-dir", "DIR",                           \
			    "the agent's directory (default: " AGENT_RUN_DIR ")"),                 \
		COLLECT_ROW(type, o.node.state_dir, "state-dir", "DIR",                            \
			    "directory of the agent's last profile (default: " AGENT_STATE_DIR     \
			    ")"),                                                                  \
		COLLECT_ROW(type, o.node.pools_file, "pools-file", "FILE",                         \
			    "the pools file (default: " NAME_POOLS_FILE ")"),                      \
		COLLECT_ROW(type, o.node.topology, "topology", "FROM",                             \
			    "host (default), a file or a synthetic description"),                  \
		COLLECT_ROW(type, o.node.from.cgroup_root, "cgroup-root", "DIR",                   \
			    "mount point of the cgroup hierarchy (default: /sys/fs/cgroup)"),      \
		COLLECT_ROW(type, o.node.from.proc, "proc", "DIR",                                 \
			    "mount point of procfs (default: /proc)")

#define COLLECT_DEFAULTS                                                                           \
	{                                                                                          \
		.node = { .from = NODE_VERIFY_DEFAULTS,                                            \
			  .state_dir = AGENT_STATE_DIR,                                            \
			  .pools_file = NAME_POOLS_FILE,                                           \
			  .topology = "host" },                                                    \
		.max_mib = 64                                                                      \
	}

/* Collects what the options say, with the index. *ret_node is "" when there is no node in it. */
int bundle_collect(struct bundle_build *b, const struct collect_options *o, int64_t now_s,
		   struct arena *a, struct str *ret_node, struct err *err);
