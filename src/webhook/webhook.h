#pragma once

/* The webhook daemon: serves the admission decisions to an API server over HTTPS, until SIGTERM.
 * All of its state is in struct webhook; decisions are made in src/admission. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "certificate.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/tls.h"
#include "state_source.h"

struct err;
struct thread_counters;

struct webhook_config {
	const char *listen;		  /* "HOST:PORT" */
	const char *cert_path, *key_path; /* NULL: the state source provides the certificate */
	const char
		*client_ca_path; /* reviews need a client certificate of these CAs; may be NULL */
	const char *client_name; /* its common name; NULL: any */
	const char *version;
	unsigned threads;	   /* 0: one per CPU this process may use */
	unsigned memory_mib;	   /* that this process may use; 0: what its cgroup allows */
	unsigned shutdown_delay_s; /* between failing /readyz and closing the port */
	bool no_sandbox;
};

struct webhook {
	const struct webhook_config *config;
	struct state_source *source;
	struct sockaddr_storage address;
	struct loop loop;
	struct tls_context tls;
	struct certificate certificate;
	struct server *server;
	struct signal_source terminate, interrupt, hangup;
	struct timer drain;
	struct thread_counters *counters; /* one per thread */
	unsigned n_threads;
	atomic_bool is_draining;
};

/* Serves until SIGTERM or SIGINT, then drains. Returns 0 after an orderly shutdown. */
int webhook_run(const struct webhook_config *config, struct state_source *source, struct err *err);

/* Serves one request. `context` is the struct webhook. */
void webhook_handle(const struct http_request *rq, struct http_response *ret, void *context);

/* CPUs that this process may use, at most 8: its affinity, and its cgroup's quota rounded up. */
unsigned webhook_default_threads(void);
