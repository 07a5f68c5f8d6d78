#pragma once

/* Calls to a Kubernetes API server over one connection. A call is one question and one answer, a
 * whole JSON object; whatever is not a success becomes an error with the server's own sentence.
 * Credentials that live in files are read again as they rotate. Nothing is retried here. Belongs to
 * the thread of its loop. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "codec/doc.h"
#include "kubeconfig.h"
#include "net/client.h"
#include "net/tls.h"

struct err;
struct loop;

#define API_MAX_BODY ((size_t)64 << 20)
#define API_TIMEOUT_MS 30000

#define API_JSON "application/json"
#define API_PATCH_JSON "application/json-patch+json"
#define API_PATCH_MERGE "application/merge-patch+json"
#define API_PATCH_STRATEGIC "application/strategic-merge-patch+json"
#define API_PATCH_APPLY "application/apply-patch+yaml"

struct api {
	struct loop *loop;
	const struct kubeconfig *kubeconfig;
	struct tls_context tls;
	struct http_client http;
	char *authorization;
	uint64_t digest;      /* of the certificates in use */
	uint64_t checked_ms;  /* when the credentials were last read */
	bool is_distrusted;   /* the server refused them: read them again at once */
	uint64_t token_reads; /* how often a new token was found */
};

/* `access` must outlive it. Reads the credentials for the first time. */
int api_init(struct api *api, struct loop *loop, const struct kubeconfig *kubeconfig,
	     const char *user_agent, struct err *err);
void api_close(struct api *api); /* calls under way are forgotten */
void api_done(struct api *api);	 /* after the loop is done */

struct api_call;

/* `object` is NULL when there is an error; it lives until the function returns. The errors' codes:
 * ENOENT (404), EEXIST (409), ESTALE (410), EACCES (401, 403), EINVAL (400, 422), EBUSY (429, 5xx),
 * others when no answer came at all. call->http.status has the number itself. */
typedef void (*api_call_fn)(struct api_call *call, yyjson_val *object, const struct err *err);

struct api_call {
	struct http_call http;
	struct api *api;
	api_call_fn on_done;
	char *path;
	struct buffer question, response;
	bool is_too_large;
};

struct api_request {
	const char *method;
	struct str path;	  /* below the server's prefix, with the query */
	const char *accept;	  /* NULL: application/json */
	const char *content_type; /* of the body */
	struct str body;	  /* copied */
};

/* One at a time for a struct api_call, which starts as { 0 }; it may be started again from its own
 * on_done. */
void api_start(struct api *api, struct api_call *call, const struct api_request *request,
	       api_call_fn on_done);
void api_cancel(struct api_call *call); /* also frees what it holds */

/* For answers that do not end (watches): refreshes the credentials and starts. The full path, with
 * the prefix, is made by api_path() and freed by the caller. */
char *api_path(const struct api *api, struct str path);
void api_start_stream(struct api *api, struct http_call *call);

/* What an answer of this status and body means. */
int api_status_error(unsigned status, yyjson_val *response, struct err *err);

/* Says that the server did not accept who we are. */
void api_distrust(struct api *api);
