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
