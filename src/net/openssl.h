#pragma once

/* Helpers for OpenSSL's C API: cleanup functions for CLEANUP(), PEM text as input, its last error
 * as struct err. TLS itself is tls.h. */

#include <errno.h>
#include <limits.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/err.h"
#include "base/str.h"

static inline void free_bio(BIO **bio)
{
	BIO_free(*bio);
}

static inline void free_x509(X509 **x)
{
	X509_free(*x);
}

static inline void free_key(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static inline BIO *bio_over(struct str pem)
{
	return BIO_new_mem_buf(pem.n ? pem.p : "", pem.n > INT_MAX ? INT_MAX : (int)pem.n);
}

/* OpenSSL would prompt on the terminal; an encrypted key is an error instead. */
static inline int no_password(char *buf, int size, int writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)writing;
	(void)arg;
	return -1;
}

/* "<what>: <OpenSSL's reason>" */
static inline int openssl_fail(struct err *err, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return err_set(err, EINVAL, "%s: %s", what, reason ? reason : "not usable");
}
