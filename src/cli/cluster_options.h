#pragma once

/* The options of every command that decides about pods, and the cluster state that they describe.
 */

#include <stdbool.h>

#include "admission/admission_state.h"
#include "base/options.h"
#include "kube/manifest.h"

struct arena;
struct err;

struct cluster_options {
	struct option_list state;
	const char *feature_gates;
	const char *dialect;
	const char *node_mode;
	struct option_list exempt;
	bool requires_agent;
};

#define CLUSTER_OPTIONS(type, field)                                                               \
	{ OPT_STRS,                                                                                \
	  0,                                                                                       \
	  "state",                                                                                 \
	  "FILE",                                                                                  \
	  "cluster objects: Infrastructure, Namespace, Node, PerformanceProfile, FeatureGate; "    \
	  "may be repeated",                                                                       \
	  NULL,                                                                                    \
	  offsetof(type, field.state) },                                                           \
		{ OPT_STR,                                                                         \
		  0,                                                                               \
		  "feature-gates",                                                                 \
		  "GATE=BOOL[,...]",                                                               \
		  "GuaranteedCPUPool=true counts CPUs in a shared and a guaranteed pool",          \
		  NULL,                                                                            \
		  offsetof(type, field.feature_gates) },                                           \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "dialect",                                                                       \
		  "NAME",                                                                          \
		  "legacy-2021 also accepts the labels and resources of the 2021 design",          \
		  "current|legacy-2021",                                                           \
		  offsetof(type, field.dialect) },                                                 \
		{ OPT_FLAG,                                                                        \
		  0,                                                                               \
		  "require-agent",                                                                 \
		  NULL,                                                                            \
		  "start partitioned pods only where the agent is connected (needs the runtime's " \
		  "NRI "                                                                           \
		  "default validator)",                                                            \
		  NULL,                                                                            \
		  offsetof(type, field.requires_agent) },                                          \
		{ OPT_STRS,                                                                        \
		  0,                                                                               \
		  "exempt-namespace",                                                              \
		  "NAME",                                                                          \
		  "a namespace whose pods are left alone, besides pinfold and pinfold-agent",      \
		  NULL,                                                                            \
		  offsetof(type, field.exempt) },                                                  \
	{                                                                                          \
		OPT_ENUM, 0, "admission-mode", "MODE",                                             \
			"nodes that join without the resource: refuse them (default) or admit "    \
			"them "                                                                    \
			"with a NoSchedule taint",                                                 \
			"refuse|taint", offsetof(type, field.node_mode)                            \
	}

/* Facts that no manifest states and that a command assumes. */
enum assumption { ASSUMED_INFRASTRUCTURE, ASSUMED_NAMESPACES, ASSUMED_NODES, ASSUMPTION__COUNT };

/* "cpuPartitioning is AllNodes (no Infrastructure given)" */
const char *assumption_text(enum assumption which);

/* What the options say beyond the files. */
int cluster_settings(const struct cluster_options *o, struct admission_settings *ret,
		     struct err *err);

/* Reads the state files. The caller may add objects, then seals. */
int cluster_load(const struct cluster_options *o, struct arena *a, struct state_manifests *ret,
		 struct err *err);

/* The manifests of `files`, and the cluster that admits them: the state files, cluster objects
 * among the manifests, and, where a kind is missing, assumed objects that turn partitioning on and
 * allow every requested workload type. Each assumption is a bit of `assumed` (1 << enum
 * assumption). Without options the state stays empty. */
struct cluster_input {
	struct state_manifests state;
	struct manifest_list list;
	unsigned assumed;
};

int cluster_and_manifests(const struct cluster_options *o, const struct option_list *files,
			  struct arena *a, struct cluster_input *ret, struct err *err);

/* The last part of it, for commands with objects of their own: assumed objects where a kind is
 * missing. Before the state is sealed. */
unsigned cluster_assume_missing(struct state_manifests *m, const struct manifest_list *given);

/* A note for each assumption on stderr, where standard output has no place for them. */
void assumptions_print(unsigned assumed);
