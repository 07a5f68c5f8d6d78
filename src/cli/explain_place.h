#pragma once

/* Where a pod runs, for `explain`: from the agent of its node, or from the profile of its node, or
 * from the only profile there is, which is then an assumption. Pure. */

#include <stdbool.h>

#include "admission/admission_state.h"
#include "base/str.h"
#include "codec/doc.h"
#include "kube/pool.h"

struct arena;

/* The profile of a node, or of all nodes with name "". NULL when none or several apply.
 * *ret_is_assumed: no Node given says that the profile applies. */
const struct profile_cpus *explain_profile(const struct state_manifests *m, struct str node,
					   bool *ret_is_assumed);

struct explain_place {
	struct str cpus; /* "" when unknown */
	struct str from; /* "agent", "profile ran" */
	bool is_assumed;
	yyjson_val *refusal; /* the agent's, with "reason" and "message"; NULL: none */
};

/* A container of a pod that exists. */
struct explain_container {
	struct str uid, node, namespace, pod, name;
	enum pool pool;
};

/* `status` is the agent's status document, or NULL. */
struct explain_place explain_place(const struct state_manifests *m, yyjson_val *status,
				   const struct explain_container *c, struct arena *a);
