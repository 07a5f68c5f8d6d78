#pragma once

/* Decides about one request to the API server: a pod that is created is converted to its workload
 * type or counted in a CPU pool (D2 to D6, D9, D11, D12); nodes, updates of pods, the cluster flag
 * and profiles are checked (D7, D8, D10). Pure: it is handed the request and the cluster's state,
 * and returns a result. AdmissionReview as JSON is review.h. */

#include "admission_state.h"
#include "decision.h"

/* The mutating hook, for any object. -ENOMEM when the arena is exhausted. */
int admit_mutate(const struct admission_state *state, const struct admission_request *request,
		 struct arena *a, struct admission_result *ret);

/* The validating hook (docs/reference/admission.md#validate, D7, D8, D10). */
int admit_validate(const struct admission_state *state, const struct admission_request *request,
		   struct arena *a, struct admission_result *ret);

/* CREATE of a pod by an ordinary user, as the CLI decides it. */
int admit_pod(const struct admission_state *state, yyjson_val *pod, struct arena *a,
	      struct admission_result *ret);

/* The same, followed by validation of the patched pod, as the API server does. *ret_pod is the pod
 * as it would be stored; the unchanged one when it is refused. */
int admit_and_validate(const struct admission_state *state, yyjson_val *pod, struct arena *a,
		       struct admission_result *ret, yyjson_val **ret_pod);
