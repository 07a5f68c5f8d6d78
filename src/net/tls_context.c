/* Certificates, keys, trusted CAs and protocol settings as an SSL_CTX. Each load builds a new one
 * and then replaces the pointer, so that a reload never changes a context that connections use. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/err.h"
#include "base/macro.h"
#include "openssl.h"
#include "tls.h"

#define ALPN_MAX 32
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20" /* forward secrecy and AEAD only */
#define GROUPS "X25519:P-256:P-384"

/* "h2,http/1.1" in the format of TLS, each name after its length. Owned by the SSL_CTX. */
struct alpn {
	unsigned char wire[ALPN_MAX];
	unsigned n;
};

static void free_ctx(SSL_CTX **ctx)
{
	SSL_CTX_free(*ctx);
}

void tls_load_providers(void)
{
	(void)OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL);
}

void tls_context_init(struct tls_context *c)
{
	(void)pthread_mutex_init(&c->lock, NULL);
	c->ctx = NULL;
}

void tls_context_done(struct tls_context *c)
{
	SSL_CTX_free(c->ctx);
	(void)pthread_mutex_destroy(&c->lock);
}

/* The lock covers only the pointer; loading and checking happen before. */
static void replace_ctx(struct tls_context *c, SSL_CTX **ctx)
{
	SSL_CTX *old;

	pthread_mutex_lock(&c->lock);
	old = c->ctx;
	c->ctx = *ctx;
	pthread_mutex_unlock(&c->lock);
	*ctx = NULL;
	SSL_CTX_free(old); /* connections that use it hold references */
}

static int use_chain(SSL_CTX *ctx, struct str pem, struct err *err)
{
	CLEANUP(free_bio) BIO *bio = bio_over(pem);
	CLEANUP(free_x509) X509 *leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	X509 *next;

	if (!leaf || SSL_CTX_use_certificate(ctx, leaf) <= 0)
		return openssl_fail(err, "certificate");
	while ((next = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		if (!SSL_CTX_add0_chain_cert(ctx, next)) {
			X509_free(next);
			return openssl_fail(err, "certificate chain");
		}
	ERR_clear_error(); /* of the read at the end of the text */
	return 0;
}

static int use_identity(SSL_CTX *ctx, struct str cert_pem, struct str key_pem, struct err *err)
{
	CLEANUP(free_bio) BIO *bio = bio_over(key_pem);
	CLEANUP(free_key) EVP_PKEY *key = NULL;
	int r = use_chain(ctx, cert_pem, err);

	if (r < 0)
		return r;
	key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	if (!key)
		return openssl_fail(err, "private key");
	if (SSL_CTX_use_PrivateKey(ctx, key) <= 0 || SSL_CTX_check_private_key(ctx) <= 0)
		return openssl_fail(err, "private key and certificate");
	return 0;
}

static void set_common(SSL_CTX *ctx)
{
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2);
	(void)SSL_CTX_set1_groups_list(ctx, GROUPS);
	/* OpenSSL frees its record buffers, about 34 KiB, while a connection is idle. */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	/* No renegotiation, so that a client cannot cause many handshakes on one connection; no
	 * compression, which leaks lengths (CRIME). The API server resumes no sessions, so tickets
	 * would only cost time. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
}

static int alpn_parse(const char *names, struct alpn *ret, struct err *err)
{
	struct str_split split = str_split(str_from(names));
	struct str name;

	ret->n = 0;
	while (names && str_next(&split, ',', &name)) {
		if (!name.n || name.n + 1 > ALPN_MAX - ret->n)
			return err_set(err, EINVAL, "invalid protocol list \"%s\"", names);
		ret->wire[ret->n] = (unsigned char)name.n;
		memcpy(ret->wire + ret->n + 1, name.p, name.n);
		ret->n += (unsigned)name.n + 1;
	}
	return 0;
}

static void free_alpn(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long number,
		      void *arg)
{
	(void)parent;
	(void)data;
	(void)index;
	(void)number;
	(void)arg;
	OPENSSL_free(pointer);
}

/* The list lives in the SSL_CTX, not in the config: connections may use it after a reload freed the
 * config. */
static int alpn_index;
static pthread_once_t alpn_once = PTHREAD_ONCE_INIT;

static void make_alpn_index(void)
{
	alpn_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_alpn);
}

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		   const unsigned char *offered, unsigned offered_n, void *arg)
{
	const struct alpn *ours = arg;
	unsigned char *chosen;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, ret_n, ours->wire, ours->n, offered, offered_n) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK; /* continue without ALPN: HTTP/1.1 */
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int offer_alpn(SSL_CTX *ctx, const char *names, struct err *err)
{
	struct alpn *ours, parsed;
	int r = alpn_parse(names, &parsed, err);

	if (r < 0 || !parsed.n)
		return r;
	(void)pthread_once(&alpn_once, make_alpn_index);
	ours = OPENSSL_memdup(&parsed, sizeof(parsed));
	if (!ours)
		return err_set(err, ENOMEM, "out of memory");
	(void)SSL_CTX_set_ex_data(ctx, alpn_index, ours);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, ours);
	return 0;
}

/* The CA certificates of the machine. OpenSSL knows where the distribution that it was built for
 * keeps them; a static program (D39) runs on others. SSL_CERT_FILE and SSL_CERT_DIR win, as always.
 */
static int load_system_trusted(SSL_CTX *ctx, struct err *err)
{
	static const char *const bundles[] = {
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
		"/etc/ssl/ca-bundle.pem",			     /* SUSE */
		"/etc/ssl/certs/ca-certificates.crt",		     /* Alpine, and images */
	};

	if (!SSL_CTX_set_default_verify_paths(ctx))
		return openssl_fail(err, "trusted certificates");
	if (access(X509_get_default_cert_dir(), F_OK) == 0 ||
	    getenv(X509_get_default_cert_file_env()) || getenv(X509_get_default_cert_dir_env()))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(bundles); i++)
		if (access(bundles[i], R_OK) == 0 &&
		    SSL_CTX_load_verify_locations(ctx, bundles[i], NULL))
			break;
	ERR_clear_error();
	return 0;
}

static int load_trusted(SSL_CTX *ctx, struct str pem, struct err *err)
{
	CLEANUP(free_bio) BIO *bio = bio_over(pem);
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	size_t n = 0;
	X509 *x;

	if (!pem.n)
		return load_system_trusted(ctx, err);
	while ((x = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
		n += (size_t)(X509_STORE_add_cert(store, x) == 1);
		X509_free(x);
	}
	if (!n)
		return openssl_fail(err, "trusted certificates");
	ERR_clear_error();
	return 0;
}

int tls_context_load_server(struct tls_context *c, const struct tls_server_config *config,
			    struct err *err)
{
	CLEANUP(free_ctx) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int r;

	if (!ctx)
		return openssl_fail(err, "TLS");
	set_common(ctx);
	r = use_identity(ctx, config->cert_pem, config->key_pem, err);
	if (r < 0)
		return r;
	r = offer_alpn(ctx, config->alpn, err);
	/* Without SSL_VERIFY_FAIL_IF_NO_PEER_CERT: probes have no certificate. The handler decides
	 * what they may use. */
	if (r >= 0 && config->client_ca_pem.n) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		r = load_trusted(ctx, config->client_ca_pem, err);
	}
	if (r < 0)
		return r;
	replace_ctx(c, &ctx);
	return 0;
}

int tls_context_load_client(struct tls_context *c, const struct tls_client_config *config,
			    struct err *err)
{
	CLEANUP(free_ctx) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct alpn alpn;
	int r;

	if (!ctx)
		return openssl_fail(err, "TLS");
	set_common(ctx);
	SSL_CTX_set_verify(ctx, config->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	r = config->insecure ? 0 : load_trusted(ctx, config->ca_pem, err);
	if (r >= 0 && config->cert_pem.n)
		r = use_identity(ctx, config->cert_pem, config->key_pem, err);
	if (r >= 0)
		r = alpn_parse(config->alpn, &alpn, err);
	if (r < 0)
		return r;
	if (alpn.n && SSL_CTX_set_alpn_protos(ctx, alpn.wire, alpn.n) != 0)
		return openssl_fail(err, "protocols");
	replace_ctx(c, &ctx);
	return 0;
}

int tls_cert_expiry(struct str pem, int64_t *ret_unix_s, struct err *err)
{
	CLEANUP(free_bio) BIO *bio = bio_over(pem);
	CLEANUP(free_x509) X509 *x = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	struct tm when;

	if (!x || !ASN1_TIME_to_tm(X509_get0_notAfter(x), &when))
		return openssl_fail(err, "certificate");
	*ret_unix_s = (int64_t)timegm(&when);
	return 0;
}
