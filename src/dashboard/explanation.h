#pragma once

/* The chain of rules that decides about a pod, as `pinfold explain` prints it: what admission did
 * with the stored pod, and what it would decide if the pod was created now. Pure. */

#include "codec/doc.h"

struct admission_state;
struct arena;
struct err;

/* {"happened","outcome","steps":[...],"result","patch":[...],"warnings":[...],"advice"} */
int explanation_of(const struct admission_state *state, yyjson_val *object, yyjson_mut_doc *m,
		   struct arena *a, yyjson_mut_val **ret, struct err *err);
