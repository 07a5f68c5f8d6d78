/* Connects the modules of src/cluster to the webhook: informers fill the cache on the main thread,
 * serving threads read it, and certificate rotation provides the certificate when no files were
 * given. */

#include "state_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "certificate.h"
#include "net/prometheus.h"
#include "print_config.h"

#define LOG_INTERVAL_MS 30000
#define CONFIGURATION "pinfold"			  /* as in deploy/base/webhooks.yaml */
#define DEFAULT_SERVICE "pinfold/pinfold-webhook" /* likewise */

static struct state_cluster *cluster_of(struct state_source *source)
{
	return container_of(source, struct state_cluster, source);
}

/* Every attempt fails while the API server is unreachable; this limits the log. */
static bool may_log_failure(struct state_cluster *s)
{
	uint64_t now_ms = loop_now_ms(s->api.loop);

	/* The first failure is always logged, even within the first seconds after boot, when now_ms
	 * is small. */
	if (s->n_failures++ && now_ms - s->logged_ms < LOG_INTERVAL_MS)
		return false;
	s->logged_ms = now_ms;
	return true;
}

static void on_trouble(struct informers *f, const char *path, const struct err *err)
{
	struct state_cluster *s = container_of(f, struct state_cluster, informers);

	if (!may_log_failure(s))
		return;
	log_warning("cannot watch the API server, retrying", LOG_STR("path", str_from(path)),
		    LOG_ERR(err));
}

static void on_synced(struct informers *f)
{
	struct state_cluster *s = container_of(f, struct state_cluster, informers);

	log_info("caches are synchronized",
		 LOG_INT("namespaces", cache_count(&s->cache, CACHE_NAMESPACES)),
		 LOG_INT("nodes", cache_count(&s->cache, CACHE_NODES)));
}

static const struct informers_config informers_config = { .on_failure = on_trouble,
							  .on_synced = on_synced };

static void on_certificate(struct cert_rotation *k, struct str cert_pem, struct str key_pem)
{
	struct state_cluster *s = container_of(k, struct state_cluster, rotation);
	struct certificate *c = s->source.certificate;
	struct err err;

	if (certificate_use(c, cert_pem, key_pem, &err) < 0) {
		atomic_fetch_add(&c->failed_reloads, 1);
		log_error("cannot load the certificate from the Secret", LOG_ERR(&err));
	} else {
		log_info("loaded a new certificate",
			 LOG_INT("expires", atomic_load(&c->expiry_unix_s)));
	}
}

static void on_certificate_action(struct cert_rotation *k, const char *what)
{
	(void)k;
	log_info("certificate rotation", LOG_STR("action", str_from(what)));
}

static void on_certificate_trouble(struct cert_rotation *k, const char *what, const struct err *err)
{
	struct state_cluster *s = container_of(k, struct state_cluster, rotation);

	if (may_log_failure(s))
		log_warning("certificate rotation failed, retrying",
			    LOG_STR("action", str_from(what)), LOG_ERR(err));
}

/* Without it nodes join without the taint; they are tainted later (node_recheck.h). */
static void on_configurations(struct cert_rotation *k)
{
	struct state_cluster *s = container_of(k, struct state_cluster, rotation);
	const struct cert_configuration *c = &k->configurations[CERT_MUTATING];
	const int now = c->has_node_hook ? NODE_HOOK_OK : NODE_HOOK_MISSING;

	if (!c->exists || s->settings.nodes != NODE_MODE_TAINT ||
	    atomic_exchange(&s->node_hook, now) == now)
		return;
	if (now == NODE_HOOK_OK)
		log_info("nodes that join get a taint");
	else
		log_error("the mutating webhook configuration has no webhook for nodes, they join "
			  "without the taint");
}

static const char *registered(struct node_recheck *r)
{
	const struct state_cluster *s = container_of(r, struct state_cluster, recheck);

	return s->rotation.configurations[CERT_MUTATING].created;
}

static void on_node_tainted(struct node_recheck *r, const char *node)
{
	struct state_cluster *s = container_of(r, struct state_cluster, recheck);

	atomic_fetch_add(&s->nodes_tainted, 1);
	log_warning("tainted a node that joined without the resource",
		    LOG_STR("node", str_from(node)));
}

static void on_node_failure(struct node_recheck *r, const char *node, const struct err *err)
{
	struct state_cluster *s = container_of(r, struct state_cluster, recheck);

	if (may_log_failure(s))
		log_warning("cannot taint a node that joined without the resource",
			    LOG_STR("node", str_from(node)), LOG_ERR(err));
}

static const struct node_recheck_config recheck_config = { .registered = registered,
							   .on_tainted = on_node_tainted,
							   .on_failure = on_node_failure };

/* The names in the certificate, and the objects that store it. */
static int plan_rotation(struct state_cluster *s, const struct state_cluster_config *config,
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
	/* The name that the API server expects in the certificate of a webhook behind a Service. */
	s->names[n++] =
		str_printf(&s->arena, PRI_STR "." PRI_STR ".svc", FMT_STR(name), FMT_STR(namespace))
			.p;
	if (config->url) {
		if (kubeconfig_parse_server(str_from(config->url), &s->arena, &url, err) < 0)
			return err_wrap(err, "--url");
		s->names[n++] = url.host;
	}
	s->rotation_config = (struct cert_rotation_config){
		.namespace = str_cstr(&s->arena, namespace),
		.secret = str_printf(&s->arena, PRI_STR "-tls", FMT_STR(name)).p,
		.lease = str_printf(&s->arena, PRI_STR "-certificate", FMT_STR(name)).p,
		.configuration = CONFIGURATION,
		.identity = leader_identity(&s->arena),
		.names = s->names,
		.n_names = n,
		.on_certificate = on_certificate,
		.on_action = on_certificate_action,
		.on_failure = on_certificate_trouble,
		.on_configurations = on_configurations,
	};
	return 0;
}

static int start(struct state_source *source, struct loop *loop, unsigned threads, struct err *err)
{
	struct state_cluster *s = cluster_of(source);
	int r;

	cache_init(&s->cache, &s->settings, threads);
	s->is_started = true;
	/* The rest is initialised also when this fails: stop() and state_cluster_done() end all of
	 * it. */
	r = api_init(&s->api, loop, &s->kubeconfig, s->user_agent, err);
	informers_init(&s->informers, &s->api, &s->cache, &informers_config);
	s->rotates_certificate = source->certificate != NULL;
	if (s->rotates_certificate)
		cert_rotation_init(&s->rotation, &s->api, &s->rotation_config);
	s->rechecks_nodes = s->rotates_certificate && s->settings.nodes == NODE_MODE_TAINT;
	if (s->rechecks_nodes)
		node_recheck_init(&s->recheck, &s->api, &s->cache, &recheck_config);
	log_info("watching the API server", LOG_STR("host", str_from(s->kubeconfig.host)),
		 LOG_INT("port", s->kubeconfig.port));
	return r;
}

static void stop(struct state_source *source)
{
	struct state_cluster *s = cluster_of(source);

	if (!s->is_started)
		return;
	informers_close(&s->informers);
	if (s->rechecks_nodes)
		node_recheck_close(&s->recheck);
	if (s->rotates_certificate)
		cert_rotation_close(&s->rotation);
	api_close(&s->api);
}

static const struct admission_state *acquire(struct state_source *source, unsigned thread)
{
	return cache_acquire(&cluster_of(source)->cache, thread);
}

static void release(struct state_source *source, unsigned thread)
{
	cache_release(&cluster_of(source)->cache, thread);
}

static const char *const certificate_states[] = {
	[CERT_STATE_NONE] = "no certificate yet",
	[CERT_STATE_NOT_REGISTERED] = "no webhook configuration named " CONFIGURATION,
	[CERT_STATE_NOT_TRUSTED] = "the webhook configurations do not trust the certificate",
	[CERT_STATE_OK] = NULL,
};

/* The certificate comes first: without it no request arrives at all. */
static bool is_ready(struct state_source *source, const char **ret_missing)
{
	struct state_cluster *s = cluster_of(source);
	struct informers *f = &s->informers;

	if (s->rotates_certificate)
		*ret_missing = certificate_states[atomic_load(&s->rotation.state)];
	/* Only before the first time: a replica that serves pods goes on when the configuration
	 * is changed, and a rollout with a wrong one stops. */
	if (!*ret_missing && !atomic_load(&s->was_ready) &&
	    atomic_load(&s->node_hook) == NODE_HOOK_MISSING)
		*ret_missing = "the mutating webhook configuration has no webhook for nodes, which "
			       "--admission-mode taint needs";
	if (*ret_missing)
		return false;
	if (atomic_load(&f->is_ready)) {
		atomic_store(&s->was_ready, true);
		return true;
	}
	*ret_missing = "caches are out of date";
	for (size_t i = 0; i < CACHE__COUNT; i++)
		if (i != CACHE_PROFILES && !atomic_load(&f->watches[i].stats.is_synced))
			*ret_missing = "caches are not synchronized";
	return false;
}

static void reload(struct state_source *source)
{
	(void)source;
	log_info("nothing to reload: the API server is watched");
}

/* One family with one sample for each kind. */
static void add_family(const struct informers *f, struct strbuf *b, const char *name,
		       const char *type, const char *help, size_t offset)
{
	prometheus_family(b, name, type, help);
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", informers_kind_name(kind) },
							   { 0 } };
		/* Every member that is passed as an offset is an _Atomic uint64_t. */
		const void *field = (const char *)&f->watches[kind].stats + offset;

		prometheus_uint(b, name, labels,
				atomic_load_explicit((const _Atomic uint64_t *)field,
						     memory_order_relaxed));
	}
}

static void add_age(const struct informers *f, struct strbuf *b)
{
	prometheus_family(b, "pinfold_cache_age_seconds", "gauge",
			  "Time since the cache was last known to be current");
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", informers_kind_name(kind) },
							   { 0 } };

		prometheus_double(b, "pinfold_cache_age_seconds", labels,
				  (double)atomic_load(&f->watches[kind].stats.age_ms) / 1000);
	}
}

static void add_nodes(struct state_cluster *s, struct strbuf *b)
{
	if (s->settings.nodes != NODE_MODE_TAINT)
		return;
	prometheus_one(b, "pinfold_node_webhook_registered", "gauge",
		       "1 when the mutating webhook configuration has a webhook for nodes",
		       atomic_load(&s->node_hook) == NODE_HOOK_OK);
	prometheus_one(
		b, "pinfold_nodes_tainted_late_total", "counter",
		"Nodes that joined without the resource and the taint, and were tainted later",
		atomic_load(&s->nodes_tainted));
}

#define AT(field) offsetof(struct informers_stats, field)

static void add_metrics(struct state_source *source, struct strbuf *b)
{
	const struct informers *f = &cluster_of(source)->informers;

	add_family(f, b, "pinfold_state_objects", "gauge", "Objects that decisions use",
		   AT(objects));
	add_age(f, b);
	add_family(f, b, "pinfold_cache_lists_total", "counter", "Lists read from the API server",
		   AT(lists));
	add_family(f, b, "pinfold_watch_starts_total", "counter", "Watches started or resumed",
		   AT(watches));
	add_family(f, b, "pinfold_watch_events_total", "counter",
		   "Watch events received, including bookmarks", AT(events));
	add_family(f, b, "pinfold_watch_too_old_total", "counter",
		   "Watches that had to list again because the resource version was too old",
		   AT(too_old));
	add_family(f, b, "pinfold_watch_failures_total", "counter", "Lists and watches that failed",
		   AT(failures));
	add_nodes(cluster_of(source), b);
}

/* Wherever it runs, the webhook leaves the pods of its own namespace alone (D18). */
static void exempt_own_namespace(struct state_cluster *s)
{
	const char *pod = getenv("POD_NAMESPACE");
	const struct admission_settings *given = &s->settings;
	const char **all = arena_array(&s->arena, const char *, given->n_exempt + 2);
	size_t n = 0;

	for (size_t i = 0; i < given->n_exempt; i++)
		all[n++] = given->exempt[i];
	all[n++] = s->rotation_config.namespace;
	if (pod && *pod)
		all[n++] = pod;
	s->settings.exempt = all;
	s->settings.n_exempt = n;
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
	/* Also when certificate files are given: whether they are is known only at start(). */
	r = plan_rotation(s, config, err);
	if (r < 0)
		return r;
	exempt_own_namespace(s);
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
		informers_done(&s->informers);
		if (s->rotates_certificate)
			cert_rotation_done(&s->rotation);
		api_done(&s->api);
		cache_done(&s->cache);
	}
	arena_done(&s->arena);
}
