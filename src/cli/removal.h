#pragma once

/* Pinfold's objects in a cluster, for `pinfold uninstall`: which there are, in which order they are
 * deleted, and what must be true before the next step. Decisions here take objects and return
 * values; cmd_uninstall.c sends the requests.
 *
 * The order strands no pod (D41): first no new pod is converted, then converted pods that wait for
 * a node are created again, then the agents release their nodes, and only then the nodes lose the
 * resources that converted pods request. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

enum removal_step {
	REMOVE_CONVERSION,  /* webhook configurations and policies about pods */
	REMOVE_CONTROLLERS, /* Deployments: webhook and operator */
	REMOVE_AGENTS,	    /* the DaemonSet, after its pods released their nodes */
	REMOVE_PERMISSIONS, /* of the ServiceAccounts, and the policies that restrict them */
	REMOVE_NAMESPACES,
	REMOVE_CRDS,	       /* NodePartitions: the state of nodes */
	REMOVE_CRDS_WITH_DATA, /* profiles and the cluster flag; only with --crds */
	REMOVAL_STEP__COUNT
};

/* A kind of which Pinfold has objects, in one namespace or cluster-scoped. */
struct removal_kind {
	enum removal_step step;
	const char *api, *resource, *namespace;
};

extern const struct removal_kind removal_kinds[]; /* ends with { 0 } */

/* Whether an object of this kind is one of Pinfold's that the step deletes: the shipped manifests
 * give all of them the name "pinfold" or one that begins with "pinfold-", and CRDs have fixed
 * names. */
bool removal_takes(const struct removal_kind *kind, struct str name);

/* A pod that was converted or counted in a pool. */
bool pod_is_partitioned(yyjson_val *pod);
/* ... that no node has taken yet. */
bool pod_waits_for_node(yyjson_val *pod);
/* Its controller creates it again when it is deleted. */
bool pod_has_controller(yyjson_val *pod);

/* A patch that lets the agents of a DaemonSet undo everything on their node instead of running. 0
 * when it is already so. */
int agents_release_patch(yyjson_val *daemonset, struct arena *a, struct str *ret_body,
			 struct err *err);

/* Whether this pod of a patched DaemonSet has done that. */
bool agent_has_released(yyjson_val *pod);
