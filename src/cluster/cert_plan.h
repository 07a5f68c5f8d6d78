#pragma once

/* The next step of certificate rotation. Pure; cert_rotation.h carries it out. The order matters: a
 * new CA is in the webhook configurations before a certificate signed by it is served, and an old
 * CA is removed only when no certificate signed by it is served any more. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CERT_CA_LIFETIME_S (3LL * 365 * 86400)
#define CERT_LEAF_LIFETIME_S (90LL * 86400)
#define CERT_OVERLAP_S 30 /* for every API server to see the configurations */
#define CERT_PRUNE_S 3600 /* for every replica to serve the new certificate */

struct cert_inventory {
	bool has_ca; /* the first certificate of the bundle is a CA with its key */
	int64_t ca_made_s, ca_ends_s;
	size_t n_old;  /* further certificates in the bundle */
	bool has_leaf; /* with its key, for the names of the webhook */
	int64_t leaf_made_s, leaf_ends_s;
	bool leaf_is_by_ca;  /* signed by the first CA of the bundle */
	bool is_published;   /* every configuration has exactly the bundle */
	bool wants_rotation; /* a new CA was requested by annotation */
};

enum cert_action {
	CERT_NOTHING,
	CERT_MAKE_CA, /* and put it first in the bundle */
	CERT_PUBLISH, /* write the bundle to the configurations */
	CERT_ISSUE,   /* a certificate, signed by the first CA */
	CERT_PRUNE,   /* remove all but the first CA from the bundle */
};

struct cert_decision {
	enum cert_action action;
	int64_t next_s; /* with CERT_NOTHING: decide again then at the latest */
};

struct cert_decision cert_decide(const struct cert_inventory *have, int64_t now_s);
