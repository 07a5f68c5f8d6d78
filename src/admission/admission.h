#pragma once

/* Decides about one pod being created (DESIGN D1 to D6, D9, D11, D12): first whether it belongs to
 * a workload type and moves to that type's CPUs, then which pool everything else is counted
 * against. Also the same decisions for the other objects that a webhook sees. */

#include "admission_state.h"
#include "decision.h"
#include "edit.h"
#include "pod_facts.h"

/* One pod on its way through the rules. The rooms' own files fill it step by step. */
struct admission {
	const struct admission_state *state;
	const struct admission_request *request;
	struct admission_result *result;
	struct arena *a;
	struct pod pod;
	struct subject subject;
	struct str namespace;
	struct annotations annotations;
	struct str type;   /* the workload type it opted in to; empty when it did not */
	struct str effect; /* value of its annotation */
	struct pod_facts facts;
	bool has_facts;
	bool is_managed; /* converted: the target annotation survives */
	bool is_counted; /* in a pool */
};

/* The mutating hook, whatever the object. -ENOMEM when the arena is exhausted. */
int admit_mutate(const struct admission_state *state, const struct admission_request *request,
		 struct arena *a, struct admission_result *ret);

/* The validating hook (1.14, D7, D8, D10). */
int admit_validate(const struct admission_state *state, const struct admission_request *request,
		   struct arena *a, struct admission_result *ret);

/* A pod as the CLI has it: CREATE by an ordinary user. */
int admit_pod(const struct admission_state *state, yyjson_val *pod, struct arena *a,
	      struct admission_result *ret);

/* The same, then validation of what came of it, as the API server does: *ret_pod is the pod as it
 * would be stored, or as it was where it is refused. */
int admit_and_validate(const struct admission_state *state, yyjson_val *pod, struct arena *a,
		       struct admission_result *ret, yyjson_val **ret_pod);

/* D9: says it is static, and a node created it. */
bool admission_is_static(const struct admission_request *request);

/* Reads quantities once. False when the pod was refused for one. */
bool admission_read_facts(struct admission *ad);

/* Looks the namespace up; false when the request was refused (404, 403). */
bool admission_find_namespace(struct admission *ad, struct namespace_facts *ret);

/* The one workload type of a set of annotations (1.6). Returns how many target annotations there
 * are; *ret_problem is set when that is one too many, or the type is empty. */
size_t workload_type(const struct annotations *ann, struct str *ret_type, struct str *ret_effect,
		     struct str *ret_problem);

/* 1.7: exact, no trimming. */
bool type_is_allowed(struct str allowed, struct str type);

/* Steps, one file each. */
void management_admit(struct admission *ad);
void pools_admit(struct admission *ad);
void plugin_require(struct admission *ad);
void node_mutate(const struct admission_state *state, const struct admission_request *rq,
		 struct admission_result *r);
void node_validate(const struct admission_state *state, const struct admission_request *rq,
		   struct admission_result *r);
void pod_validate(struct admission *ad);
void pod_update_validate(const struct admission_request *rq, struct admission_result *r);
void infrastructure_validate(const struct admission_request *rq, struct admission_result *r);
