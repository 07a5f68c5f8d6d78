#pragma once

/* Calls to an API server that wait for the response, for commands: a connection with a loop of its
 * own, one call at a time. Daemons use api.h. */

#include "api.h"
#include "kubeconfig.h"
#include "net/loop.h"

/* Must not move in memory once it is open. */
struct api_sync {
	struct arena *arena; /* of the kubeconfig */
	struct kubeconfig kubeconfig;
	struct loop loop;
	struct timer pause;
	struct api api;
	bool is_open;
	unsigned last_status; /* HTTP status of the last call; 0: no response came */
};

/* The kubeconfig of a command: the file `path`; without one the first file of $KUBECONFIG, else
 * ~/.kube/config, else the service account of a pod. -ENOENT when there is none of them. */
int api_sync_find_kubeconfig(const char *path, const char *context, struct arena *a,
			     struct kubeconfig *ret, struct err *err);

/* Connects with the first call. `a` must outlive it. */
int api_sync_open(struct api_sync *s, const struct kubeconfig *kubeconfig, const char *user_agent,
		  struct arena *a, struct err *err);
void api_sync_close(struct api_sync *s); /* also after a failed open, or on { 0 } */

/* The response's object, copied into `a`. Errors are those of api_call_fn. */
int api_sync_call(struct api_sync *s, const struct api_request *request, struct arena *a,
		  yyjson_val **ret, struct err *err);
int api_sync_get(struct api_sync *s, struct str path, struct arena *a, yyjson_val **ret,
		 struct err *err);

/* The same for a response that is text, such as the log of a container. */
int api_sync_text(struct api_sync *s, struct str path, struct arena *a, struct str *ret,
		  struct err *err);

/* Called with each object of a list, which lives until it returns. A negative result ends the list.
 */
typedef int (*api_sync_object_fn)(void *context, yyjson_val *object, struct err *err);

struct api_sync_list {
	struct str path;      /* "/api/v1/nodes" */
	const char *selector; /* "fieldSelector=...", or NULL */
	api_sync_object_fn on_object;
	void *context;
};

/* In pages, so that memory does not grow with the collection. -ENOENT when it is not served. */
int api_sync_list(struct api_sync *s, const struct api_sync_list *list, struct err *err);

/* Waits, for the next attempt. */
void api_sync_pause(struct api_sync *s, uint64_t pause_ms);
