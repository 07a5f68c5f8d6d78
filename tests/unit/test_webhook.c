/* The daemon as a process: it is started, gets requests over TLS and signals, and exits. */

#include <stdlib.h>

#include "webhook_daemon.h"

TEST(reviews_and_health_endpoints_are_served)
{
	static const struct {
		const char *method, *path, *body;
		int status;
		const char *says;
	} cases[] = {
		{ "POST", "/mutate/pods", REVIEW, 200, "\"patchType\":\"JSONPatch\"" },
		{ "POST", "/validate/pods", REVIEW, 200, "\"allowed\":true" },
		{ "POST", "/mutate/pods?timeout=1s", REVIEW, 200, "\"uid\":\"u-1\"" },
		{ "POST", "/mutate/pods", "{", 400, "" },
		{ "POST", "/validate/nodes", "{\"request\":{\"uid\":\"u\"}}", 200, "\"code\":400" },
		{ "GET", "/mutate/pods", "", 405, "405 Method Not Allowed" },
		{ "POST", "/livez", "", 405, "405 Method Not Allowed" },
		{ "GET", "/", "", 404, "404 Not Found" },
		{ "GET", "/livez", "", 200, "ok\n" },
		{ "GET", "/livez?verbose", "", 200, "[+]ping ok" },
		{ "GET", "/readyz", "", 200, "ok\n" },
		{ "GET", "/readyz?verbose", "", 200, "[+]state ok\n[+]certificate ok\n" },
	};
	static char response[1 << 16];
	struct daemon d;

	daemon_start(&d, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%s %s", cases[i].method, cases[i].path);
		CHECK_INT(daemon_ask(&d, cases[i].method, cases[i].path, cases[i].body, response,
				     sizeof(response)),
			  cases[i].status);
		CHECK(strstr(response, cases[i].says) != NULL);
	}
	daemon_stop(&d);
}

TEST(metrics_count_what_happened)
{
	static const char *const want[] = {
		"pinfold_build_info{version=",
		("pinfold_admission_reviews_total{hook=\"mutate_pods\",result=\"changed\","
		 "rule=\"convert\"} 2\n"),
		("pinfold_admission_reviews_total{hook=\"mutate_pods\",result=\"failed\","
		 "rule=\"none\"} 1\n"),
		"pinfold_admission_duration_seconds_count{hook=\"mutate_pods\"} 3\n",
		"pinfold_admission_duration_seconds_bucket{hook=\"mutate_pods\",le=\"5e-05\"} ",
		"pinfold_admission_duration_seconds_bucket{hook=\"mutate_pods\",le=\"+Inf\"} 3\n",
		"pinfold_http_connections 1\n",
		"pinfold_http_connections_closed_total{reason=\"peer\"} ",
		"pinfold_certificate_expiry_timestamp_seconds ",
		"pinfold_state_objects{kind=\"Namespace\"} 1\n",
		"process_resident_memory_bytes ",
	};
	static char response[1 << 16];
	struct daemon d;

	daemon_start(&d, NULL);
	for (int i = 0; i < 2; i++)
		CHECK_INT(daemon_ask(&d, "POST", "/mutate/pods", REVIEW, response,
				     sizeof(response)),
			  200);
	CHECK_INT(daemon_ask(&d, "POST", "/mutate/pods", "[]", response, sizeof(response)), 400);
	(void)poll(NULL, 0, 100); /* until the server has closed the connections */
	CHECK_INT(daemon_get(&d, "/metrics", response, sizeof(response)), 200);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		TEST_ROW("%s", want[i]);
		CHECK(strstr(response, want[i]) != NULL);
	}
	daemon_stop(&d);
}

TEST(sighup_reloads_the_state)
{
	static char response[1 << 14];
	struct daemon d;

	daemon_start(&d, NULL);
	daemon_put_state(&d, "elsewhere");
	(void)kill(d.pid, SIGHUP);
	CHECK(daemon_logged(&d, "reloaded the state files"));
	CHECK_INT(daemon_ask(&d, "POST", "/mutate/pods", REVIEW, response, sizeof(response)), 200);
	CHECK(strstr(response, "\"code\":404") != NULL); /* the namespace no longer exists */
	daemon_put(&d, "state.yaml", STR("kind: [oh no\n"));
	(void)kill(d.pid, SIGHUP);
	CHECK(daemon_logged(&d, "keeping the old state"));
	CHECK(daemon_logged(&d, "state.yaml:"));
	CHECK_INT(daemon_get(&d, "/readyz", response, sizeof(response)), 200);
	CHECK_INT(daemon_get(&d, "/metrics", response, sizeof(response)), 200);
	CHECK(strstr(response, "pinfold_state_reloads_total{result=\"failed\"} 1") != NULL);
	daemon_stop(&d);
}

static long shown_serial(struct daemon *d)
{
	static struct https_client c;
	X509 *x;
	long serial;

	CHECK(https_connect(&c, d->port, NULL));
	x = SSL_get1_peer_certificate(c.ssl);
	serial = ASN1_INTEGER_get(X509_get0_serialNumber(x));
	X509_free(x);
	https_close(&c);
	return serial;
}

TEST(new_certificate_files_are_used_without_closing_connections)
{
	static struct https_client old;
	struct test_cert other;
	struct daemon d;
	long before, after;

	daemon_start(&d, NULL);
	before = shown_serial(&d);
	CHECK(https_connect(&old, d.port, NULL));
	daemon_put_cert(&d);
	CHECK(daemon_logged(&d, "loaded a new certificate"));
	after = shown_serial(&d);
	CHECK(before != after);
	CHECK(https_send(&old, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 33));
	CHECK_INT(https_response(&old, NULL, 0), 200);
	https_close(&old);

	test_cert_make(&other, "localhost");
	daemon_put(&d, "tls.key", other.key_pem); /* does not match the certificate */
	CHECK(daemon_logged(&d, "cannot load the new certificate, keeping the old one"));
	CHECK_INT(shown_serial(&d), after);
	test_cert_done(&other);
	daemon_stop(&d);
}

TEST(after_sigterm_readyz_fails_and_requests_are_still_served)
{
	static char response[1 << 14];
	struct daemon d;

	daemon_start(&d, NULL);
	(void)kill(d.pid, SIGTERM);
	CHECK(daemon_logged(&d, "shutting down"));
	CHECK_INT(daemon_get(&d, "/readyz", response, sizeof(response)), 503);
	CHECK(strstr(response, "[-]shutdown failed") != NULL);
	CHECK_INT(daemon_ask(&d, "POST", "/mutate/pods", REVIEW, response, sizeof(response)), 200);
	CHECK(daemon_logged(&d, "stopped"));
	d.is_ending = true;
	daemon_stop(&d);
}

TEST(the_webhook_serves_under_a_seccomp_filter)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str status;
	struct daemon d;
	char path[64];

	if (strcmp(SANDBOX_FLAG, "--no-seccomp") == 0)
		TEST_SKIP("not with a sanitizer");
	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("emulated processes have no seccomp filters");
	daemon_start(&d, NULL);
	arena_init(&a, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	for (int i = 0; i < 100; i++) { /* the filter is loaded right after the port opens */
		CHECK_OK(file_read_at(AT_FDCWD, path, 1 << 16, &a, &status, &err));
		if (str_has(status, STR("Seccomp:\t2")))
			break;
		(void)poll(NULL, 0, 10);
	}
	CHECK(str_has(status, STR("Seccomp:\t2")));
	daemon_stop(&d);
}
