#pragma once

/* The steps of admission, one file each. Only admission.c calls them; they call no other step, only
 * down into pod_context and what is below it. */

#include "pod_context.h"

/* Pods that opted in to a workload type are converted, skipped or refused (management.c). */
void management_admit(struct pod_context *ctx);

/* CPU of other pods is counted against the shared and the guaranteed pool (pools.c). */
void pools_admit(struct pod_context *ctx);

/* The runtime creates no container of the pod without the agent (required_plugin.c). */
void required_plugin_admit(struct pod_context *ctx);

/* The pod as it will be stored, and changes to pods (validate.c). */
void pod_validate(struct pod_context *ctx);
void pod_update_validate(const struct admission_request *rq, struct admission_result *r);

/* The cluster flag (infrastructure.c). */
void infrastructure_validate(const struct admission_state *state,
			     const struct admission_request *rq, struct admission_result *r);

/* Profiles, as `pinfold profile check` reports their problems (performance_profile.c). */
void performance_profile_validate(const struct admission_state *state,
				  const struct admission_request *rq, struct admission_result *r);

/* Nodes that join without the workload resource are refused or tainted (node.c). */
void node_mutate(const struct admission_state *state, const struct admission_request *rq,
		 struct admission_result *r);
void node_validate(const struct admission_state *state, const struct admission_request *rq,
		   struct admission_result *r);
