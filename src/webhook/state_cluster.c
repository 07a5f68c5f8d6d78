#include "state_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "certificate.h"
#include "net/prometheus.h"
#include "print_config.h"

#define COMPLAIN_MS 30000
#define CONFIGURATION "pinfold"			  /* as in deploy/base/webhooks.yaml */
#define DEFAULT_SERVICE "pinfold/pinfold-webhook" /* likewise */

static struct state_cluster *of(struct state_source *source)
{
	return container_of(source, struct state_cluster, source);
}

/* Every try fails while the API server is away; one line in a while is enough. */
static bool may_complain(struct state_cluster *s)
{
	uint64_t now_ms = loop_now_ms(s->api.loop);

	if (s->complaints++ && now_ms - s->complained_ms < COMPLAIN_MS)
		return false;
	s->complained_ms = now_ms;
	return true;
}

static void on_trouble(struct informers *f, const char *path, const struct err *err)
{
	struct state_cluster *s = container_of(f, struct state_cluster, facts);

	if (!may_complain(s))
		return;
	log_warning("cannot follow the API server, trying again", LOG_STR("path", str_from(path)),
		    LOG_ERR(err));
}

static void on_synced(struct informers *f)
{
	struct state_cluster *s = container_of(f, struct state_cluster, facts);

	log_info("caches are synchronised",
		 LOG_INT("namespaces", cache_count(&s->cache, CACHE_NAMESPACES)),
		 LOG_INT("nodes", cache_count(&s->cache, CACHE_NODES)));
}

static const struct informers_config facts_config = { .on_trouble = on_trouble,
						      .on_synced = on_synced };

/* Our own certificate. */

static void on_certificate(struct cert_rotation *k, struct str cert_pem, struct str key_pem)
{
	struct state_cluster *s = container_of(k, struct state_cluster, keeper);
	struct certificate *c = s->source.certificate;
	struct err err;

	if (certificate_use(c, cert_pem, key_pem, &err) < 0) {
		atomic_fetch_add(&c->failed_reloads, 1);
		log_error("cannot use the certificate of the Secret", LOG_ERR(&err));
	} else {
		log_info("serving with a new certificate",
			 LOG_INT("expires", atomic_load(&c->expiry_unix_s)));
	}
}

static void on_certificate_action(struct cert_rotation *k, const char *what)
{
	(void)k;
	log_info("keeping the certificate", LOG_STR("did", str_from(what)));
}

static void on_certificate_trouble(struct cert_rotation *k, const char *what, const struct err *err)
{
	struct state_cluster *s = container_of(k, struct state_cluster, keeper);

	if (may_complain(s))
		log_warning("cannot keep the certificate, trying again",
			    LOG_STR("doing", str_from(what)), LOG_ERR(err));
}

/* Different for every process that ever runs: a pod's name, or else host and process. */
static const char *identity(struct arena *a)
{
	const char *pod = getenv("POD_NAME");
	char host[256] = "unknown";

	if (pod && *pod)
		return str_cstr(a, str_from(pod));
	(void)gethostname(host, sizeof(host) - 1);
	return str_printf(a, "%s_%ld_%08x", host, (long)getpid(), backoff_random()).p;
}

/* What the certificate is for, and where it is kept. */
static int plan_certificate(struct state_cluster *s, const struct state_cluster_config *config,
			    struct err *err)
{
	const char *service = config->service ? config->service : DEFAULT_SERVICE;
	struct str namespace, name;
	struct kubeconfig url;
	uint64_t port = 0;
	size_t n = 0;
	int r = service_parse(service, &namespace, &name, &port, err);

	if (r < 0)
		return r;
	s->names[n++] =
		str_printf(&s->arena, PRI_STR "." PRI_STR ".svc", FMT_STR(name), FMT_STR(namespace))
			.p;
	if (config->url) {
		if (kubeconfig_parse_server(str_from(config->url), &s->arena, &url, err) < 0)
			return err_wrap(err, "--url");
		s->names[n++] = url.host;
	}
	s->keeper_config = (struct cert_rotation_config){
		.namespace = str_cstr(&s->arena, namespace),
		.secret = str_printf(&s->arena, PRI_STR "-tls", FMT_STR(name)).p,
		.lease = str_printf(&s->arena, PRI_STR "-certificate", FMT_STR(name)).p,
		.configuration = CONFIGURATION,
		.identity = identity(&s->arena),
		.names = s->names,
		.n_names = n,
		.on_certificate = on_certificate,
		.on_action = on_certificate_action,
		.on_trouble = on_certificate_trouble,
	};
	return 0;
}

static int start(struct state_source *source, struct loop *loop, unsigned threads, struct err *err)
{
	struct state_cluster *s = of(source);
	int r;

	cache_init(&s->cache, &s->settings, threads);
	s->is_started = true;
	r = api_init(&s->api, loop, &s->kubeconfig, s->user_agent, err);
	informers_init(&s->facts, &s->api, &s->cache, &facts_config);
	s->keeps_certificate = source->certificate != NULL;
	if (s->keeps_certificate)
		cert_rotation_init(&s->keeper, &s->api, &s->keeper_config);
	log_info("following the API server", LOG_STR("host", str_from(s->kubeconfig.host)),
		 LOG_INT("port", s->kubeconfig.port));
	return r;
}

static void stop(struct state_source *source)
{
	struct state_cluster *s = of(source);

	if (!s->is_started)
		return;
	informers_close(&s->facts);
	if (s->keeps_certificate)
		cert_rotation_close(&s->keeper);
	api_close(&s->api);
}

static const struct admission_state *acquire(struct state_source *source, unsigned thread)
{
	return cache_acquire(&of(source)->cache, thread);
}

static void release(struct state_source *source, unsigned thread)
{
	cache_release(&of(source)->cache, thread);
}

static const char *const certificate_states[] = {
	[CERT_STATE_NONE] = "there is no certificate yet",
	[CERT_STATE_NOT_REGISTERED] = "there is no webhook configuration named " CONFIGURATION,
	[CERT_STATE_NOT_TRUSTED] = "the certificate is not trusted by the webhook configurations",
	[CERT_STATE_OK] = NULL,
};

static bool is_ready(struct state_source *source, const char **ret_missing)
{
	struct state_cluster *s = of(source);
	struct informers *f = &s->facts;

	if (s->keeps_certificate)
		*ret_missing = certificate_states[atomic_load(&s->keeper.state)];
	if (*ret_missing)
		return false;
	if (atomic_load(&f->is_ready))
		return true;
	*ret_missing = "caches are out of date";
	for (size_t i = 0; i < CACHE__COUNT; i++)
		if (!atomic_load(&f->watches[i].stats.is_synced))
			*ret_missing = "caches are not synchronised";
	return false;
}

static void reload(struct state_source *source)
{
	(void)source;
	log_info("the API server is followed all the time, nothing to read again");
}

/* One family, a sample a kind. */
static void add_family(const struct informers *f, struct strbuf *b, const char *name,
		       const char *type, const char *help, size_t offset)
{
	prometheus_family(b, name, type, help);
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", informers_kind_name(kind) },
							   { 0 } };
		const void *field = (const char *)&f->watches[kind].stats + offset;

		prometheus_uint(b, name, labels,
				atomic_load_explicit((const _Atomic uint64_t *)field,
						     memory_order_relaxed));
	}
}

static void add_age(const struct informers *f, struct strbuf *b)
{
	prometheus_family(b, "pinfold_cache_age_seconds", "gauge",
			  "Since the cache was last known to be current");
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", informers_kind_name(kind) },
							   { 0 } };

		prometheus_double(b, "pinfold_cache_age_seconds", labels,
				  (double)atomic_load(&f->watches[kind].stats.age_ms) / 1000);
	}
}

#define AT(field) offsetof(struct informers_stats, field)

static void add_metrics(struct state_source *source, struct strbuf *b)
{
	const struct informers *f = &of(source)->facts;

	add_family(f, b, "pinfold_state_objects", "gauge", "Objects that decisions rest on",
		   AT(objects));
	add_age(f, b);
	add_family(f, b, "pinfold_cache_lists_total", "counter", "Collections read as a whole",
		   AT(lists));
	add_family(f, b, "pinfold_watch_starts_total", "counter", "Watches begun or resumed",
		   AT(watches));
	add_family(f, b, "pinfold_watch_events_total", "counter", "Changes and bookmarks received",
		   AT(events));
	add_family(f, b, "pinfold_watch_too_old_total", "counter",
		   "Versions that the API server no longer had: the collection was read again",
		   AT(too_old));
	add_family(f, b, "pinfold_watch_failures_total", "counter", "Lists and watches that failed",
		   AT(failures));
}

int state_cluster_init(struct state_cluster *s, const struct state_cluster_config *config,
		       struct err *err)
{
	int r;

	*s = (struct state_cluster){
		.source = { .start = start,
			    .stop = stop,
			    .acquire = acquire,
			    .release = release,
			    .is_ready = is_ready,
			    .reload = reload,
			    .add_metrics = add_metrics },
		.settings = config->settings,
	};
	arena_init(&s->arena, 0);
	(void)snprintf(s->user_agent, sizeof(s->user_agent), "pinfold-webhook/%s", config->version);
	r = plan_certificate(s, config, err);
	if (r < 0)
		return r;
	if (config->kubeconfig)
		return kubeconfig_read(config->kubeconfig, config->context, &s->arena,
				       &s->kubeconfig, err);
	return kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
				     getenv("KUBERNETES_SERVICE_PORT"), KUBECONFIG_POD_DIR,
				     &s->arena, &s->kubeconfig, err);
}

void state_cluster_done(struct state_cluster *s)
{
	if (s->is_started) {
		informers_done(&s->facts);
		if (s->keeps_certificate)
			cert_rotation_done(&s->keeper);
		api_done(&s->api);
		cache_done(&s->cache);
	}
	arena_done(&s->arena);
}
