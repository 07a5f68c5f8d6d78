/* One node at a time: the cache names a candidate, the node is read, admission decides about it as
 * if it joined now, and its patch is sent with a test of the version that was read. Replicas may do
 * this at the same time: one of two writes fails, and the next round finds nothing to do. */

#include "node_recheck.h"

#include <errno.h>
#include <stdio.h>

#include "admission/admission.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "object_path.h"

#define ROUND_MS 5000

static void start_call(struct node_recheck *r, const char *method, struct str body,
		       api_call_fn on_done)
{
	CLEANUP(arena_done) struct arena a;
	struct object_ref ref = { .api = STR("v1"),
				  .resource = STR("nodes"),
				  .name = str_from(r->node) };

	arena_init(&a, 0);
	r->is_busy = true;
	api_start(r->api, &r->call,
		  &(struct api_request){ .method = method,
					 .path = object_path(&ref, &a),
					 .content_type = body.n ? API_PATCH_JSON : NULL,
					 .body = body },
		  on_done);
}

static void on_tainted(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_recheck *r = container_of(call, struct node_recheck, call);

	(void)object;
	r->is_busy = false;
	if (err)
		r->config->on_failure(r, r->node, err);
	else
		r->config->on_tainted(r, r->node);
}

/* Empty when nothing is to be done. */
static struct str plan_taint(struct node_recheck *r, yyjson_val *node, struct arena *a)
{
	const struct admission_request rq = { .operation = OPERATION_CREATE,
					      .resource = STR("nodes"),
					      .object = node };
	struct str version = doc_str(doc_find(node, "/metadata/resourceVersion"));
	struct admission_result result;
	struct str body = STR("");

	if (admit_mutate(cache_writer_state(r->cache), &rq, a, &result) < 0 || !result.allowed ||
	    patch_is_empty(&result.patch))
		return body;
	patch_test(&result.patch, STR("/metadata/resourceVersion"), version);
	(void)patch_write(&result.patch, a, &body, NULL);
	return body;
}

static void on_node(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct node_recheck *r = container_of(call, struct node_recheck, call);
	CLEANUP(arena_done) struct arena a;
	struct str body;

	arena_init(&a, 0);
	r->is_busy = false;
	if (err) {
		if (err->code != ENOENT) /* it was deleted */
			r->config->on_failure(r, r->node, err);
		return;
	}
	body = plan_taint(r, object, &a);
	if (body.n)
		start_call(r, "PATCH", body, on_tainted);
}

static void on_timer(struct timer *t)
{
	struct node_recheck *r = container_of(t, struct node_recheck, timer);
	const char *since = r->config->registered(r);
	struct str name;

	if (r->is_busy || !*since || !cache_writer_state(r->cache)->is_synced ||
	    !cache_find_unpartitioned(r->cache, since, &name))
		return;
	(void)snprintf(r->node, sizeof(r->node), PRI_STR, FMT_STR(name));
	start_call(r, "GET", STR(""), on_node);
}

void node_recheck_init(struct node_recheck *r, struct api *api, struct cache *cache,
		       const struct node_recheck_config *config)
{
	*r = (struct node_recheck){ .api = api, .cache = cache, .config = config };
	timer_init(&r->timer, api->loop, on_timer);
	timer_start(&r->timer, ROUND_MS, ROUND_MS);
}

void node_recheck_close(struct node_recheck *r)
{
	api_cancel(&r->call);
	timer_close(&r->timer, NULL);
}
