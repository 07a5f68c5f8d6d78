/* The daemon as a process: it is started, gets requests over TLS and signals, and exits. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "https_client.h"
#include "test.h"
#include "test_certs.h"

#define STATE                                                                                      \
	"{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster},\n"  \
	" status: {controlPlaneTopology: HighlyAvailable, infrastructureTopology: "                \
	"HighlyAvailable, cpuPartitioning: AllNodes}}\n---\n"                                      \
	"{apiVersion: v1, kind: Node, metadata: {name: worker},\n"                                 \
	" status: {allocatable: {management.workload.openshift.io/cores: 8000}}}\n---\n"           \
	"{apiVersion: v1, kind: Namespace, metadata: {name: %s,\n"                                 \
	" annotations: {workload.openshift.io/allowed: management}}}\n"

#define REVIEW                                                                                     \
	"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"       \
	"\"uid\":\"u-1\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"  \
	"\"namespace\":\"platform\",\"operation\":\"CREATE\",\"userInfo\":{},\"object\":{"         \
	"\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"annotations\":{"    \
	"\"target.workload.openshift.io/management\":"                                             \
	"\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\"}},\"spec\":{\"containers\":[{"     \
	"\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"400m\",\"memory\":\"1Gi\"}}}]}}}}"

struct daemon {
	char dir[32];
	int fd; /* of the directory */
	pid_t pid;
	unsigned port;
	bool is_ending; /* SIGTERM was sent already; a second one exits without draining */
	struct test_cert cert;
};

static void put(struct daemon *d, const char *name, struct str text)
{
	struct err err = { 0 };

	CHECK_OK(file_replace_at(d->fd, name, text, 0600, &err));
}

static void put_state(struct daemon *d, const char *namespace)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), STATE, namespace);
	put(d, "state.yaml", str_from(text));
}

static void put_cert(struct daemon *d)
{
	if (d->cert.cert_bio)
		test_cert_done(&d->cert);
	test_cert_make(&d->cert, "localhost");
	put(d, "tls.crt", d->cert.cert_pem);
	put(d, "tls.key", d->cert.key_pem);
}

/* Waits until the log has the text. */
static bool logged(struct daemon *d, const char *text)
{
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_done) struct arena a;
		struct str log = STR("");

		arena_init(&a, 0);
		(void)file_read_at(d->fd, "log", 1 << 20, &a, &log, NULL);
		if (str_has(log, str_from(text)))
			return true;
		(void)poll(NULL, 0, 10);
	}
	return false;
}

static unsigned logged_port(struct daemon *d)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str log;
	const char *text, *port;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(d->fd, "log", 1 << 20, &a, &log, &err));
	text = str_cstr(&a, log);
	port = text ? strstr(text, " port=") : NULL;
	CHECK(port != NULL);
	return port ? (unsigned)atoi(port + 6) : 0;
}

/* Sanitizers search for leaks with system calls that the seccomp filter refuses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_FLAG "--no-seccomp"
#else
#define SANDBOX_FLAG "--threads=2"
#endif

static void start(struct daemon *d)
{
	memset(d, 0, sizeof(*d));
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(d->dir, sizeof(d->dir), "/tmp/pinfold-webhook-XXXXXX");
	CHECK(mkdtemp(d->dir) != NULL);
	d->fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_state(d, "platform");
	put_cert(d);
	d->pid = fork();
	if (d->pid == 0) {
		const char *program = getenv("PINFOLD");
		int log = openat(d->fd, "log", O_WRONLY | O_CREAT | O_APPEND, 0600);

		(void)dup2(log, STDERR_FILENO);
		if (!program || log < 0 || fchdir(d->fd) < 0)
			_exit(126);
		(void)execl(program, "pinfold", "webhook", "--listen=127.0.0.1:0",
			    "--tls-cert=tls.crt", "--tls-key=tls.key", "--state=state.yaml",
			    "--threads=2", "--shutdown-delay=1", SANDBOX_FLAG, (char *)NULL);
		_exit(127);
	}
	CHECK(logged(d, "msg=\"serving\""));
	d->port = logged_port(d);
}

static void stop(struct daemon *d)
{
	char command[64];
	int status;

	if (!d->is_ending)
		(void)kill(d->pid, SIGTERM);
	CHECK_INT(waitpid(d->pid, &status, 0), d->pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", d->dir);
	CHECK_INT(system(command), 0);
	(void)close(d->fd);
	test_cert_done(&d->cert);
}

/* One request on a new connection. Returns the status. */
static int ask(struct daemon *d, const char *method, const char *path, const char *body,
	       char *response, size_t cap)
{
	static struct https_client c;
	char request[4096];
	int status;

	CHECK(https_connect(&c, d->port, NULL));
	(void)snprintf(request, sizeof(request),
		       "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", method, path,
		       strlen(body), body);
	CHECK(https_send(&c, request, strlen(request)));
	status = https_response(&c, response, cap);
	https_close(&c);
	return status;
}

static int get(struct daemon *d, const char *path, char *response, size_t cap)
{
	return ask(d, "GET", path, "", response, cap);
}

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

	start(&d);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%s %s", cases[i].method, cases[i].path);
		CHECK_INT(ask(&d, cases[i].method, cases[i].path, cases[i].body, response,
			      sizeof(response)),
			  cases[i].status);
		CHECK(strstr(response, cases[i].says) != NULL);
	}
	stop(&d);
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

	start(&d);
	for (int i = 0; i < 2; i++)
		CHECK_INT(ask(&d, "POST", "/mutate/pods", REVIEW, response, sizeof(response)), 200);
	CHECK_INT(ask(&d, "POST", "/mutate/pods", "[]", response, sizeof(response)), 400);
	(void)poll(NULL, 0, 100); /* until the server has closed the connections */
	CHECK_INT(get(&d, "/metrics", response, sizeof(response)), 200);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		TEST_ROW("%s", want[i]);
		CHECK(strstr(response, want[i]) != NULL);
	}
	stop(&d);
}

TEST(sighup_reloads_the_state)
{
	static char response[1 << 14];
	struct daemon d;

	start(&d);
	put_state(&d, "elsewhere");
	(void)kill(d.pid, SIGHUP);
	CHECK(logged(&d, "reloaded the state files"));
	CHECK_INT(ask(&d, "POST", "/mutate/pods", REVIEW, response, sizeof(response)), 200);
	CHECK(strstr(response, "\"code\":404") != NULL); /* the namespace no longer exists */
	put(&d, "state.yaml", STR("kind: [oh no\n"));
	(void)kill(d.pid, SIGHUP);
	CHECK(logged(&d, "keeping the old state"));
	CHECK(logged(&d, "state.yaml:"));
	CHECK_INT(get(&d, "/readyz", response, sizeof(response)), 200);
	CHECK_INT(get(&d, "/metrics", response, sizeof(response)), 200);
	CHECK(strstr(response, "pinfold_state_reloads_total{result=\"failed\"} 1") != NULL);
	stop(&d);
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

	start(&d);
	before = shown_serial(&d);
	CHECK(https_connect(&old, d.port, NULL));
	put_cert(&d);
	CHECK(logged(&d, "loaded a new certificate"));
	after = shown_serial(&d);
	CHECK(before != after);
	CHECK(https_send(&old, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 33));
	CHECK_INT(https_response(&old, NULL, 0), 200);
	https_close(&old);

	test_cert_make(&other, "localhost");
	put(&d, "tls.key", other.key_pem); /* does not match the certificate */
	CHECK(logged(&d, "cannot load the new certificate, keeping the old one"));
	CHECK_INT(shown_serial(&d), after);
	test_cert_done(&other);
	stop(&d);
}

TEST(after_sigterm_readyz_fails_and_requests_are_still_served)
{
	static char response[1 << 14];
	struct daemon d;

	start(&d);
	(void)kill(d.pid, SIGTERM);
	CHECK(logged(&d, "shutting down"));
	CHECK_INT(get(&d, "/readyz", response, sizeof(response)), 503);
	CHECK(strstr(response, "[-]shutdown failed") != NULL);
	CHECK_INT(ask(&d, "POST", "/mutate/pods", REVIEW, response, sizeof(response)), 200);
	CHECK(logged(&d, "stopped"));
	d.is_ending = true;
	stop(&d);
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
	start(&d);
	arena_init(&a, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	for (int i = 0; i < 100; i++) { /* the filter is loaded right after the port opens */
		CHECK_OK(file_read_at(AT_FDCWD, path, 1 << 16, &a, &status, &err));
		if (str_has(status, STR("Seccomp:\t2")))
			break;
		(void)poll(NULL, 0, 10);
	}
	CHECK(str_has(status, STR("Seccomp:\t2")));
	stop(&d);
}
