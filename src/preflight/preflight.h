#pragma once

/* Preflight checks and diagnosis of a node and a cluster: the table of all checks, and a report of
 * findings, each with its remedy. docs/check.md explains every check by its id. What is found is
 * decided in preflight_node.h and preflight_cluster.h. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena;

enum preflight_group {
	PREFLIGHT_DISTRIBUTION,
	PREFLIGHT_KERNEL,
	PREFLIGHT_CPUS,
	PREFLIGHT_RUNTIME,
	PREFLIGHT_KUBELET,
	PREFLIGHT_AGENT,
	PREFLIGHT_CLUSTER,
	PREFLIGHT_WEBHOOK,
	PREFLIGHT_NODES,
	PREFLIGHT_GROUP__COUNT,
};

/* Every check once: constant, group, id in output and documentation. scripts/check-preflight
 * compares the list with docs/check.md. */
#define PREFLIGHT_CHECKS(X)                                                                        \
	X(DISTRO, DISTRIBUTION, "distribution")                                                    \
	X(DISTRO_LIMITS, DISTRIBUTION, "distribution-limits")                                      \
	X(KERNEL_VERSION, KERNEL, "kernel-version")                                                \
	X(CGROUP_VERSION, KERNEL, "cgroup-version")                                                \
	X(CGROUP_CONTROLLERS, KERNEL, "cgroup-controllers")                                        \
	X(INOTIFY, KERNEL, "inotify-limits")                                                       \
	X(LANDLOCK, KERNEL, "landlock")                                                            \
	X(SECCOMP, KERNEL, "seccomp")                                                              \
	X(ISOLATED_PARTITIONS, KERNEL, "isolated-partitions")                                      \
	X(POOLS, CPUS, "pools")                                                                    \
	X(SMT, CPUS, "smt")                                                                        \
	X(NUMA, CPUS, "numa")                                                                      \
	X(ISOLCPUS, CPUS, "isolcpus")                                                              \
	X(IRQ_AFFINITY, CPUS, "irq-affinity")                                                      \
	X(CRI_SOCKET, RUNTIME, "cri-socket")                                                       \
	X(RUNTIME_VERSION, RUNTIME, "runtime-version")                                             \
	X(NRI_ENABLED, RUNTIME, "nri-enabled")                                                     \
	X(NRI_SOCKET, RUNTIME, "nri-socket")                                                       \
	X(CPU_MANAGER, KUBELET, "cpu-manager")                                                     \
	X(CPU_MANAGER_STATE, KUBELET, "cpu-manager-state")                                         \
	X(AGENT_RUNNING, AGENT, "agent-running")                                                   \
	X(AGENT_CONNECTED, AGENT, "agent-connected")                                               \
	X(API_SERVER, CLUSTER, "api-server")                                                       \
	X(CRDS, CLUSTER, "crds")                                                                   \
	X(POLICIES, CLUSTER, "policies")                                                           \
	X(CLUSTER_FLAG, CLUSTER, "cluster-flag")                                                   \
	X(OPERATOR, CLUSTER, "operator")                                                           \
	X(WEBHOOK_CONFIGURATION, WEBHOOK, "webhook-configuration")                                 \
	X(WEBHOOK_PODS, WEBHOOK, "webhook-pods")                                                   \
	X(WEBHOOK_TRUST, WEBHOOK, "webhook-trust")                                                 \
	X(WEBHOOK_ANSWERS, WEBHOOK, "webhook-answers")                                             \
	X(AGENT_PODS, NODES, "agent-pods")                                                         \
	X(NODES_READY, NODES, "nodes-ready")                                                       \
	X(NODES_PARTITIONED, NODES, "nodes-partitioned")                                           \
	X(NODE_VERSIONS, NODES, "node-versions")                                                   \
	X(AGENT_VERSIONS, NODES, "agent-versions")                                                 \
	X(PROFILES, NODES, "profile-conflicts")                                                    \
	X(KUBEVIRT, NODES, "kubevirt-cpumanager")

#define PREFLIGHT_CONSTANT(name, group, id) PREFLIGHT_##name##_CHECK,
enum preflight_check { PREFLIGHT_CHECKS(PREFLIGHT_CONSTANT) PREFLIGHT_CHECK__COUNT };

/* A note is information: it never changes the exit status. */
enum preflight_level {
	PREFLIGHT_OK,
	PREFLIGHT_NOTE,
	PREFLIGHT_WARNING,
	PREFLIGHT_FAILURE,
	PREFLIGHT_LEVEL__COUNT,
};

const char *preflight_group_name(enum preflight_group group); /* "container runtime" */
const char *preflight_level_name(enum preflight_level level); /* "failure" */
const char *preflight_check_id(enum preflight_check check);   /* "nri-socket" */
enum preflight_group preflight_check_group(enum preflight_check check);

struct preflight_finding {
	enum preflight_check check;
	enum preflight_level level;
	struct str message;
	struct str remedy; /* "": none needed */
};

struct preflight_report {
	struct arena *a;
	struct preflight_finding *items;
	size_t n, cap;
	size_t count[PREFLIGHT_LEVEL__COUNT];
};

void preflight_report_init(struct preflight_report *r, struct arena *a);

/* The texts are views: in the report's arena, or literals. */
void preflight_add(struct preflight_report *r, enum preflight_check check,
		   enum preflight_level level, struct str message, struct str remedy);

/* The first two numbers of "v1.34.1", "2.0.0-rc.1", "6.1.0-18-amd64". False when there are none. */
bool preflight_version(struct str text, unsigned ret[2]);
bool preflight_is_older(const unsigned version[2], unsigned major, unsigned minor);
