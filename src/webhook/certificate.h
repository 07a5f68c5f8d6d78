#pragma once

/* The certificate that the server shows, from two files. They are read again when something in
 * their directories changes and once a minute in any case; what is not a pair leaves the old one
 * in use. */

#include <stdatomic.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/tls.h"

struct err;

struct certificate {
	const char *cert_path, *key_path;
	struct tls_context *tls;
	struct file_watch cert_watch, key_watch;
	struct timer timer;
	uint64_t digest; /* of what is loaded, to see whether the files changed */
	bool complained; /* about the present content; once is enough */
	_Atomic int64_t expiry_unix_s;
	_Atomic uint64_t reloads, failed_reloads;
};

/* Loads the pair; it must be good this first time. Then watches. */
int certificate_init(struct certificate *c, struct loop *loop, struct tls_context *tls,
		     struct err *err);
void certificate_close(struct certificate *c);
