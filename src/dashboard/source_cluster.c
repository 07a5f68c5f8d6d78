#include "source_cluster.h"

#include <errno.h>
#include <limits.h>

#include "admission/live_pod.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/trim.h"
#include "kube/names.h"
#include "kube/shares.h"

#define PERIOD_US 100000 /* the kubelet's */
#define ONLY_CLUSTER "fieldSelector=metadata.name%3D" NAME_INFRASTRUCTURE
#define ONLY_RUNNING "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
#define NOT_CACHED CACHE__COUNT
#define NOT_SHOWN SHOWN__KINDS

static const struct {
	struct watch_config watch;
	enum cache_kind cache;
	enum shown_kind shown;
} kinds[] = {
	[SOURCE_NODES] = { { .path = "/api/v1/nodes", .page = 200 }, CACHE_NODES, SHOWN_NODES },
	[SOURCE_PARTITIONS] = { { .path = "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE,
				  .page = 500,
				  .may_be_absent = true },
				NOT_CACHED,
				SHOWN_PARTITIONS },
	[SOURCE_PROFILES] = { { .path = "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE,
				.page = 100,
				.may_be_absent = true },
			      CACHE_PROFILES,
			      SHOWN_PROFILES },
	[SOURCE_PODS] = { { .path = "/api/v1/pods", .selector = ONLY_RUNNING, .page = 500 },
			  NOT_CACHED,
			  SHOWN_PODS },
	[SOURCE_NAMESPACES] = { { .path = "/api/v1/namespaces",
				  .page = 500,
				  .only_metadata = true },
				CACHE_NAMESPACES,
				NOT_SHOWN },
	[SOURCE_INFRASTRUCTURE] = { { .path = "/apis/" NAME_CONFIG_API "/infrastructures",
				      .selector = ONLY_CLUSTER,
				      .page = 10,
				      .may_be_absent = true },
				    CACHE_INFRASTRUCTURE,
				    NOT_SHOWN },
	[SOURCE_FEATURE_GATES] = { { .path = "/apis/" NAME_CONFIG_API "/featuregates",
				     .selector = ONLY_CLUSTER,
				     .page = 10,
				     .may_be_absent = true },
				   CACHE_FEATURE_GATES,
				   NOT_SHOWN },
};
_Static_assert(ARRAY_LEN(kinds) == SOURCE__COUNT, "every kind has a row");

/* --- pods --- */

static int32_t limited(int64_t n)
{
	return n < 0 ? -1 : n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

static int64_t limit_milli(const struct container *c)
{
	struct quantity q;
	int64_t milli = 0;

	if (resource_get(c->limits, STR(NAME_CPU), &q, NULL) > 0)
		(void)quantity_milli(&q, &milli, NULL);
	return milli;
}

/* What the runtime is told: shares and quota of a converted container are those of its
 * annotation, and a container with exclusive CPUs has no quota (D13). */
static struct shown_container shown_container_of(const struct live_container *live,
						 const struct container *c)
{
	const bool is_converted = live->shares > 0;
	const int64_t limit = is_converted ? live->limit_milli : limit_milli(c);
	struct shown_container ret = { .name = live->name,
				       .cpus = STR(""),
				       .pool = live->pool,
				       .kind = c->kind,
				       .is_exclusive = live->pool == POOL_GUARANTEED,
				       .millicores = limited(live->milli),
				       .period_us = PERIOD_US };

	ret.shares = limited(is_converted ? (int64_t)live->shares :
					    (int64_t)cpu_shares_from_milli(live->milli));
	ret.quota_us = ret.is_exclusive ? 0 : limited(limit * (PERIOD_US / 1000));
	return ret;
}

static struct str state_of(yyjson_val *object)
{
	if (doc_find(object, "/metadata/deletionTimestamp"))
		return STR("Terminating");
	return doc_str(doc_find(object, "/status/phase"));
}

bool source_pod_of(yyjson_val *object, struct arena *a, struct shown_pod *ret)
{
	struct shown_container *containers;
	struct container_iter it;
	struct container c;
	struct live_pod live;
	const struct pod pod = pod_from_list_item(object);

	if (!live_pod_read_view(&pod, a, &live))
		return false;
	*ret = (struct shown_pod){ .namespace = pod_namespace(&pod),
				   .name = object_name(object),
				   .node = live.node,
				   .uid = live.uid,
				   .state = state_of(object) };
	containers = arena_array(a, struct shown_container, live.n);
	it = container_iter(&pod, false);
	while (ret->n < live.n && container_next(&it, &c))
		for (size_t i = 0; i < live.n; i++)
			if (str_eq(live.containers[i].name, c.name)) {
				containers[ret->n++] = shown_container_of(&live.containers[i], &c);
				break;
			}
	ret->containers = containers;
	return ret->name.n > 0;
}

static void put_pod(struct source_cluster *s, yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;
	struct shown_pod pod;

	arena_init(&a, 0);
	if (source_pod_of(object, &a, &pod))
		shown_state_put_pod(s->state, &pod);
}

/* --- watches --- */

static struct source_watch *watch_of(struct watch *w)
{
	return container_of(w, struct source_watch, watch);
}

static void put_shown(struct source_cluster *s, enum source_kind kind, yyjson_val *object)
{
	struct err err = { 0 };

	switch (kind) {
	case SOURCE_NODES:
		shown_state_put_node(s->state, object);
		break;
	case SOURCE_PARTITIONS:
		if (shown_state_put_partition(s->state, object, &err) < 0)
			log_warning("cannot read an object, showing that", LOG_ERR(&err));
		break;
	case SOURCE_PROFILES:
		shown_state_put_profile(s->state, object);
		break;
	case SOURCE_PODS:
		put_pod(s, object);
		break;
	default:
		break;
	}
}

static void publish(struct source_cluster *s)
{
	cache_publish(&s->cache);
	s->state->is_partitioned = cache_writer_state(&s->cache)->infrastructure.is_partitioned;
}

static void on_object(struct watch *w, yyjson_val *object)
{
	struct source_watch *of = watch_of(w);

	put_shown(of->source, of->kind, object);
	if (kinds[of->kind].cache != NOT_CACHED)
		cache_put(&of->source->cache, kinds[of->kind].cache, object);
	if (w->is_synced && kinds[of->kind].cache != NOT_CACHED)
		publish(of->source);
}

static void on_deleted(struct watch *w, yyjson_val *object)
{
	struct source_watch *of = watch_of(w);
	struct shown_state *state = of->source->state;

	if (of->kind == SOURCE_NODES)
		shown_state_remove_node(state, object_name(object));
	else if (of->kind == SOURCE_PARTITIONS)
		shown_state_remove_partition(state, object_name(object));
	else if (of->kind == SOURCE_PROFILES)
		shown_state_remove_profile(state, object_name(object));
	else if (of->kind == SOURCE_PODS)
		shown_state_remove_pod(state, doc_str(doc_find(object, "/metadata/namespace")),
				       object_name(object));
	if (kinds[of->kind].cache == NOT_CACHED)
		return;
	cache_remove(&of->source->cache, kinds[of->kind].cache, object);
	publish(of->source);
}

static void on_list(struct watch *w)
{
	struct source_watch *of = watch_of(w);

	if (kinds[of->kind].shown != NOT_SHOWN)
		shown_state_begin_list(of->source->state, kinds[of->kind].shown);
	if (kinds[of->kind].cache != NOT_CACHED)
		cache_begin_list(&of->source->cache, kinds[of->kind].cache);
}

static void check_complete(struct source_cluster *s)
{
	bool is_complete = true;

	for (size_t i = 0; i < SOURCE__COUNT; i++)
		is_complete &= s->watches[i].watch.is_synced || s->watches[i].is_forbidden;
	if (!is_complete || s->state->is_complete)
		return;
	s->state->is_complete = true;
	s->state->history.since_ms = s->state->now_ms;
	cache_set_synced(&s->cache, true);
	publish(s);
	log_info("read the cluster", LOG_INT("nodes", s->state->n_nodes),
		 LOG_INT("pods", s->state->n_pods));
}

static void on_synced(struct watch *w)
{
	struct source_watch *of = watch_of(w);

	of->is_forbidden = false;
	if (kinds[of->kind].shown != NOT_SHOWN)
		shown_state_end_list(of->source->state, kinds[of->kind].shown);
	if (kinds[of->kind].cache != NOT_CACHED) {
		cache_end_list(&of->source->cache, kinds[of->kind].cache);
		publish(of->source);
	}
	check_complete(of->source);
	trim_memory(); /* the lists were much larger than what is kept */
}

static void on_failure(struct watch *w, const struct err *err)
{
	struct source_cluster *s = watch_of(w)->source;

	api_failures_add(&s->failures, loop_now_ms(s->loop), w->config->path, err);
}

static void on_forbidden(struct watch *w, const struct err *err)
{
	struct source_watch *of = watch_of(w);

	if (!of->is_forbidden)
		log_warning("may not read a collection, showing the rest",
			    LOG_STR("path", str_from(w->config->path)), LOG_ERR(err));
	of->is_forbidden = true;
	check_complete(of->source);
}

static const struct watch_callbacks callbacks = { .on_object = on_object,
						  .on_deleted = on_deleted,
						  .on_list = on_list,
						  .on_synced = on_synced,
						  .on_failure = on_failure,
						  .on_forbidden = on_forbidden };

int source_cluster_open(struct source_cluster *s, struct loop *loop,
			const struct kubeconfig *kubeconfig, const char *user_agent,
			struct err *err)
{
	int r;

	s->loop = loop;
	cache_init(&s->cache, &(struct admission_settings){ 0 }, 1);
	r = api_init(&s->api, loop, kubeconfig, user_agent, err);
	s->is_open = true;
	if (r < 0)
		return r;
	for (enum source_kind kind = 0; kind < SOURCE__COUNT; kind++) {
		s->watches[kind].source = s;
		s->watches[kind].kind = kind;
		watch_init(&s->watches[kind].watch, &s->api, &kinds[kind].watch, &callbacks);
	}
	return 0;
}

void source_cluster_close(struct source_cluster *s)
{
	if (!s->is_open)
		return;
	for (size_t i = 0; i < SOURCE__COUNT; i++)
		if (s->watches[i].source)
			watch_close(&s->watches[i].watch);
	for (size_t i = 0; i < SOURCE_READING_MAX; i++)
		if (s->reading[i].is_active)
			api_cancel(&s->reading[i].call);
	api_close(&s->api);
}

void source_cluster_done(struct source_cluster *s)
{
	if (!s->is_open)
		return;
	for (size_t i = 0; i < SOURCE__COUNT; i++)
		if (s->watches[i].source)
			watch_done(&s->watches[i].watch);
	api_done(&s->api);
	cache_done(&s->cache);
}

/* --- one pod on demand --- */

static void on_read(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct source_reading *p = container_of(call, struct source_reading, call);

	p->is_active = false;
	p->source->on_pod(p->source->context, p->connection, object, err);
}

static struct source_reading *free_reading(struct source_cluster *s)
{
	for (size_t i = 0; i < SOURCE_READING_MAX; i++)
		if (!s->reading[i].is_active)
			return &s->reading[i];
	return NULL;
}

int source_cluster_read_pod(struct source_cluster *s, const struct shown_pod *pod,
			    uint64_t connection, struct err *err)
{
	struct source_reading *p = free_reading(s);
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	if (!p)
		return err_set(err, EBUSY, "too many requests at a time");
	p->source = s;
	p->connection = connection;
	p->is_active = true;
	/* Both names come from the API server, which allows no character that needs an escape. */
	api_start(&s->api, &p->call,
		  &(struct api_request){
			  .method = "GET",
			  .path = str_printf(&a, "/api/v1/namespaces/" PRI_STR "/pods/" PRI_STR,
					     FMT_STR(pod->namespace), FMT_STR(pod->name)) },
		  on_read);
	return 0;
}
