#include "cluster_read.h"

#include <errno.h>
#include <time.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/api_sync.h"
#include "codec/base64.h"

#define POD_PATH "/api/v1/namespaces/default/pods?dryRun=All"

/* A webhook with a URL: the same TLS handshake as the API server's, and an answer of any status. */
static void try_directly(struct str url, struct str ca_bundle, struct arena *a,
			 struct webhook_attempt *ret)
{
	struct kubeconfig server = { 0 };
	struct api_sync s = { 0 };
	yyjson_val *ignored;
	int r;

	if (kubeconfig_parse_server(url, a, &server, &ret->err) < 0 ||
	    base64_decode(ca_bundle, a, &server.ca_pem, &ret->err) < 0)
		return;
	ret->is_made = true;
	r = api_sync_open(&s, &server, "pinfold-check", a, &ret->err);
	if (r == 0) {
		/* The path of the webhook itself answers only POST: an HTTP status is enough. */
		r = api_sync_get(&s, STR(""), a, &ignored, &ret->err);
		ret->is_answered = r == 0 || s.last_status != 0;
	}
	api_sync_close(&s);
}

/* With failurePolicy Ignore a pod is admitted although the webhook did not answer, so the response
 * itself has to show that it did. */
static void try_pod(struct api_sync *s, struct arena *a, struct webhook_attempt *ret)
{
	const struct api_request request = { .method = "POST",
					     .path = STR(POD_PATH),
					     .content_type = API_JSON,
					     .body = preflight_pod() };
	yyjson_val *pod;
	int r = api_sync_call(s, &request, a, &pod, &ret->err);

	if (r == 0) {
		ret->is_made = true;
		ret->is_answered = preflight_pod_was_seen(pod);
		return;
	}
	/* A call that failed with failurePolicy Fail, or a refusal by our validating webhook or
	 * policy, which let this pod pass when the mutating one was called. Other refusals, such as
	 * of a quota, say nothing. */
	ret->is_made = str_has(str_from(ret->err.msg), STR("pinfold"));
	/* Before Infrastructure "cluster" exists, the mutating webhook refuses pods that opt in. */
	ret->is_answered = str_has(str_from(ret->err.msg),
				   STR("\"pods.mutate.pinfold.io\" denied the request"));
}

int cluster_facts_read(const struct kubeconfig *kubeconfig, struct str version, struct arena *a,
		       struct cluster_facts *ret, struct err *err)
{
	yyjson_val *client;
	struct api_sync s;
	struct str url;
	int r;

	*ret = (struct cluster_facts){ .version = version, .now_s = (int64_t)time(NULL) };
	r = api_sync_open(&s, kubeconfig, "pinfold-check", a, err);
	if (r < 0)
		return r;
	for (int i = 0; i < PREFLIGHT_OBJECT__COUNT; i++) {
		struct object_fact *o = &ret->objects[i];

		(void)api_sync_get(&s, str_from(preflight_object_path((enum preflight_object)i)), a,
				   &o->object, &o->err);
		/* Without an answer to the first request there is none to the others. */
		if (i == PREFLIGHT_VERSION_OBJECT && !o->object)
			break;
	}
	client = doc_find(ret->objects[PREFLIGHT_MUTATING_OBJECT].object,
			  "/webhooks/0/clientConfig");
	url = doc_str(doc_get(client, STR("url")));
	if (url.n)
		try_directly(url, doc_str(doc_get(client, STR("caBundle"))), a, &ret->direct);
	if (client)
		try_pod(&s, a, &ret->pod);
	api_sync_close(&s);
	return 0;
}
