#pragma once

/* What to do about our certificate, given what there is: pure. The order is the point: a new CA is
 * in the webhook configurations before anything it signed is served, and an old one leaves them
 * only when nothing it signed is served any more. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CERT_CA_LIFETIME_S (3LL * 365 * 86400)
#define CERT_LEAF_LIFETIME_S (90LL * 86400)
#define CERT_OVERLAP_S 30 /* for every API server to see the configurations */
#define CERT_PRUNE_S 3600 /* for every replica to serve the new certificate */

struct cert_facts {
	bool has_ca; /* the first of the bundle is one, and its key is there */
	int64_t ca_made_s, ca_ends_s;
	size_t n_old;  /* certificates in the bundle behind it */
	bool has_leaf; /* with its key, for our names */
	int64_t leaf_made_s, leaf_ends_s;
	bool leaf_is_by_ca;  /* signed by the first of the bundle */
	bool is_published;   /* every configuration trusts exactly the bundle */
	bool wants_rotation; /* somebody asked for a new CA */
};

enum cert_action {
	CERT_NOTHING,
	CERT_MAKE_CA, /* in front of the bundle */
	CERT_PUBLISH, /* the bundle, into the configurations */
	CERT_ISSUE,   /* a certificate, by the first CA */
	CERT_PRUNE,   /* all but the first CA from the bundle */
};

struct cert_decision {
	enum cert_action action;
	int64_t next_s; /* when nothing is to do: look again then, at the latest */
};

struct cert_decision cert_decide(const struct cert_facts *f, int64_t now_s);
