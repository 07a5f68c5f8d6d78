/* One request: api_start() refreshes the credentials and hands the call to the HTTP client,
 * on_data() collects the body, on_end() parses it and calls the owner. Path, body and response
 * belong to the struct api_call until on_end() or api_cancel(). Certificates are part of a
 * connection, tokens of each request; a change of either is found by reading the files again. */

#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

#define CHECK_MS 60000 /* the kubelet renews tokens of pods at 80 % of their lifetime */

/* Detects a change of the files, without a second copy of the private key. The length is hashed,
 * too, so that bytes cannot move from one file to the next unnoticed. */
static uint64_t fnv1a(uint64_t hash, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * 1099511628211u;
	return (hash ^ s.n) * 1099511628211u;
}

/* Returns 1 when the identity for new connections changed. */
static int use_certificates(struct api *api, const struct credentials *now, struct err *err)
{
	const struct tls_client_config config = {
		.ca_pem = now->ca_pem,
		.cert_pem = now->cert_pem,
		.key_pem = now->key_pem,
		.alpn = "h2",
		.insecure = api->kubeconfig->insecure,
	};
	uint64_t digest = fnv1a(fnv1a(fnv1a(14695981039346656037u, now->ca_pem), now->cert_pem),
				now->key_pem);
	int r;

	if (digest == api->digest)
		return 0;
	r = tls_context_load_client(&api->tls, &config, err);
	if (r < 0)
		return r;
	api->digest = digest;
	return 1;
}

static void use_token(struct api *api, struct str token)
{
	char *text = NULL;

	if (token.n && asprintf(&text, "Bearer " PRI_STR, FMT_STR(token)) < 0)
		abort();
	if (text && api->authorization && strcmp(text, api->authorization) == 0) {
		free(text);
		return;
	}
	api->token_reads += api->authorization != NULL;
	free(api->authorization);
	api->authorization = text;
	api->http.authorization = text;
}

static int refresh(struct api *api, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct credentials now;
	int r;

	arena_init(&a, 0);
	r = kubeconfig_read_credentials(api->kubeconfig, &a, &now, err);
	if (r >= 0)
		r = use_certificates(api, &now, err);
	if (r < 0)
		return r;
	use_token(api, now.token);
	/* Only after a success: while the files cannot be read, every call reads them again. */
	api->checked_ms = loop_now_ms(api->loop);
	api->must_refresh = false;
	return r;
}

/* While files cannot be read, the credentials in use stay: the server decides whether they are
 * valid.
 */
static void refresh_if_due(struct api *api)
{
	if (!api->must_refresh && loop_now_ms(api->loop) - api->checked_ms < CHECK_MS)
		return;
	/* An open connection keeps the identity and the CA of its handshake. Its calls end with an
	 * error, and their owners retry. */
	if (refresh(api, NULL) > 0)
		http_client_drop(&api->http, "new credentials");
}

int api_init(struct api *api, struct loop *loop, const struct kubeconfig *kubeconfig,
	     const char *user_agent, struct err *err)
{
	const struct http_client_config config = { .host = kubeconfig->host,
						   .port = kubeconfig->port,
						   .other_host = kubeconfig->other_host,
						   .other_port = kubeconfig->other_port,
						   .tls_name = kubeconfig->tls_name,
						   .tls = &api->tls,
						   .user_agent = user_agent };
	int r;

	*api = (struct api){ .loop = loop, .kubeconfig = kubeconfig };
	tls_context_init(&api->tls);
	http_client_init(&api->http, loop, &config);
	/* A caller may go on after a failure: the credentials are read again before later calls. */
	r = refresh(api, err);
	return r < 0 ? r : 0;
}

void api_close(struct api *api)
{
	http_client_close(&api->http);
}

void api_done(struct api *api)
{
	tls_context_done(&api->tls);
	free(api->authorization);
}

void api_refresh_credentials(struct api *api)
{
	api->must_refresh = true;
}

char *api_path(const struct api *api, struct str path)
{
	char *text;

	if (asprintf(&text, "%s" PRI_STR, api->kubeconfig->prefix, FMT_STR(path)) < 0)
		abort();
	return text;
}

void api_start_stream(struct api *api, struct http_call *call)
{
	refresh_if_due(api);
	http_client_start(&api->http, call);
}

int api_status_error(unsigned status, yyjson_val *response, struct err *err)
{
	struct str message = doc_str(doc_get(response, STR("message")));
	int code = status == 404		  ? ENOENT :
		   status == 409		  ? EEXIST :
		   status == 410		  ? ESTALE :
		   status == 401 || status == 403 ? EACCES :
		   status == 400 || status == 422 ? EINVAL :
		   status == 429 || status >= 500 ? EBUSY :
						    EPROTO;

	/* The rest of struct err is for the prefix and for what callers put in front. */
	if (message.n > 180)
		message.n = 180;
	if (message.n)
		return err_set(err, code, "the API server responded %u: " PRI_STR, status,
			       FMT_STR(message));
	return err_set(err, code, "the API server responded %u", status);
}

static void free_call(struct api_call *call)
{
	buffer_done(&call->request);
	buffer_done(&call->response);
	free(call->path);
	call->path = NULL;
}

static void on_data(struct http_call *http, struct str bytes)
{
	struct api_call *call = container_of(http, struct api_call, http);

	/* The rest of the response is received and dropped: other calls share the connection. */
	if (buffer_len(&call->response) + bytes.n > call->max_bytes)
		call->is_too_large = true;
	else
		buffer_add(&call->response, bytes);
}

/* A success must be a JSON object; any other status is an error with the message of the Status
 * object, if there is one. */
static int read_response(struct api_call *call, struct arena *a, struct doc *ret, struct err *err)
{
	const struct doc_limits limits = { .size_bytes = API_MAX_BODY };
	unsigned status = call->http.status;
	int r;

	*ret = (struct doc){ 0 };
	if (call->is_too_large)
		return err_set(err, EMSGSIZE, "the response is larger than %zu MiB",
			       call->max_bytes >> 20);
	if (call->is_text && status >= 200 && status <= 299) {
		ret->root = doc_freeze(
			doc_new_str(doc_build(a), str_dup(a, buffer_str(&call->response))), a);
		return 0;
	}
	/* Errors may have a body that is not JSON, for example from a proxy: the status decides
	 * first. */
	r = doc_parse(buffer_str(&call->response), STR("response"), &limits, a, ret, err);
	if (status < 200 || status > 299)
		return api_status_error(status, r < 0 ? NULL : ret->root, err);
	if (r >= 0 && !yyjson_is_obj(ret->root))
		return err_set(err, EPROTO, "the response is not an object");
	return r;
}

static void on_end(struct http_call *http, const struct err *lost)
{
	struct api_call *call = container_of(http, struct api_call, http);
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc = { 0 };
	int r = 0;

	arena_init(&a, 0);
	if (lost) {
		err = *lost;
		r = -1;
	} else {
		r = read_response(call, &a, &doc, &err);
	}
	/* A handshake that fails may mean that the CA or the client certificate was rotated. */
	if (http->status == 401 || lost)
		api_refresh_credentials(call->api);
	/* Freed before the owner is called, which may start this call again. The document is a copy
	 * in the arena. */
	free_call(call);
	call->on_done(call, r < 0 ? NULL : doc.root, r < 0 ? &err : NULL);
}

void api_start(struct api *api, struct api_call *call, const struct api_request *request,
	       api_call_fn on_done)
{
	call->api = api;
	call->on_done = on_done;
	call->is_too_large = false;
	call->is_text = request->is_text;
	call->max_bytes = request->max_bytes ? request->max_bytes : API_MAX_BODY;
	call->path = api_path(api, request->path);
	if (request->body.n)
		buffer_add(&call->request, request->body);
	call->http = (struct http_call){
		.method = request->method,
		.path = call->path,
		.accept = request->accept ? request->accept : API_JSON,
		.content_type = request->content_type,
		.body = buffer_str(&call->request),
		.timeout_ms = API_TIMEOUT_MS,
		.on_data = on_data,
		.on_end = on_end,
	};
	refresh_if_due(api);
	http_client_start(&api->http, &call->http);
}

void api_cancel(struct api_call *call)
{
	http_call_cancel(&call->http);
	free_call(call);
}
