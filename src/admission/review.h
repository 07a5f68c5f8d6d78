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

/* The API server accepts requests of 3 MiB and etcd objects of 1.5 MiB. A review has the new object
 * and, for an update, the old one, and the API server writes a byte such as '<' as six: 27 MiB and
 * the rest of the review. */
#define REVIEW_MAX_SIZE ((size_t)32 << 20)
/* A pod has a few hundred. Without it a text of brackets fills a gigabyte and blocks its thread. */
#define REVIEW_MAX_VALUES ((size_t)1 << 20)

/* -EINVAL when no response can be written because the body has no uid; -ENOMEM when the arena is
 * exhausted. Everything else gets a response: a review with a uid that is malformed, not JSON or
 * too large is refused, because the API server admits a pod when the call fails and failurePolicy
 * is Ignore. */
int review_respond(const struct admission_state *state, enum review_hook hook, struct str body,
		   struct arena *a, struct str *ret_response, struct review_outcome *ret,
		   struct err *err);

/* Refuses a review that was not read: `body` may be cut off, `code` is the HTTP status that says
 * why. -EINVAL when it has no uid. */
int review_refuse(struct str body, unsigned code, const char *why, struct arena *a,
		  struct str *ret_response, struct review_outcome *ret, struct err *err);
