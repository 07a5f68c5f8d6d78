/* Fills the allowlist from a watch of all namespaces. While the watch is lost, the last list stays
 * in effect. A cluster may have thousands of namespaces and the agent little memory (D22): only
 * metadata is requested, in small pages, and their memory is returned after the list. */

#include "namespace_watch.h"

#include <malloc.h>

#include "api_failures.h"
#include "base/log.h"
#include "base/macro.h"
#include "net/loop.h"

#define PAGE 50 /* each object is about 1 KiB; a page is in memory as a whole */

static struct namespace_watch *namespace_watch_of(struct watch *w)
{
	return container_of(w, struct namespace_watch, watch);
}

static void on_object(struct watch *watch, yyjson_val *namespace)
{
	namespace_allowlist_put(&namespace_watch_of(watch)->allowlist, namespace);
}

static void on_deleted(struct watch *watch, yyjson_val *namespace)
{
	namespace_allowlist_remove(&namespace_watch_of(watch)->allowlist, namespace);
}

static void on_list(struct watch *watch)
{
	namespace_allowlist_begin_list(&namespace_watch_of(watch)->allowlist);
}

static void on_synced(struct watch *watch)
{
	struct namespace_watch *w = namespace_watch_of(watch);
	const bool was_listed = w->is_listed;

	/* A later refusal is news again. */
	w->has_logged_forbidden = false;
	namespace_allowlist_end_list(&w->allowlist);
	w->is_listed = true;
	(void)malloc_trim(0); /* the pages were larger than what is kept of them */
	if (was_listed)
		return;
	log_info("watching the namespaces", LOG_INT("allowed", w->allowlist.n));
	if (w->on_listed)
		w->on_listed(w);
}

static void on_failure(struct watch *watch, const struct err *err)
{
	api_failures_add(namespace_watch_of(watch)->failures, loop_now_ms(watch->loop),
			 "watch the namespaces", err);
}

/* The identity of a kubelet may not list namespaces until deploy/agent/node-rbac.yaml is applied.
 */
static void on_forbidden(struct watch *watch, const struct err *err)
{
	struct namespace_watch *w = namespace_watch_of(watch);

	if (!w->has_logged_forbidden)
		log_warning(
			w->allowlist.is_known ?
				"not allowed to list namespaces, using the last known "
				"permissions" :
				"not allowed to list namespaces, no pod of the API server may use "
				"the management CPUs: apply deploy/agent/node-rbac.yaml or name "
				"namespaces with --allow-namespace",
			LOG_ERR(err));
	w->has_logged_forbidden = true;
}

void namespace_watch_start(struct namespace_watch *w, struct api *api,
			   struct api_failures *failures)
{
	static const struct watch_config config = {
		.path = "/api/v1/namespaces",
		.only_metadata = true,
		.page = PAGE,
		.frees_memory = true,
	};
	static const struct watch_callbacks callbacks = {
		.on_object = on_object,
		.on_deleted = on_deleted,
		.on_list = on_list,
		.on_synced = on_synced,
		.on_failure = on_failure,
		.on_forbidden = on_forbidden,
	};

	w->failures = failures;
	w->is_listed = false;
	if (w->is_open)
		watch_resume(&w->watch);
	else
		watch_init(&w->watch, api, &config, &callbacks);
	w->is_open = true;
}

void namespace_watch_pause(struct namespace_watch *w)
{
	if (w->is_open)
		watch_pause(&w->watch);
	w->is_listed = false;
}

void namespace_watch_close(struct namespace_watch *w)
{
	if (w->is_open)
		watch_close(&w->watch);
}

void namespace_watch_done(struct namespace_watch *w)
{
	if (w->is_open)
		watch_done(&w->watch);
	namespace_allowlist_done(&w->allowlist);
}
