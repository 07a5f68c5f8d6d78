#pragma once

/* Throw-away ECDSA P-256 certificates for tests, signed by themselves. */

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/str.h"

struct test_cert {
	BIO *cert_bio, *key_bio;
	struct str cert_pem, key_pem;
};

static inline struct str test_bio_str(BIO *bio)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	return (struct str){ p, (size_t)n };
}

/* Valid for `name` and 127.0.0.1, for one hour. */
static inline void test_cert_make(struct test_cert *c, const char *name)
{
	static long serial;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	char san[128];
	X509_EXTENSION *ext;

	(void)ASN1_INTEGER_set(X509_get_serialNumber(x), time(NULL) + ++serial);
	(void)X509_set_version(x, 2);
	(void)X509_gmtime_adj(X509_getm_notBefore(x), -60);
	(void)X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	(void)X509_set_pubkey(x, key);
	(void)X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
					 (const unsigned char *)name, -1, -1, 0);
	(void)X509_set_issuer_name(x, X509_get_subject_name(x));
	(void)snprintf(san, sizeof(san), "DNS:%s,IP:127.0.0.1", name);
	ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
	(void)X509_add_ext(x, ext, -1);
	X509_EXTENSION_free(ext);
	(void)X509_sign(x, key, EVP_sha256());
	c->cert_bio = BIO_new(BIO_s_mem());
	c->key_bio = BIO_new(BIO_s_mem());
	(void)PEM_write_bio_X509(c->cert_bio, x);
	(void)PEM_write_bio_PrivateKey(c->key_bio, key, NULL, NULL, 0, NULL, NULL);
	c->cert_pem = test_bio_str(c->cert_bio);
	c->key_pem = test_bio_str(c->key_bio);
	X509_free(x);
	EVP_PKEY_free(key);
}

static inline void test_cert_done(struct test_cert *c)
{
	BIO_free(c->cert_bio);
	BIO_free(c->key_bio);
}
