#pragma once

/* Reads an AdmissionReview (admission.k8s.io/v1) and writes the response: bytes and an arena, no
 * I/O. The webhook serves it and `pinfold admit --review` prints it. The decision itself is
 * admission.h. */

#include <stdbool.h>

#include "base/str.h"
#include "decision.h"

struct admission_state;
struct arena;
struct err;

enum review_hook { REVIEW_MUTATE, REVIEW_VALIDATE };

/* For metrics and exit statuses. */
struct review_outcome {
	bool is_malformed; /* the response is a status of the 400 class */
	bool allowed;
	bool is_changed;	    /* there is a patch */
	unsigned code;		    /* of the refusal */
	enum admission_rule rule;   /* that decided; RULE__COUNT for a malformed review */
	struct str namespace, name; /* of the object, for logs */
};

/* etcd stores objects up to 1.5 MiB and the API server accepts 3 MiB; a review has the object
 * twice. */
#define REVIEW_MAX_SIZE ((size_t)8 << 20)

/* -EINVAL when no response can be written because the body is not JSON or has no uid; -ENOMEM when
 * the arena is exhausted. Everything else gets a response, also a malformed review with a uid. */
int review_respond(const struct admission_state *state, enum review_hook hook, struct str body,
		   struct arena *a, struct str *ret_response, struct review_outcome *ret,
		   struct err *err);
