#pragma once

/* The serving certificate: from two files, which are read again when their directories change and
 * once a minute, or set by the caller. A certificate and key that do not match are not used; the
 * previous pair stays. Issuing certificates is cluster/cert_rotation.h. */

#include <stdatomic.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/tls.h"

struct err;

struct certificate {
	const char *cert_path, *key_path; /* NULL: the caller uses certificate_use() */
	const char *client_ca_path;	  /* of clients; read with every new pair; may be NULL */
	struct tls_context *tls;
	struct file_watch cert_watch, key_watch;
	struct timer timer;
	uint64_t digest;	 /* of what is loaded, to detect changes */
	bool has_logged_failure; /* for the current content; it is logged once */
	_Atomic int64_t expiry_unix_s;
	_Atomic uint64_t reloads, failed_reloads;
};

/* Uses this pair for new connections. Returns 1 when it is new, 0 when it is already in use. */
int certificate_use(struct certificate *c, struct str cert_pem, struct str key_pem,
		    struct err *err);

/* Loads the pair, which must be valid this first time, then watches the files. */
int certificate_init(struct certificate *c, struct loop *loop, struct tls_context *tls,
		     struct err *err);
