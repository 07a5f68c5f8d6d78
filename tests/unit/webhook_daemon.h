#pragma once

/* The daemon as a process, for tests: it is started, gets requests over TLS and signals, and
 * exits. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
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

static inline void daemon_put(struct daemon *d, const char *name, struct str text)
{
	struct err err = { 0 };

	CHECK_OK(file_replace_at(d->fd, name, text, 0600, &err));
}

static inline void daemon_put_state(struct daemon *d, const char *namespace)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), STATE, namespace);
	daemon_put(d, "state.yaml", str_from(text));
}

static inline void daemon_put_cert(struct daemon *d)
{
	if (d->cert.cert_bio)
		test_cert_done(&d->cert);
	test_cert_make(&d->cert, "localhost");
	daemon_put(d, "tls.crt", d->cert.cert_pem);
	daemon_put(d, "tls.key", d->cert.key_pem);
}

/* Waits until the log has the text. */
static inline bool daemon_logged(struct daemon *d, const char *text)
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

static inline unsigned daemon_logged_port(struct daemon *d)
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

static inline void daemon_prepare(struct daemon *d)
{
	memset(d, 0, sizeof(*d));
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(d->dir, sizeof(d->dir), "/tmp/pinfold-webhook-XXXXXX");
	CHECK(mkdtemp(d->dir) != NULL);
	d->fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	daemon_put_state(d, "platform");
	daemon_put_cert(d);
}

/* The flags may be NULL. */
static inline void daemon_launch(struct daemon *d, const char *flag, const char *flag2)
{
	d->pid = fork();
	if (d->pid == 0) {
		const char *program = getenv("PINFOLD");
		int log = openat(d->fd, "log", O_WRONLY | O_CREAT | O_APPEND, 0600);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* not to outlive a test that fails */
		(void)dup2(log, STDERR_FILENO);
		(void)dup2(log, STDOUT_FILENO);
		if (!program || log < 0 || fchdir(d->fd) < 0)
			_exit(126);
		(void)execl(program, "pinfold", "webhook", "--listen=127.0.0.1:0",
			    "--tls-cert=tls.crt", "--tls-key=tls.key", "--state=state.yaml",
			    "--threads=2", "--shutdown-delay=1", SANDBOX_FLAG, flag, flag2,
			    (char *)NULL);
		_exit(127);
	}
	CHECK(daemon_logged(d, "msg=\"serving\""));
	d->port = daemon_logged_port(d);
}

static inline void daemon_start(struct daemon *d, const char *flag)
{
	daemon_prepare(d);
	daemon_launch(d, flag, NULL);
}

static inline void daemon_stop(struct daemon *d)
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
static inline int daemon_ask(struct daemon *d, const char *method, const char *path,
			     const char *body, char *response, size_t cap)
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

static inline int daemon_get(struct daemon *d, const char *path, char *response, size_t cap)
{
	return daemon_ask(d, "GET", path, "", response, cap);
}
