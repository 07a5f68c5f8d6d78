#pragma once

/* Creates and checks certificates as PEM: a CA (ECDSA P-256) and server certificates signed by it.
 * Knows neither Secrets nor the clock: the time is a parameter. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

#define PKI_BACKDATE_S 3600 /* the clock of an API server may be behind */

struct pki_pair {
	struct str cert_pem, key_pem;
};

/* Valid from PKI_BACKDATE_S before now. */
int pki_make_ca(const char *name, int64_t now_s, int64_t lifetime_s, struct arena *a,
		struct pki_pair *ret, struct err *err);

/* For a server that is reached under any of these names (DNS names and IP addresses). */
struct pki_leaf {
	const char *const *names;
	size_t n_names;
	int64_t now_s, lifetime_s;
};

int pki_issue(const struct pki_pair *ca, const struct pki_leaf *leaf, struct arena *a,
	      struct pki_pair *ret, struct err *err);

struct pki_info {
	int64_t made_s, ends_s; /* made_s: when it was created, without PKI_BACKDATE_S */
	bool is_ca;
};

/* Of the first certificate. */
int pki_read(struct str cert_pem, struct pki_info *ret, struct err *err);

bool pki_is_pair(const struct pki_pair *p); /* the key belongs to the certificate */
bool pki_is_signed_by(struct str cert_pem, struct str ca_pem); /* both: the first certificate */
bool pki_has_names(struct str cert_pem, const char *const *names, size_t n);

/* Takes the first certificate, with its BEGIN and END lines, off *rest. False: none is left. */
bool pki_next(struct str *rest, struct str *ret);
