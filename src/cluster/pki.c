/* Certificates with OpenSSL. OpenSSL's error queue belongs to the thread and is also read by its
 * TLS functions: every function here clears it, so that an unreadable PEM text is not reported as
 * the failure of an unrelated connection. */

#include "pki.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include <openssl/ec.h>
#include <openssl/x509v3.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "net/openssl.h"

static X509 *read_cert(struct str pem)
{
	CLEANUP(free_bio) BIO *bio = bio_over(pem);
	X509 *x = PEM_read_bio_X509(bio, NULL, no_password, NULL);

	ERR_clear_error();
	return x;
}

static EVP_PKEY *read_key(struct str pem)
{
	CLEANUP(free_bio) BIO *bio = bio_over(pem);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);

	ERR_clear_error();
	return key;
}

static struct str take_text(BIO *bio, struct arena *a)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	/* The BIO owns the text. */
	return str_dup(a, (struct str){ p, n > 0 ? (size_t)n : 0 });
}

static int write_pair(X509 *x, EVP_PKEY *key, struct arena *a, struct pki_pair *ret,
		      struct err *err)
{
	CLEANUP(free_bio) BIO *cert_bio = BIO_new(BIO_s_mem());
	CLEANUP(free_bio) BIO *key_bio = BIO_new(BIO_s_mem());

	if (!cert_bio || !key_bio || !PEM_write_bio_X509(cert_bio, x) ||
	    !PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL))
		return openssl_fail(err, "cannot write a certificate");
	*ret = (struct pki_pair){ take_text(cert_bio, a), take_text(key_bio, a) };
	return 0;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;
	int r;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (!e)
		return false;
	r = X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return r == 1;
}

static bool set_serial(X509 *x)
{
	BIGNUM *n = BN_new();
	/* RFC 5280: positive and at most 20 octets. Random, so that two CAs of the same second
	 * differ. */
	bool ok = n && BN_rand(n, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
		  BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));

	BN_free(n);
	return ok;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)text,
					  -1, -1, 0) == 1;
}

static bool set_times(X509 *x, int64_t from_s, int64_t to_s)
{
	return ASN1_TIME_set(X509_getm_notBefore(x), (time_t)from_s) &&
	       ASN1_TIME_set(X509_getm_notAfter(x), (time_t)to_s);
}

int pki_make_ca(const char *name, int64_t now_s, int64_t lifetime_s, struct arena *a,
		struct pki_pair *ret, struct err *err)
{
	CLEANUP(free_key) EVP_PKEY *key = EVP_EC_gen("P-256");
	CLEANUP(free_x509) X509 *x = X509_new();

	/* Version 2 is X.509 v3. The key is set before the extensions: the subject key identifier
	 * is its hash. With pathlen:0 the CA cannot sign another CA. */
	if (!key || !x || !X509_set_version(x, 2) || !set_serial(x) ||
	    !set_times(x, now_s - PKI_BACKDATE_S, now_s + lifetime_s) ||
	    !set_name(X509_get_subject_name(x), name) ||
	    !X509_set_issuer_name(x, X509_get_subject_name(x)) || !X509_set_pubkey(x, key) ||
	    !add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_extension(x, x, NID_subject_key_identifier, "hash") ||
	    !X509_sign(x, key, EVP_sha256()))
		return openssl_fail(err, "cannot make a CA");
	return write_pair(x, key, a, ret, err);
}

static bool is_address(const char *name)
{
	unsigned char bytes[16];

	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* "DNS:a,IP:127.0.0.1". A comma inside a name would start another name and is rejected. */
static int join_names(const struct pki_leaf *leaf, struct arena *a, const char **ret,
		      struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < leaf->n_names; i++) {
		const char *name = leaf->names[i];

		if (!*name || strpbrk(name, ",:\n ") ? !is_address(name) : false)
			return err_set(err, EINVAL, "\"%s\" cannot be in a certificate", name);
		strbuf_printf(&b, "%s%s:%s", i ? "," : "", is_address(name) ? "IP" : "DNS", name);
	}
	strbuf_addc(&b, '\0');
	*ret = b.p;
	return 0;
}

int pki_issue(const struct pki_pair *ca, const struct pki_leaf *leaf, struct arena *a,
	      struct pki_pair *ret, struct err *err)
{
	CLEANUP(free_x509) X509 *issuer = read_cert(ca->cert_pem);
	CLEANUP(free_key) EVP_PKEY *ca_key = read_key(ca->key_pem);
	CLEANUP(free_key) EVP_PKEY *key = EVP_EC_gen("P-256");
	CLEANUP(free_x509) X509 *x = X509_new();
	const char *names;
	int r = join_names(leaf, a, &names, err);

	if (r < 0)
		return r;
	if (!issuer || !ca_key)
		return openssl_fail(err, "CA");
	/* Names are in subjectAltName: Go, in which the API server is written, ignores the common
	 * name. */
	if (!key || !x || !X509_set_version(x, 2) || !set_serial(x) ||
	    !set_times(x, leaf->now_s - PKI_BACKDATE_S, leaf->now_s + leaf->lifetime_s) ||
	    !set_name(X509_get_subject_name(x), "pinfold-webhook") ||
	    !X509_set_issuer_name(x, X509_get_subject_name(issuer)) || !X509_set_pubkey(x, key) ||
	    !add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
	    !add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") ||
	    !add_extension(x, issuer, NID_ext_key_usage, "serverAuth") ||
	    !add_extension(x, issuer, NID_authority_key_identifier, "keyid:always") ||
	    !add_extension(x, issuer, NID_subject_alt_name, names) ||
	    !X509_sign(x, ca_key, EVP_sha256()))
		return openssl_fail(err, "cannot issue a certificate");
	return write_pair(x, key, a, ret, err);
}

static bool seconds_of(const ASN1_TIME *t, int64_t *ret)
{
	struct tm tm;

	if (!ASN1_TIME_to_tm(t, &tm))
		return false;
	*ret = (int64_t)timegm(&tm);
	return true;
}

int pki_read(struct str cert_pem, struct pki_info *ret, struct err *err)
{
	CLEANUP(free_x509) X509 *x = read_cert(cert_pem);
	struct pki_info info;

	if (!x || !seconds_of(X509_get0_notBefore(x), &info.made_s) ||
	    !seconds_of(X509_get0_notAfter(x), &info.ends_s))
		return openssl_fail(err, "certificate");
	info.made_s += PKI_BACKDATE_S;
	info.is_ca = X509_check_ca(x) == 1;
	*ret = info;
	return 0;
}

bool pki_is_pair(const struct pki_pair *p)
{
	CLEANUP(free_x509) X509 *x = read_cert(p->cert_pem);
	CLEANUP(free_key) EVP_PKEY *key = read_key(p->key_pem);
	bool ok = x && key && X509_check_private_key(x, key) == 1;

	ERR_clear_error();
	return ok;
}

bool pki_is_signed_by(struct str cert_pem, struct str ca_pem)
{
	CLEANUP(free_x509) X509 *x = read_cert(cert_pem);
	CLEANUP(free_x509) X509 *ca = read_cert(ca_pem);
	EVP_PKEY *key = ca ? X509_get0_pubkey(ca) : NULL;
	/* X509_check_issued() compares names and key identifiers; only X509_verify() checks the
	 * signature. */
	bool ok = x && key && X509_check_issued(ca, x) == X509_V_OK && X509_verify(x, key) == 1;

	ERR_clear_error();
	return ok;
}

bool pki_has_names(struct str cert_pem, const char *const *names, size_t n)
{
	CLEANUP(free_x509) X509 *x = read_cert(cert_pem);
	bool ok = x != NULL;

	for (size_t i = 0; i < n && ok; i++)
		ok = is_address(names[i]) ? X509_check_ip_asc(x, names[i], 0) == 1 :
					    X509_check_host(x, names[i], 0, 0, NULL) == 1;
	ERR_clear_error();
	return ok;
}

bool pki_next(struct str *rest, struct str *ret)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	static const char end[] = "-----END CERTIFICATE-----";
	const char *from, *to;

	/* The pointer of an empty text may be NULL, which memmem() must not get. */
	if (!rest->n)
		return false;
	from = memmem(rest->p, rest->n, begin, strlen(begin));
	if (!from)
		return false;
	to = memmem(from, rest->n - (size_t)(from - rest->p), end, strlen(end));
	if (!to)
		return false;
	to += strlen(end);
	*ret = (struct str){ from, (size_t)(to - from) };
	*rest = str_skip(*rest, (size_t)(to - rest->p));
	return true;
}
