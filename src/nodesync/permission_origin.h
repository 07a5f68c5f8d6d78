#pragma once

/* Where the agent takes the permissions of namespaces from: the operator's digest or the namespaces
 * themselves. A change from one to the other neither adds nor removes a permission: the namespaces
 * replace the digest when their list is complete, and the digest replaces the namespaces only while
 * both say the same. Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum permission_origin {
	PERMISSIONS_UNDECIDED, /* the first response has not arrived */
	PERMISSIONS_FROM_DIGEST,
	PERMISSIONS_FROM_NAMESPACES,
	PERMISSION_ORIGIN__COUNT
};

const char *permission_origin_name(enum permission_origin origin);

struct permission_facts {
	bool is_answered; /* the digest was requested, with whatever result */
	bool is_usable;	  /* it exists, can be read, and is confirmed */
	bool is_listed;	  /* the namespaces are known, from a watch that goes on */
	bool is_same;	  /* both allow the same */
};

enum permission_origin permission_origin_decide(enum permission_origin now,
						const struct permission_facts *f);

/* The operator confirms the digest every two minutes. Agents give up on a digest that was not for
 * four to six minutes, not all at the same time. */
#define DIGEST_RENEW_MS 120000
#define DIGEST_VALID_MS 240000
#define DIGEST_VALID_JITTER_MS 120000

/* How long the digest has been confirmed for. Time counts only while the watch of the digest is
 * established: an agent without a connection learns nothing from the namespaces either, and after
 * an outage of the API server the operator gets time to confirm. */
struct digest_age {
	char renewed[32];
	uint64_t valid_ms;   /* for so long after a confirmation */
	uint64_t expires_ms; /* on the loop's clock; 0: has expired */
};

/* A digest with this annotation arrived. For the first one only the clocks of operator and agent
 * can tell its age; a later one with another text is a confirmation, whatever the clocks say. */
void digest_age_observe(struct digest_age *age, struct str renewed, int64_t now_s, uint64_t now_ms);
bool digest_age_is_valid(struct digest_age *age, bool is_connected, uint64_t now_ms);
