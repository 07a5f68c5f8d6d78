#pragma once

/* Calls to a Kubernetes API server over one connection. A call is one request and one response, a
 * JSON object; any other status becomes an error with the server's message. Credentials in files
 * are read again as they rotate. Nothing is retried here. Belongs to the thread of its loop. */

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
#define API_METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define API_METADATA_LIST "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
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
	bool must_refresh;    /* the server refused them: read them again before the next call */
	uint64_t token_reads; /* new tokens found so far */
};

/* `kubeconfig` must outlive it. Reads the credentials for the first time. */
int api_init(struct api *api, struct loop *loop, const struct kubeconfig *kubeconfig,
	     const char *user_agent, struct err *err);
void api_close(struct api *api); /* calls in flight end without on_done */
void api_done(struct api *api);	 /* after the loop is done */

struct api_call;

/* `object` is NULL when there is an error; it lives until the function returns. The errors' codes:
 * ENOENT (404), EEXIST (409), ESTALE (410), EACCES (401, 403), EINVAL (400, 422), EBUSY (429, 5xx),
 * others when no response came. call->http.status is the HTTP status. */
typedef void (*api_call_fn)(struct api_call *call, yyjson_val *object, const struct err *err);

struct api_call {
	struct http_call http;
	struct api *api;
	api_call_fn on_done;
	char *path;
	struct buffer request, response;
	bool is_too_large;
	bool is_text;
	size_t max_bytes;
};

struct api_request {
	const char *method;
	struct str path;	  /* below the server's prefix, with the query */
	const char *accept;	  /* NULL: application/json */
	const char *content_type; /* of the body */
	struct str body;	  /* copied */
	bool is_text;		  /* the response is text, such as a log: `object` is a string */
	size_t max_bytes;	  /* of the response; 0: API_MAX_BODY */
};

/* One at a time for a struct api_call, which starts as { 0 }; it may be started again from its own
 * on_done. */
void api_start(struct api *api, struct api_call *call, const struct api_request *request,
	       api_call_fn on_done);
void api_cancel(struct api_call *call); /* also frees what it holds */

/* For endless responses (watches): refreshes the credentials and starts. api_path() returns the
 * path with the prefix; the caller frees it. */
char *api_path(const struct api *api, struct str path);
void api_start_stream(struct api *api, struct http_call *call);

/* The error for a status that is not a success; `response` may be NULL. */
int api_status_error(unsigned status, yyjson_val *response, struct err *err);

/* Reads the credentials again before the next call: the server did not accept them. */
void api_refresh_credentials(struct api *api);
