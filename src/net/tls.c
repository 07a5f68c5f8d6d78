/* One TLS connection over memory: the owner feeds ciphertext, reads plaintext, and sends what is in
 * `out`. Contexts with certificates are tls_context.c. */

#include "tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"

/* The BIO of a connection: it reads what was fed and appends to the output. A memory BIO would copy
 * once more and keep memory while the connection is idle. */

static int bio_read(BIO *bio, char *buf, size_t cap, size_t *ret_n)
{
	struct tls_conn *c = BIO_get_data(bio);
	size_t n = c->in.n < cap ? c->in.n : cap;

	BIO_clear_retry_flags(bio);
	if (!n) {
		/* Tells OpenSSL that this is not the end of the stream: SSL_read_ex() then reports
		 * WANT_READ. */
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(buf, c->in.p, n);
	c->in = str_skip(c->in, n);
	*ret_n = n;
	return 1;
}

static int bio_write(BIO *bio, const char *bytes, size_t n, size_t *ret_n)
{
	struct tls_conn *c = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	buffer_add(&c->out, (struct str){ bytes, n });
	*ret_n = n;
	return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH; /* 0: not supported */
}

/* One for the process, made by the first connection of any thread and never freed. */
static BIO_METHOD *bio_method;
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

static void make_bio_method(void)
{
	bio_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "pinfold");
	if (!bio_method)
		abort();
	(void)BIO_meth_set_read_ex(bio_method, bio_read);
	(void)BIO_meth_set_write_ex(bio_method, bio_write);
	(void)BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* "<doing>: <OpenSSL's reason>" */
static int tls_fail(struct err *err, const char *doing)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);

	ERR_clear_error();
	return err_set(err, EPROTO, "%s: %s", doing, reason ? reason : "TLS failed");
}

void tls_conn_done(struct tls_conn *c)
{
	SSL_free(c->ssl);
	buffer_done(&c->out);
	*c = (struct tls_conn){ 0 };
}

static int conn_init(struct tls_conn *c, struct tls_context *context, struct err *err)
{
	BIO *bio;

	*c = (struct tls_conn){ 0 };
	(void)pthread_once(&bio_once, make_bio_method);
	pthread_mutex_lock(&context->lock);
	c->ssl = context->ctx ? SSL_new(context->ctx) : NULL; /* adds a reference to ctx */
	pthread_mutex_unlock(&context->lock);
	if (!c->ssl)
		return err_set(err, ENOKEY, "no certificate is loaded");
	bio = BIO_new(bio_method);
	if (!bio)
		abort();
	BIO_set_data(bio, c);
	BIO_set_init(bio, 1);
	/* Takes over our reference: SSL_free() frees the BIO. The BIO points at *c, so *c cannot
	 * move. */
	SSL_set_bio(c->ssl, bio, bio);
	return 0;
}

int tls_conn_init_server(struct tls_conn *c, struct tls_context *context, struct err *err)
{
	int r = conn_init(c, context, err);

	if (r < 0)
		return r;
	SSL_set_accept_state(c->ssl);
	return 0;
}

static bool is_ip_address(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

int tls_conn_init_client(struct tls_conn *c, struct tls_context *context, const char *name,
			 struct err *err)
{
	int r = conn_init(c, context, err);
	int ok;

	if (r < 0)
		return r;
	SSL_set_connect_state(c->ssl);
	if (is_ip_address(name)) /* RFC 6066 section 3: no address in the server name */
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), name);
	else
		/* The first checks the certificate, the second sends the server name: neither
		 * implies the other. */
		ok = SSL_set1_host(c->ssl, name) && SSL_set_tlsext_host_name(c->ssl, name);
	if (!ok)
		return tls_fail(err, "server name");
	ERR_clear_error();
	/* Only writes the ClientHello: there is no input yet, so it ends with WANT_READ. */
	r = SSL_do_handshake(c->ssl);
	if (r <= 0 && SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
		return tls_fail(err, "TLS handshake");
	return 0;
}

void tls_conn_feed(struct tls_conn *c, struct str ciphertext)
{
	assert(!c->in.n);
	c->in = ciphertext;
}

static int read_failed(struct tls_conn *c, struct err *err)
{
	long verify = SSL_get_verify_result(c->ssl);

	c->in.n = 0;
	c->plain_http = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
	/* OpenSSL's error queue says only "certificate verify failed"; the verify result says
	 * why. */
	if (verify != X509_V_OK && !SSL_is_server(c->ssl) && !SSL_is_init_finished(c->ssl)) {
		ERR_clear_error();
		return err_set(err, EPROTO, "server certificate: %s",
			       X509_verify_cert_error_string(verify));
	}
	return tls_fail(err, SSL_is_init_finished(c->ssl) ? "TLS" : "TLS handshake");
}

ssize_t tls_conn_read(struct tls_conn *c, char *buf, size_t cap, struct err *err)
{
	size_t n = 0;
	int r;

	ERR_clear_error(); /* the queue is per thread: an error of another connection would count
			      here */
	r = SSL_read_ex(c->ssl, buf, cap, &n);
	if (r > 0)
		return (ssize_t)n;
	switch (SSL_get_error(c->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		c->in.n = 0;
		return err_set(err, ESHUTDOWN, "the peer closed the connection");
	default:
		return read_failed(c, err);
	}
}

int tls_conn_write(struct tls_conn *c, struct str plain, struct err *err)
{
	size_t n;

	if (!plain.n)
		return 0;
	ERR_clear_error();
	/* Without SSL_MODE_ENABLE_PARTIAL_WRITE it is all or nothing. */
	if (SSL_write_ex(c->ssl, plain.p, plain.n, &n) <= 0)
		return tls_fail(err, "TLS write");
	assert(n == plain.n); /* bio_write() accepts everything */
	return 0;
}

bool tls_conn_is_ready(const struct tls_conn *c)
{
	return SSL_is_init_finished(c->ssl);
}

bool tls_conn_has_client(const struct tls_conn *c, const char *name)
{
	X509 *x = SSL_get0_peer_certificate(c->ssl);
	const X509_NAME *subject = x ? X509_get_subject_name(x) : NULL;
	const ASN1_STRING *text;
	int at, n;

	if (!x || SSL_get_verify_result(c->ssl) != X509_V_OK)
		return false;
	if (!name)
		return true;
	at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	/* With two names it would depend on the reader which one counts. */
	if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return false;
	text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
	n = ASN1_STRING_length(text);
	return n == (int)strlen(name) && memcmp(ASN1_STRING_get0_data(text), name, (size_t)n) == 0;
}

struct str tls_conn_alpn(const struct tls_conn *c)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(c->ssl, &p, &n);
	return (struct str){ n ? (const char *)p : "", n };
}

void tls_conn_shutdown(struct tls_conn *c)
{
	ERR_clear_error();
	/* During the handshake there is no close_notify to send, and OpenSSL fails. */
	if (SSL_is_init_finished(c->ssl))
		(void)SSL_shutdown(c->ssl);
	ERR_clear_error();
}

struct str tls_conn_output(const struct tls_conn *c)
{
	return buffer_str(&c->out);
}
