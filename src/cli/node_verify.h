#pragma once

/* The audit of this node, for `verify`, support bundles and reports. */

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "cgroup/audit.h"
#include "cgroup/foreign.h"

struct arena;
struct err;

struct node_verify_source {
	const char *run_dir, *cgroup_root, *proc;
};

#define NODE_VERIFY_DEFAULTS                                                                       \
	{                                                                                          \
		.run_dir = AGENT_RUN_DIR, .cgroup_root = "/sys/fs/cgroup", .proc = "/proc"         \
	}

struct node_verify {
	struct audit audit;
	struct foreign_host host;
};

int node_verify(const struct node_verify_source *source, struct arena *a, struct node_verify *ret,
		struct err *err);
