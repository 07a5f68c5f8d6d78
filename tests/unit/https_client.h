#pragma once

/* A blocking HTTPS client for tests, with OpenSSL's own socket code, so that it shares no code
 * with the server under test. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

struct https_client {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
	char buf[1 << 16]; /* received and not parsed yet */
	size_t n;
};

/* The address that this thread connects from, as 127.0.0.x; 0: the usual one. */
static _Thread_local uint8_t tcp_source;

static inline int tcp_connect_local(unsigned port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (tcp_source) {
		struct sockaddr_in from = { .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(0x7f000000u | tcp_source) };

		(void)bind(fd, (struct sockaddr *)&from, sizeof(from));
	}
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static inline void https_identity(SSL_CTX *ctx, const char *cert_pem, const char *key_pem)
{
	BIO *cert_bio = BIO_new_mem_buf(cert_pem, -1), *key_bio = BIO_new_mem_buf(key_pem, -1);
	X509 *cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);

	(void)SSL_CTX_use_certificate(ctx, cert);
	(void)SSL_CTX_use_PrivateKey(ctx, key);
	X509_free(cert);
	EVP_PKEY_free(key);
	BIO_free(cert_bio);
	BIO_free(key_bio);
}

/* False when the connection or the handshake fails. `alpn` is in the format of TLS, or NULL;
 * `cert_pem` and `key_pem` are the client's certificate, or NULL. */
static inline bool https_connect_as(struct https_client *c, unsigned port, const char *alpn,
				    const char *cert_pem, const char *key_pem)
{
	memset(c, 0, offsetof(struct https_client, buf));
	c->n = 0;
	c->fd = tcp_connect_local(port);
	if (c->fd < 0)
		return false;
	c->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_options(c->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	if (cert_pem)
		https_identity(c->ctx, cert_pem, key_pem);
	c->ssl = SSL_new(c->ctx);
	if (alpn)
		(void)SSL_set_alpn_protos(c->ssl, (const unsigned char *)alpn,
					  (unsigned)strlen(alpn));
	(void)SSL_set_fd(c->ssl, c->fd);
	return SSL_connect(c->ssl) == 1;
}

static inline bool https_connect(struct https_client *c, unsigned port, const char *alpn)
{
	return https_connect_as(c, port, alpn, NULL, NULL);
}

static inline bool https_send(struct https_client *c, const char *bytes, size_t n)
{
	return n == 0 || SSL_write(c->ssl, bytes, (int)n) == (int)n;
}

/* Reads more bytes into the buffer; false at the end of the connection. */
static inline bool https_more(struct https_client *c)
{
	int r = SSL_read(c->ssl, c->buf + c->n, (int)(sizeof(c->buf) - 1 - c->n));

	if (r <= 0)
		return false;
	c->n += (size_t)r;
	c->buf[c->n] = '\0';
	return true;
}

/* The status of the next response, its body copied to `body` (cap bytes, with NUL); 0 at the end.
 * */
static inline int https_response(struct https_client *c, char *body, size_t cap)
{
	const char *length;
	char *end;
	size_t head, total, want = 0;
	int status;

	c->buf[c->n] = '\0';
	while (!(end = strstr(c->buf, "\r\n\r\n")))
		if (!https_more(c))
			return 0;
	head = (size_t)(end - c->buf) + 4;
	length = strcasestr(c->buf, "\r\nContent-Length: ");
	if (length && length < end)
		want = strtoul(length + 18, NULL, 10);
	total = head + want;
	while (c->n < total)
		if (!https_more(c))
			return 0;
	status = atoi(c->buf + 9);
	if (body) {
		size_t n = want < cap - 1 ? want : cap - 1;

		memcpy(body, c->buf + head, n);
		body[n] = '\0';
	}
	memmove(c->buf, c->buf + total, c->n - total);
	c->n -= total;
	c->buf[c->n] = '\0';
	return status;
}

static inline void https_close(struct https_client *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	if (c->fd >= 0)
		(void)close(c->fd);
}
