#pragma once

/* TLS 1.2 and 1.3 with OpenSSL, without sockets: ciphertext is fed in and read out, so it works
 * with any transport. Threads may share a context; a new certificate may be loaded at any time, and
 * connections keep the one they started with. A connection belongs to one thread. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "buffer.h"

struct err;

struct tls_context {
	pthread_mutex_t lock;
	struct ssl_ctx_st *ctx; /* NULL until a load succeeded */
};

struct tls_server_config {
	struct str cert_pem; /* the leaf first, then its chain */
	struct str key_pem;
	const char *alpn; /* protocols by preference, comma-separated: "h2,http/1.1"; may be NULL */
	struct str client_ca_pem; /* clients may present a certificate of these CAs; may be empty */
};

struct tls_client_config {
	struct str ca_pem;   /* trusted CAs; empty: the system's store */
	struct str cert_pem; /* client certificate; may be empty */
	struct str key_pem;
	const char *alpn;
	bool insecure; /* accept any certificate: only for insecure-skip-tls-verify of a kubeconfig
			*/
};

/* Loads OpenSSL's configuration and the providers it names, such as a FIPS module. Later it happens
 * by itself, but a confined process cannot load shared objects. */
void tls_load_providers(void);

void tls_context_init(struct tls_context *c);
void tls_context_done(struct tls_context *c);

/* For new connections. An invalid certificate leaves the old one in use. */
int tls_context_load_server(struct tls_context *c, const struct tls_server_config *config,
			    struct err *err);
int tls_context_load_client(struct tls_context *c, const struct tls_client_config *config,
			    struct err *err);

/* When the first certificate of a PEM text expires, in seconds since 1970. */
int tls_cert_expiry(struct str pem, int64_t *ret_unix_s, struct err *err);

/* Must not move in memory once it is initialised. */
struct tls_conn {
	struct ssl_st *ssl;
	struct str in;	   /* ciphertext that was fed and not read yet */
	struct buffer out; /* ciphertext to send */
	bool plain_http;   /* server: the first bytes were an HTTP request without TLS */
};

int tls_conn_init_server(struct tls_conn *c, struct tls_context *context, struct err *err);

/* `name` is the host name or IP address that the certificate must be for. The ClientHello is
 * in the output at once. */
int tls_conn_init_client(struct tls_conn *c, struct tls_context *context, const char *name,
			 struct err *err);
void tls_conn_done(struct tls_conn *c); /* also after a failed init, or on { 0 } */

/* Provides ciphertext. The bytes must stay valid until tls_conn_read() returned 0 or an error. */
void tls_conn_feed(struct tls_conn *c, struct str ciphertext);

/* Advances the handshake and decrypts into `buf`: the number of bytes; 0 when all input is
 * consumed; -ESHUTDOWN after the peer's close_notify; -EPROTO when the peer violates the
 * protocol or its certificate is invalid. Call it until it returns 0, then send the output, which
 * may exist in every case, also after an error (an alert). */
ssize_t tls_conn_read(struct tls_conn *c, char *buf, size_t cap, struct err *err);

/* Encrypts all of it. Only after the handshake. */
int tls_conn_write(struct tls_conn *c, struct str plain, struct err *err);

bool tls_conn_is_ready(const struct tls_conn *c); /* the handshake is complete */

/* The client presented a valid certificate, whose common name is `name` unless that is NULL. */
bool tls_conn_has_client(const struct tls_conn *c, const char *name);
struct str tls_conn_alpn(
	const struct tls_conn *c);	    /* the selected protocol; "" when there is none */
void tls_conn_shutdown(struct tls_conn *c); /* adds close_notify to the output */

/* Ciphertext to send; the caller removes what it sent with buffer_consume(&c->out, n). */
struct str tls_conn_output(const struct tls_conn *c);
