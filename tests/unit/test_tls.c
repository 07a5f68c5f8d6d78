#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "net/tls.h"
#include "test.h"
#include "test_certs.h"

/* Two connections without a socket: the output of one is the input of the other. */
struct pair {
	struct tls_context server_context, client_context;
	struct tls_conn server, client;
	struct test_cert cert;
};

static void pair_init(struct pair *p, const char *name)
{
	struct err err = { 0 };

	memset(p, 0, sizeof(*p));
	test_cert_make(&p->cert, "localhost");
	tls_context_init(&p->server_context);
	tls_context_init(&p->client_context);
	CHECK_OK(tls_context_load_server(&p->server_context,
					 &(struct tls_server_config){ .cert_pem = p->cert.cert_pem,
								      .key_pem = p->cert.key_pem,
								      .alpn = "h2,http/1.1" },
					 &err));
	CHECK_OK(tls_context_load_client(&p->client_context,
					 &(struct tls_client_config){ .ca_pem = p->cert.cert_pem,
								      .alpn = "http/1.1" },
					 &err));
	CHECK_OK(tls_conn_init_server(&p->server, &p->server_context, &err));
	CHECK_OK(tls_conn_init_client(&p->client, &p->client_context, name, &err));
}

static void pair_done(struct pair *p)
{
	tls_conn_done(&p->server);
	tls_conn_done(&p->client);
	tls_context_done(&p->server_context);
	tls_context_done(&p->client_context);
	test_cert_done(&p->cert);
}

/* Transfers at most `step` bytes at a time. Returns the result of the receiver's last read. */
static ssize_t carry(struct tls_conn *from, struct tls_conn *to, size_t step, struct buffer *plain,
		     struct err *err)
{
	ssize_t n = 0;

	while (tls_conn_output(from).n) {
		struct str out = tls_conn_output(from);
		char buf[512];

		out.n = out.n < step ? out.n : step;
		tls_conn_feed(to, out);
		while ((n = tls_conn_read(to, buf, sizeof(buf), err)) > 0)
			buffer_add(plain, (struct str){ buf, (size_t)n });
		buffer_consume(&from->out, out.n);
		if (n < 0)
			return n;
	}
	return n;
}

static void shake_hands(struct pair *p, size_t step)
{
	struct buffer none = { 0 };
	struct err err = { 0 };

	for (int i = 0; i < 3; i++) {
		CHECK_OK((int)carry(&p->client, &p->server, step, &none, &err));
		CHECK_OK((int)carry(&p->server, &p->client, step, &none, &err));
	}
	CHECK(tls_conn_is_ready(&p->server) && tls_conn_is_ready(&p->client));
}

TEST(a_connection_works_with_pieces_of_any_size)
{
	static const size_t steps[] = { 1, 7, 1000, 65536 };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct buffer got = { 0 };
		struct err err = { 0 };
		struct pair p;

		TEST_ROW("%zu bytes at a time", steps[i]);
		pair_init(&p, "localhost");
		shake_hands(&p, steps[i]);
		CHECK_STR(tls_conn_alpn(&p.server), "http/1.1");
		CHECK_OK(tls_conn_write(&p.client, STR("a question"), &err));
		CHECK_OK((int)carry(&p.client, &p.server, steps[i], &got, &err));
		CHECK_STR(buffer_str(&got), "a question");
		tls_conn_shutdown(&p.server);
		CHECK_INT(carry(&p.server, &p.client, steps[i], &got, &err), -ESHUTDOWN);
		buffer_done(&got);
		pair_done(&p);
	}
}

TEST(a_certificate_for_another_name_is_refused)
{
	struct buffer none = { 0 };
	struct err err = { 0 };
	struct pair p;

	pair_init(&p, "elsewhere.example");
	CHECK_OK((int)carry(&p.client, &p.server, 4096, &none, &err));
	CHECK_INT(carry(&p.server, &p.client, 4096, &none, &err), -EPROTO);
	CHECK(strstr(err.msg, "server certificate: hostname mismatch") != NULL);
	pair_done(&p);
}

TEST(a_new_certificate_does_not_affect_existing_connections)
{
	struct buffer got = { 0 };
	struct err err = { 0 };
	struct test_cert other;
	struct tls_conn late;
	struct pair p;

	pair_init(&p, "localhost");
	shake_hands(&p, 4096);
	test_cert_make(&other, "localhost");
	CHECK_OK(tls_context_load_server(&p.server_context,
					 &(struct tls_server_config){ .cert_pem = other.cert_pem,
								      .key_pem = other.key_pem },
					 &err));
	CHECK_OK(tls_conn_write(&p.client, STR("still here"), &err));
	CHECK_OK((int)carry(&p.client, &p.server, 4096, &got, &err));
	CHECK_STR(buffer_str(&got), "still here");
	buffer_done(&got);

	/* A new connection gets the new certificate, which this client does not trust. */
	tls_conn_done(&p.server);
	CHECK_OK(tls_conn_init_server(&p.server, &p.server_context, &err));
	CHECK_OK(tls_conn_init_client(&late, &p.client_context, "localhost", &err));
	CHECK_OK((int)carry(&late, &p.server, 4096, &got, &err));
	CHECK_INT(carry(&p.server, &late, 4096, &got, &err), -EPROTO);
	tls_conn_done(&late);
	test_cert_done(&other);
	pair_done(&p);
}

TEST(an_invalid_certificate_does_not_replace_a_valid_one)
{
	struct err err = { 0 };
	struct test_cert other;
	struct pair p;

	pair_init(&p, "localhost");
	test_cert_make(&other, "localhost");
	CHECK_ERR(tls_context_load_server(&p.server_context,
					  &(struct tls_server_config){ .cert_pem = STR("nonsense"),
								       .key_pem = other.key_pem },
					  &err),
		  EINVAL, "certificate: no start line");
	CHECK_ERR(tls_context_load_server(&p.server_context,
					  &(struct tls_server_config){ .cert_pem = other.cert_pem,
								       .key_pem = p.cert.key_pem },
					  &err),
		  EINVAL, "private key and certificate: key values mismatch");
	shake_hands(&p, 4096);
	test_cert_done(&other);
	pair_done(&p);
}

TEST(a_client_without_tls_is_detected)
{
	struct err err = { 0 };
	struct pair p;
	char buf[16];

	pair_init(&p, "localhost");
	tls_conn_feed(&p.server, STR("GET /livez HTTP/1.1\r\n\r\n"));
	CHECK_INT(tls_conn_read(&p.server, buf, sizeof(buf), &err), -EPROTO);
	CHECK(p.server.plain_http);
	pair_done(&p);
}

TEST(garbage_ends_the_handshake_with_an_error)
{
	struct err err = { 0 };
	struct pair p;
	char buf[16];

	pair_init(&p, "localhost");
	tls_conn_feed(&p.server, STR("\x16\x03\x01\x00\x05garbage and more garbage"));
	CHECK_INT(tls_conn_read(&p.server, buf, sizeof(buf), &err), -EPROTO);
	CHECK(!p.server.plain_http && err.msg[0]);
	pair_done(&p);
}
