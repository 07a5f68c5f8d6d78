#pragma once

/* The OpenShift objects that the profiles of a cluster should have, rendered by the code of
 * `pinfold render` (render/openshift.h) from the objects in the stores. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "kinds.h"

struct operator_profile;
struct operator_snapshot;

struct openshift_object {
	enum operator_kind kind;
	const struct operator_profile *profile; /* NULL: a default of the cluster */
	yyjson_val *want;			/* without empty members */
};

struct openshift_problem {
	const struct operator_profile *profile;
	struct str text; /* the first error */
};

struct openshift_objects {
	struct openshift_object *items;
	size_t n;
	struct openshift_problem *problems; /* profiles that have no objects here */
	size_t n_problems;
	bool is_partitioned_by_hand; /* a single node, by a MachineConfig that a user wrote */
};

/* In the snapshot's arena. */
void openshift_objects_build(const struct operator_snapshot *s, struct openshift_objects *ret);

/* "machineconfigs"... of a kind that is applied. */
const char *openshift_resource(enum operator_kind kind);
const char *openshift_api(enum operator_kind kind);
