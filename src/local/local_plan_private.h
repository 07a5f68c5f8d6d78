#pragma once

/* What the two halves of a plan share: plan.c goes through all pods, plan_pod.c decides about one.
 * For those two files alone. */

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

/* The pod under consideration: where it stands, and how admission left it. */
struct candidate {
	struct manifest at;
	struct pod pod; /* admitted */
	struct str namespace, name, uid;
	bool is_managed;
	bool is_guaranteed;
};

/* Admits the pod and places all its containers, or none: one that cannot be placed refuses the pod.
 * What is wrong with its command goes to the planner's problems. */
int plan_pod(struct planner *pl, struct candidate *c, yyjson_val *pod, struct err *err);
