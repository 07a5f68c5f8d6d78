#pragma once

/* The certificate that the server shows: from two files, which are read again when something in
 * their directories changes and once a minute in any case, or given by somebody else. What is not a
 * pair leaves the old one in use. */

#include <stdatomic.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/tls.h"

struct err;

struct certificate {
	const char *cert_path, *key_path; /* NULL: certificate_use() is called by somebody */
	struct tls_context *tls;
	struct file_watch cert_watch, key_watch;
	struct timer timer;
	uint64_t digest; /* of what is loaded, to see whether the files changed */
	bool complained; /* about the present content; once is enough */
	_Atomic int64_t expiry_unix_s;
	_Atomic uint64_t reloads, failed_reloads;
};

/* Uses this pair from now on. Returns 1 when it is a new one, 0 when it is the one in use. */
int certificate_use(struct certificate *c, struct str cert_pem, struct str key_pem,
		    struct err *err);

/* Loads the pair; it must be good this first time. Then watches. */
int certificate_init(struct certificate *c, struct loop *loop, struct tls_context *tls,
		     struct err *err);
void certificate_close(struct certificate *c);
