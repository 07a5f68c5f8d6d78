/* Watches one object: a field selector limits list and watch to the agent's own Node, so that a
 * node does not receive the changes of all others. Every version is handed on, also the one after
 * the agent's own write. */

#include "node_watch.h"

#include <malloc.h>
#include <stdio.h>

#include "api_failures.h"
#include "base/log.h"
#include "base/macro.h"
#include "net/loop.h"

static struct node_watch *node_watch_of(struct watch *w)
{
	return container_of(w, struct node_watch, watch);
}

static void on_object(struct watch *watch, yyjson_val *node)
{
	node_watch_of(watch)->on_node(node_watch_of(watch), node);
}

static void on_deleted(struct watch *watch, yyjson_val *node)
{
	struct node_watch *w = node_watch_of(watch);

	(void)node;
	log_warning("the Node was deleted", LOG_STR("node", w->name));
	/* The watch goes on: the kubelet may create the Node again under the same name. */
	w->on_node(w, NULL);
}

static void on_list(struct watch *watch)
{
	node_watch_of(watch)->on_node(node_watch_of(watch), NULL);
}

static void on_synced(struct watch *watch)
{
	node_watch_of(watch)->on_synced(node_watch_of(watch));
	(void)malloc_trim(0); /* a Node lists its images and is much larger than what is kept */
}

static void on_failure(struct watch *watch, const struct err *err)
{
	api_failures_add(node_watch_of(watch)->failures, loop_now_ms(watch->loop), "watch the Node",
			 err);
}

void node_watch_start(struct node_watch *w, struct api *api, struct str name,
		      struct api_failures *failures)
{
	static const struct watch_callbacks callbacks = {
		.on_object = on_object,
		.on_deleted = on_deleted,
		.on_list = on_list,
		.on_synced = on_synced,
		.on_failure = on_failure,
	};

	w->name = name;
	w->failures = failures;
	(void)snprintf(w->selector, sizeof(w->selector), "fieldSelector=metadata.name%%3D" PRI_STR,
		       FMT_STR(name));
	w->config = (struct watch_config){
		.path = "/api/v1/nodes", .selector = w->selector, .page = 1, .frees_memory = true
	};
	watch_init(&w->watch, api, &w->config, &callbacks);
}
