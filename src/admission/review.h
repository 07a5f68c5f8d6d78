#pragma once

/* AdmissionReview (admission.k8s.io/v1) in, AdmissionReview out: bytes and an arena, nothing else.
 * What the webhook serves and `admit --review` prints. */

#include <stdbool.h>

#include "base/str.h"
#include "decision.h"

struct admission_state;
struct arena;
struct err;

enum review_hook { REVIEW_MUTATE, REVIEW_VALIDATE };

/* For metrics and exit statuses. */
struct review_outcome {
	bool is_malformed; /* answered with a status of the 400 class */
	bool allowed;
	bool is_changed;	    /* there is a patch */
	unsigned code;		    /* of the refusal */
	enum admission_rule rule;   /* that decided; RULE__COUNT for a malformed review */
	struct str namespace, name; /* of the object, for logs */
};

#define REVIEW_MAX_SIZE                                                                            \
	((size_t)8 << 20) /* etcd takes 1.5 MiB, the API server 3 MiB, twice over                  \
			   */

/* -EINVAL when the body is no review that could be answered: not JSON, or without a uid; -ENOMEM
 * when the arena is exhausted. Everything else has an answer, also a malformed review with a uid.
 */
int review_respond(const struct admission_state *state, enum review_hook hook, struct str body,
		   struct arena *a, struct str *ret_answer, struct review_outcome *ret,
		   struct err *err);
