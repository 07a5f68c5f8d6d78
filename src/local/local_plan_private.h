#pragma once

/* Shared by local_plan.c, which iterates over all pods, and local_plan_pod.c, which decides about
 * one. Not for other files. */

#include "admission/admission_state.h"
#include "kube/pod.h"
#include "local_plan.h"

struct err;

struct planner {
	const struct local_plan_input *in;
	struct ledger *ledger;
	struct state_manifests cluster;
	struct arena *a;
	struct problem_list *p;
	struct local_plan *plan;
	size_t cap_containers, cap_refusals, cap_notes;
};

/* One pod: its manifest, and the pod as admission returned it. */
struct candidate {
	struct manifest at;
	struct pod pod; /* admitted */
	struct str namespace, name, uid;
	bool is_managed;
	struct str type; /* its workload type, if it is managed */
	bool is_guaranteed;
	struct ledger_pod members; /* its containers */
};

/* Admits the pod and places all its containers, or refuses it when one does not fit. Errors in its
 * command go to the planner's problems. */
int plan_add_pod(struct planner *pl, struct candidate *c, yyjson_val *pod, struct err *err);
