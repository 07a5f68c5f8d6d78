/* The life of the daemon: start in an order in which each part finds what it uses, serve, and on
 * SIGTERM stop in the reverse order. The main thread runs signals, timers and watches; requests run
 * on the server's threads. */

#include "webhook.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/trim.h"
#include "cgroup/memory_limit.h"
#include "confine/confine.h"
#include "metrics.h"

/* The CPU quota of this process's cgroup, as a container sees it: "200000 100000" is two CPUs. */
static unsigned quota_cpus(void)
{
	CLEANUP(arena_done) struct arena a;
	uint64_t quota = 0, period = 0;
	struct str text = { 0 }, word;
	struct str_split words;

	arena_init(&a, 0);
	/* The path is the process's own cgroup only inside a cgroup namespace, which container
	 * runtimes create on cgroup v2. Elsewhere the file does not exist, and the affinity alone
	 * counts. */
	if (file_read_at(AT_FDCWD, "/sys/fs/cgroup/cpu.max", 4096, &a, &text, NULL) < 0)
		return 0;
	words = str_split(str_trim(text));
	if (!str_next(&words, ' ', &word) || !str_to_u64(word, UINT32_MAX, &quota))
		return 0; /* "max" */
	if (!str_next(&words, ' ', &word) || !str_to_u64(word, UINT32_MAX, &period) || !period)
		return 0;
	return (unsigned)((quota + period - 1) / period);
}

/* One thread serves more reviews than an API server sends, and each takes memory. */
#define MAX_DEFAULT_THREADS 8

unsigned webhook_default_threads(void)
{
	unsigned quota = quota_cpus(), n = 1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = (unsigned)CPU_COUNT(&set);
	if (quota && quota < n)
		n = quota;
	return n < MAX_DEFAULT_THREADS ? n : MAX_DEFAULT_THREADS;
}

#define MIN_REQUEST_BYTES ((uint64_t)16 << 20)
#define MAX_REQUEST_BYTES ((uint64_t)1536 << 20) /* for as many connections as there may be */

/* Memory for clients: of the process's limit, three eighths are left for the program, the state of
 * the cluster, and what the C library cannot reuse at once. */
static size_t request_bytes(const struct webhook_config *config)
{
	uint64_t limit = config->memory_mib ? (uint64_t)config->memory_mib << 20 :
					      memory_limit_bytes("");
	uint64_t bytes = limit / 8 * 5;

	if (bytes < MIN_REQUEST_BYTES)
		bytes = MIN_REQUEST_BYTES;
	return (size_t)(bytes < MAX_REQUEST_BYTES ? bytes : MAX_REQUEST_BYTES);
}

static void on_drained(struct timer *t)
{
	struct webhook *w = container_of(t, struct webhook, drain);

	loop_stop(&w->loop);
}

/* From here on /readyz fails, so the Service sends no new connections. Requests are still served
 * for the delay, because endpoints are removed asynchronously, and clients are told to close their
 * connections. A second signal exits at once. */
static void on_terminate(struct signal_source *s, int number)
{
	/* One callback for two sources, which are different members of the struct. */
	struct webhook *w = s->uv.signum == SIGTERM ? container_of(s, struct webhook, terminate) :
						      container_of(s, struct webhook, interrupt);

	if (atomic_exchange(&w->is_draining, true)) {
		log_warning("second signal, exiting at once", LOG_INT("signal", number));
		_exit(EXIT_FAILURE);
	}
	log_info("shutting down", LOG_INT("signal", number),
		 LOG_INT("delay_seconds", w->config->shutdown_delay_s));
	server_announce_end(w->server);
	timer_start(&w->drain, (uint64_t)w->config->shutdown_delay_s * 1000, 0);
}

static void on_hangup(struct signal_source *s, int number)
{
	struct webhook *w = container_of(s, struct webhook, hangup);

	(void)number;
	w->source->reload(w->source);
}

static int listen_and_serve(struct webhook *w, struct err *err)
{
	struct server_config config = {
		.address = w->address,
		.threads = w->n_threads,
		.memory_bytes = request_bytes(w->config),
		.tls = &w->tls,
		.needs_client_cert = w->config->client_ca_path != NULL,
		.client_name = w->config->client_name,
		.handler = webhook_handle,
		.context = w,
	};
	int r = server_start(&config, &w->server, err);

	return r < 0 ? err_wrap(err, "%s", w->config->listen) : r;
}

static int watch_signals(struct webhook *w, struct err *err)
{
	int r = signal_source_init(&w->terminate, &w->loop, SIGTERM, on_terminate, err);

	(void)signal(SIGPIPE,
		     SIG_IGN); /* writing to a closed connection is an error, not a signal */
	if (r >= 0)
		r = signal_source_init(&w->interrupt, &w->loop, SIGINT, on_terminate, err);
	if (r >= 0)
		r = signal_source_init(&w->hangup, &w->loop, SIGHUP, on_hangup, err);
	return r;
}

static int start(struct webhook *w, struct err *err)
{
	int r = net_address_parse(str_from(w->config->listen), &w->address, err);

	if (r < 0)
		return err_wrap(err, "--listen");
	/* First, because threads inherit it: the webhook writes no files. */
	r = confine_files(&(struct confine_files){ .may_bind = true }, err);
	if (r < 0)
		return r;
	if (!w->config->cert_path)
		w->source->certificate = &w->certificate;
	/* So that the source can use it at any time after its start. */
	w->certificate.tls = &w->tls;
	if (w->source->start)
		r = w->source->start(w->source, &w->loop, w->n_threads, err);
	if (r < 0)
		return r;
	r = certificate_init(&w->certificate, &w->loop, &w->tls, err);
	if (r >= 0)
		r = watch_signals(w, err);
	if (r < 0)
		return r;
	timer_init(&w->drain, &w->loop, on_drained);
	r = listen_and_serve(w, err);
	if (r < 0)
		return r;
	/* Last: threads exist and files are open, so the filter can be strict. */
	if (!w->config->no_sandbox)
		r = confine_syscalls(CONFINE_WEBHOOK, err);
	if (r < 0) {
		(void)err_wrap(err, "cannot restrict system calls (--no-seccomp turns it off)");
		server_stop(w->server);
	}
	return r;
}

int webhook_run(const struct webhook_config *config, struct state_source *source, struct err *err)
{
	struct webhook w = {
		.config = config,
		.source = source,
		.certificate = { .cert_path = config->cert_path,
				 .key_path = config->key_path,
				 .client_ca_path = config->client_ca_path },
		.n_threads = config->threads ? config->threads : webhook_default_threads(),
	};
	int r = config->no_sandbox ? 0 : confine_io_uring(err);

	/* Fixed, because glibc raises the threshold with every large block that is freed, and
	 * memory of large requests would stay in the process. */
	(void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
	if (r == 0)
		r = loop_init(&w.loop, err);
	if (r < 0)
		return r;
	tls_context_init(&w.tls);
	/* Threads share no counter, so counting needs no atomic read-modify-write. */
	w.counters = calloc(w.n_threads, sizeof(*w.counters));
	if (!w.counters)
		abort();
	r = start(&w, err);
	if (r >= 0) {
		log_info("serving", LOG_STR("listen", str_from(config->listen)),
			 LOG_INT("port", server_port(w.server)), LOG_INT("threads", w.n_threads));
		trim_memory(); /* what was needed to start: linking, reading state and certificate
				*/
		loop_run(&w.loop);
		/* From here a signal ends the process, in case requests in flight do not finish. */
		(void)signal(SIGTERM, SIG_DFL);
		(void)signal(SIGINT, SIG_DFL);
		/* First, because its threads use the source and the counters. */
		server_stop(w.server);
		log_info("stopped");
	}
	/* Before the loop ends: the source closes its connections and watches itself. */
	if (source->stop)
		source->stop(source);
	loop_done(&w.loop);
	tls_context_done(&w.tls);
	free(w.counters);
	return r < 0 ? r : 0;
}
