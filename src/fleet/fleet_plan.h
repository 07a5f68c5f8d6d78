#pragma once

/* What planned profiles would cost the nodes of many clusters: nothing, a restart, a reboot. Both
 * profiles are rendered for the node's machine, and the files are compared, as `pinfold plan` does.
 * Nodes with the same machine and the same present profile are decided once. Pure. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct distro;
struct node_partition;

enum fleet_effect {
	FLEET_UNTOUCHED, /* no planned profile selects the node */
	FLEET_NOTHING,
	FLEET_RESTART, /* of the kubelet or the runtime */
	FLEET_REBOOT,
	FLEET_INVALID, /* the profile does not fit the machine, or conflicts with another one */
	FLEET_EFFECT__COUNT
};

const char *fleet_effect_name(enum fleet_effect effect); /* "reboot" */

struct fleet_decision {
	uint64_t key;
	enum fleet_effect effect;
	struct str why; /* of an invalid one */
};

struct fleet_plan {
	struct arena *a; /* of what is kept */
	yyjson_val *const *planned;
	size_t n_planned;
	const struct distro *distro; /* whose files are compared */
	struct fleet_decision *known;
	size_t n_known, cap_known;
};

/* One node of a cluster. */
struct fleet_node {
	yyjson_val *labels;
	size_t n_cpus;
	const struct node_partition *partition; /* NULL: none */
	yyjson_val *const *profiles;		/* of its cluster */
	size_t n_profiles;
};

const struct fleet_decision *fleet_plan_node(struct fleet_plan *plan,
					     const struct fleet_node *node);
