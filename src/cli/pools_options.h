#pragma once

/* The options that say which CPUs belong to which pool, for the commands that hand out CPUs
 * themselves: `agent` and `oci-hook`. Their meaning is pin/pools_source.h's. */

#include "agentclient/run_dir.h"
#include "base/options.h"
#include "kube/names.h"
#include "pin/pools_source.h"

#define POOLS_ROW(kind, name, value, help, type, field)                                            \
	{                                                                                          \
		kind, 0, name, value, help, NULL, offsetof(type, field)                            \
	}

#define POOLS_ROW_ENUM(name, value, help, choices, type, field)                                    \
	{                                                                                          \
		OPT_ENUM, 0, name, value, help, choices, offsetof(type, field)                     \
	}

/* `pools` is the struct pools_source in `type`; `list` and `types` are the struct option_list of
 * its policy options and workload types.
 * --reserved is the former spelling of --management. */
#define POOLS_OPTIONS(type, pools, list, types)                                                    \
	POOLS_ROW(OPT_STR, "management", "LIST", "CPUs of the management pool", type,              \
		  pools.reserved),                                                                 \
		POOLS_ROW(OPT_STR, "reserved", "LIST", NULL, type, pools.reserved),                \
		POOLS_ROW(OPT_STR, "shared", "LIST", "CPUs of the shared pool", type,              \
			  pools.shared),                                                           \
		POOLS_ROW(OPT_STR, "guaranteed", "LIST",                                           \
			  "CPUs of the guaranteed pool, each for one container at a time", type,   \
			  pools.guaranteed),                                                       \
		POOLS_ROW(OPT_STRS, "workload-type", "TYPE=LIST",                                  \
			  "a workload type with its own part of the management pool", type,        \
			  types),                                                                  \
		POOLS_ROW(OPT_STR, "pools-file", "FILE",                                           \
			  "the pools file, read when no list is given (default: " NAME_POOLS_FILE  \
			  ")",                                                                     \
			  type, pools.pools_file),                                                 \
		POOLS_ROW(OPT_STR, "state-dir", "DIR",                                             \
			  "directory of the last profile of the cluster, used when there is no "   \
			  "pools file (default: " AGENT_STATE_DIR ")",                             \
			  type, pools.state_dir),                                                  \
		POOLS_ROW(OPT_STR, "marker-file", "FILE",                                          \
			  "the kubelet marker, read when there is neither "                        \
			  "(default: " NAME_KUBELET_MARKER ")",                                    \
			  type, pools.marker_file),                                                \
		POOLS_ROW(OPT_FLAG, "fold-rest", NULL,                                             \
			  "add CPUs that are in no list to the shared pool instead of failing",    \
			  type, pools.fold_rest),                                                  \
		POOLS_ROW(                                                                         \
			OPT_STRS, "policy-option", "NAME=VALUE",                                   \
			"an option of the kubelet's static policy, such as full-pcpus-only=true",  \
			type, list),                                                               \
		POOLS_ROW_ENUM("topology-policy", "POLICY",                                        \
			       "which NUMA nodes exclusive CPUs may come from, as in the "         \
			       "kubelet's topology manager (default: of the pools file, or "       \
			       "best-effort)",                                                     \
			       "none|best-effort|restricted|single-numa-node", type,               \
			       pools.topology_policy),                                             \
		POOLS_ROW_ENUM("topology-scope", "SCOPE",                                          \
			       "decide for each container or for a whole pod (default: of the "    \
			       "pools file, or container)",                                        \
			       "container|pod", type, pools.topology_scope)

#define POOLS_DEFAULTS                                                                             \
	{                                                                                          \
		.pools_file = NAME_POOLS_FILE, .state_dir = AGENT_STATE_DIR,                       \
		.marker_file = NAME_KUBELET_MARKER                                                 \
	}
