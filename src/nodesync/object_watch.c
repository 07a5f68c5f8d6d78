/* Watches one object: a field selector limits list and watch to it, so that a node does not receive
 * the changes of all others. Every version is handed on, also the one after the agent's own write.
 */

#include "object_watch.h"

#include <malloc.h>
#include <stdio.h>

#include "api_failures.h"
#include "base/log.h"
#include "base/macro.h"
#include "net/loop.h"

static struct object_watch *object_watch_of(struct watch *w)
{
	return container_of(w, struct object_watch, watch);
}

static void on_object(struct watch *watch, yyjson_val *object)
{
	object_watch_of(watch)->on_object(object_watch_of(watch), object);
}

static void on_deleted(struct watch *watch, yyjson_val *object)
{
	struct object_watch *w = object_watch_of(watch);

	(void)object;
	log_warning("object was deleted", LOG_STR("collection", str_from(w->config->path)),
		    LOG_STR("name", w->name));
	/* The watch goes on: it may be created again under the same name. */
	w->on_object(w, NULL);
}

static void on_list(struct watch *watch)
{
	object_watch_of(watch)->on_object(object_watch_of(watch), NULL);
}

static void on_synced(struct watch *watch)
{
	struct object_watch *w = object_watch_of(watch);

	if (w->on_synced)
		w->on_synced(w);
	(void)malloc_trim(0); /* a Node lists its images and is much larger than what is kept */
}

static void on_failure(struct watch *watch, const struct err *err)
{
	struct object_watch *w = object_watch_of(watch);

	api_failures_add(w->failures, loop_now_ms(watch->loop), w->config->request, err);
}

void object_watch_start(struct object_watch *w, struct api *api,
			const struct object_watch_config *config, struct str name,
			struct api_failures *failures)
{
	w->config = config;
	w->name = name;
	w->failures = failures;
	w->is_open = true;
	(void)snprintf(w->selector, sizeof(w->selector), "fieldSelector=metadata.name%%3D" PRI_STR,
		       FMT_STR(name));
	w->watch_config = (struct watch_config){ .path = config->path,
						 .selector = w->selector,
						 .page = 1,
						 .may_be_absent = config->may_be_absent,
						 .frees_memory = true };
	w->callbacks = (struct watch_callbacks){
		.on_object = on_object,
		.on_deleted = on_deleted,
		.on_list = on_list,
		.on_synced = on_synced,
		.on_failure = on_failure,
		/* What comes with manifests may be forbidden until they are applied. */
		.on_forbidden = config->may_be_absent ? on_failure : NULL,
	};
	watch_init(&w->watch, api, &w->watch_config, &w->callbacks);
}

void object_watch_close(struct object_watch *w)
{
	if (w->is_open)
		watch_close(&w->watch);
}

void object_watch_done(struct object_watch *w)
{
	if (w->is_open)
		watch_done(&w->watch);
}
