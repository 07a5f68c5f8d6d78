#pragma once

/* TLS 1.2 and 1.3 by OpenSSL, without sockets: ciphertext is fed in and drained out, so the same
 * code serves any transport and the tests need none. A context may be shared by threads and given a
 * new certificate at any moment: connections keep the one they started with. A connection belongs
 * to one thread. */

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
	struct str cert_pem; /* the leaf first, then what chains it */
	struct str key_pem;
	const char *alpn; /* protocols by preference, comma-separated: "h2,http/1.1"; may be NULL */
};

struct tls_client_config {
	struct str ca_pem;   /* whom to trust; empty: the system's store */
	struct str cert_pem; /* who we are; may be empty */
	struct str key_pem;
	const char *alpn;
	bool insecure; /* accept any certificate: only when a kubeconfig says so */
};

void tls_context_init(struct tls_context *c);
void tls_context_done(struct tls_context *c);

/* Replace what new connections use. A bad certificate leaves the old one in place. */
int tls_context_load_server(struct tls_context *c, const struct tls_server_config *config,
			    struct err *err);
int tls_context_load_client(struct tls_context *c, const struct tls_client_config *config,
			    struct err *err);

/* When the first certificate of a PEM text ends, in seconds since 1970. */
int tls_cert_expiry(struct str pem, int64_t *ret_unix_s, struct err *err);

/* Must not move in memory once it is initialised. */
struct tls_conn {
	struct ssl_st *ssl;
	struct str in;	   /* ciphertext that was fed and not taken yet */
	struct buffer out; /* ciphertext to send */
	bool plain_http;   /* server: the first bytes were an HTTP request without TLS */
};

int tls_conn_init_server(struct tls_conn *c, struct tls_context *context, struct err *err);

/* `name` is the host name or IP address that the certificate must be for. The first flight is in
 * the output at once. */
int tls_conn_init_client(struct tls_conn *c, struct tls_context *context, const char *name,
			 struct err *err);
void tls_conn_done(struct tls_conn *c); /* also after a failed init, or on { 0 } */

/* Gives ciphertext. The bytes must stay until tls_conn_read() returned something not above 0. */
void tls_conn_feed(struct tls_conn *c, struct str ciphertext);

/* Advances the handshake and decrypts into `buf`: the number of bytes; 0 when all that was fed is
 * used up; -ESHUTDOWN after the peer's close_notify; -EPROTO with a sentence when the peer or its
 * certificate is bad. Call it until it returns 0, then send the output: there may be some in
 * every case. */
ssize_t tls_conn_read(struct tls_conn *c, char *buf, size_t cap, struct err *err);

/* Encrypts all of it. Only once the handshake is over. */
int tls_conn_write(struct tls_conn *c, struct str plain, struct err *err);

bool tls_conn_is_ready(const struct tls_conn *c);   /* the handshake is over */
struct str tls_conn_alpn(const struct tls_conn *c); /* what was agreed; "" when nothing was */
void tls_conn_shutdown(struct tls_conn *c);	    /* puts our close_notify into the output */

/* Ciphertext to send; say with buffer_consume(&c->out, n) how much was taken. */
struct str tls_conn_output(const struct tls_conn *c);
