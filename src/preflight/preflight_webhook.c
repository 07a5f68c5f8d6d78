/* The webhook: that it is configured, runs, has a certificate that the API server trusts, and that
 * pods reach it. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/pki.h"
#include "codec/base64.h"
#include "kube/names.h"
#include "preflight_cluster.h"

#define DAY_S INT64_C(86400)
#define APPLY_WEBHOOK "kubectl apply -k deploy/base, or install the chart"

struct str preflight_pod(void)
{
	return STR(
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"check-dry-run\","
		"\"annotations\":{\"" NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT
		"\":\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\"}},\"spec\":{"
		"\"containers\":[{\"name\":\"check\",\"image\":\"localhost/check\","
		"\"securityContext\":{\"allowPrivilegeEscalation\":false,\"runAsNonRoot\":true,"
		"\"seccompProfile\":{\"type\":\"RuntimeDefault\"},"
		"\"capabilities\":{\"drop\":[\"ALL\"]}},"
		"\"resources\":{\"requests\":{\"cpu\":\"10m\",\"memory\":\"1Mi\"}}}]}}");
}

/* Whatever admission decides about the pod, it converts it or removes the annotation. */
bool preflight_pod_was_seen(yyjson_val *response)
{
	yyjson_val *annotations = doc_find(response, "/metadata/annotations");

	return !doc_get(annotations, STR(NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT)) ||
	       doc_get(annotations, STR(NAME_RESOURCES_PREFIX "check"));
}

static bool check_configuration(const struct cluster_facts *f, struct preflight_report *r)
{
	static const struct {
		enum preflight_object object;
		const char *kind;
	} rows[] = {
		{ PREFLIGHT_MUTATING_OBJECT, "MutatingWebhookConfiguration" },
		{ PREFLIGHT_VALIDATING_OBJECT, "ValidatingWebhookConfiguration" },
	};
	bool is_complete = true;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct object_fact *o = &f->objects[rows[i].object];

		if (o->object)
			continue;
		is_complete = false;
		preflight_add(r, PREFLIGHT_WEBHOOK_CONFIGURATION_CHECK,
			      o->err.code == ENOENT ? PREFLIGHT_FAILURE : PREFLIGHT_NOTE,
			      o->err.code == ENOENT ?
				      str_printf(r->a,
						 "%s pinfold does not exist: no pod is converted",
						 rows[i].kind) :
				      str_printf(r->a, "not checked: %s", o->err.msg),
			      o->err.code == ENOENT ?
				      STR(APPLY_WEBHOOK) :
				      STR("use credentials that may read webhook configurations"));
	}
	if (is_complete)
		preflight_add(r, PREFLIGHT_WEBHOOK_CONFIGURATION_CHECK, PREFLIGHT_OK,
			      STR("the webhook is configured"), STR(""));
	return is_complete;
}

static yyjson_val *first_client(const struct cluster_facts *f)
{
	return doc_find(f->objects[PREFLIGHT_MUTATING_OBJECT].object, "/webhooks/0/clientConfig");
}

void preflight_pods(yyjson_val *deployment, enum preflight_check check, const char *name,
		    struct preflight_report *r)
{
	int64_t available = 0, wanted = 1;

	(void)doc_int(doc_find(deployment, "/spec/replicas"), &wanted);
	(void)doc_int(doc_find(deployment, "/status/availableReplicas"), &available);
	preflight_add(r, check,
		      available <= 0	 ? PREFLIGHT_FAILURE :
		      available < wanted ? PREFLIGHT_WARNING :
					   PREFLIGHT_OK,
		      str_printf(r->a, "%" PRId64 " of %" PRId64 " %s pods are available",
				 available, wanted, name),
		      available < wanted || available <= 0 ?
			      str_printf(r->a,
					 "kubectl -n pinfold describe pods; kubectl -n pinfold "
					 "logs deployment/pinfold-%s",
					 name) :
			      STR(""));
}

/* Of a webhook with a URL, the pods are elsewhere. */
static void check_pods(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct object_fact *o = &f->objects[PREFLIGHT_DEPLOYMENT_OBJECT];

	if (doc_get(first_client(f), STR("url")))
		return;
	if (!o->object) {
		preflight_add(r, PREFLIGHT_WEBHOOK_PODS_CHECK,
			      o->err.code == ENOENT ? PREFLIGHT_FAILURE : PREFLIGHT_NOTE,
			      str_printf(r->a, "Deployment pinfold/pinfold-webhook: %s",
					 o->err.msg),
			      STR(APPLY_WEBHOOK));
		return;
	}
	preflight_pods(o->object, PREFLIGHT_WEBHOOK_PODS_CHECK, "webhook", r);
}

/* True when a CA of the bundle signed the certificate. */
static bool is_trusted(struct str cert, struct str bundle)
{
	struct str ca;

	while (pki_next(&bundle, &ca))
		if (pki_is_signed_by(cert, ca))
			return true;
	return false;
}

/* The webhooks of both configurations whose caBundle does not fit, by name. */
static struct str distrusting(const struct cluster_facts *f, struct str cert, struct arena *a)
{
	static const enum preflight_object both[] = { PREFLIGHT_MUTATING_OBJECT,
						      PREFLIGHT_VALIDATING_OBJECT };
	struct strbuf b;
	yyjson_val *w;

	strbuf_init(&b, a);
	for (size_t i = 0; i < ARRAY_LEN(both); i++)
		DOC_EACH_ITEM (doc_get(f->objects[both[i]].object, STR("webhooks")), w) {
			struct str text = doc_str(doc_find(w, "/clientConfig/caBundle"));
			struct str bundle = STR("");

			(void)base64_decode(text, a, &bundle, NULL);
			if (is_trusted(cert, bundle))
				continue;
			strbuf_printf(&b, "%s" PRI_STR, b.n ? ", " : "",
				      FMT_STR(doc_str(doc_get(w, STR("name")))));
		}
	return strbuf_str(&b);
}

static void check_secret(const struct cluster_facts *f, struct str cert, struct preflight_report *r)
{
	struct str names = distrusting(f, cert, r->a);
	struct pki_info info;

	if (names.n)
		preflight_add(
			r, PREFLIGHT_WEBHOOK_TRUST_CHECK, PREFLIGHT_FAILURE,
			str_printf(r->a,
				   "the caBundle of " PRI_STR
				   " has no CA of the webhook's certificate",
				   FMT_STR(names)),
			STR("the webhook restores it within a minute while it runs; with "
			    "Argo CD ignore differences of caBundle. To renew the CA: "
			    "kubectl -n pinfold annotate secret pinfold-webhook-tls " NAME_ROTATE
			    "=now"));
	else if (pki_read(cert, &info, NULL) == 0 && info.ends_s < f->now_s + DAY_S)
		preflight_add(r, PREFLIGHT_WEBHOOK_TRUST_CHECK, PREFLIGHT_FAILURE,
			      info.ends_s < f->now_s ?
				      STR("the webhook's certificate has expired") :
				      STR("the webhook's certificate expires within a day"),
			      STR("the webhook renews it while it runs: see its log"));
	else
		preflight_add(r, PREFLIGHT_WEBHOOK_TRUST_CHECK, PREFLIGHT_OK,
			      STR("every caBundle has the CA of the webhook's certificate"),
			      STR(""));
}

static void check_trust(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct object_fact *secret = &f->objects[PREFLIGHT_SECRET_OBJECT];
	struct str cert = STR("");

	if (f->direct.is_made) {
		preflight_add(r, PREFLIGHT_WEBHOOK_TRUST_CHECK,
			      f->direct.is_answered ? PREFLIGHT_OK : PREFLIGHT_FAILURE,
			      f->direct.is_answered ?
				      STR("the webhook answers at its URL with a certificate that "
					  "the caBundle trusts") :
				      str_dup(r->a, str_from(f->direct.err.msg)),
			      f->direct.is_answered ?
				      STR("") :
				      STR("start the webhook at that URL, and set caBundle to the "
					  "CA of its certificate (`pinfold webhook --print-config "
					  "--url URL --ca FILE`)"));
		return;
	}
	(void)base64_decode(doc_str(doc_find(secret->object, "/data/tls.crt")), r->a, &cert, NULL);
	if (cert.n)
		check_secret(f, cert, r);
	else
		preflight_add(r, PREFLIGHT_WEBHOOK_TRUST_CHECK,
			      secret->err.code == EACCES ? PREFLIGHT_NOTE : PREFLIGHT_FAILURE,
			      secret->err.code == EACCES ?
				      STR("not checked: no permission to read Secret "
					  "pinfold/pinfold-webhook-tls") :
				      STR("Secret pinfold/pinfold-webhook-tls has no certificate"),
			      secret->err.code == EACCES ?
				      STR("webhook-answers tests the same from the API server") :
				      STR("start the webhook, which creates it"));
}

/* With failurePolicy Ignore the pod goes on without the webhook, and the guard refuses it (D48):
 * its message alone would look like a matter of permissions. */
static struct str unanswered(const struct err *err, struct arena *a)
{
	if (!err->code)
		return STR("a pod that opts in is admitted without the webhook: the API server "
			   "cannot call it, and failurePolicy is Ignore");
	if (str_has(str_from(err->msg), STR("failed calling webhook")))
		return str_dup(a, str_from(err->msg));
	return str_printf(a,
			  "a pod that opts in passes without the webhook, which the API server "
			  "cannot call, and is refused later: %s",
			  err->msg);
}

static void check_answers(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct webhook_attempt *p = &f->pod;

	if (!p->is_made)
		preflight_add(r, PREFLIGHT_WEBHOOK_ANSWERS_CHECK, PREFLIGHT_NOTE,
			      str_printf(r->a, "not checked: %s", p->err.msg),
			      STR("use credentials that may create pods in namespace default (the "
				  "pod is not stored)"));
	else if (p->is_answered)
		preflight_add(r, PREFLIGHT_WEBHOOK_ANSWERS_CHECK, PREFLIGHT_OK,
			      STR("a pod that opts in reaches the webhook"), STR(""));
	else
		preflight_add(r, PREFLIGHT_WEBHOOK_ANSWERS_CHECK, PREFLIGHT_FAILURE,
			      unanswered(&p->err, r->a),
			      STR("see webhook-pods and webhook-trust; then the API server's log "
				  "(\"failed calling webhook\") and network policies"));
}

void preflight_webhook(const struct cluster_facts *f, struct preflight_report *r)
{
	if (!check_configuration(f, r))
		return;
	check_pods(f, r);
	check_trust(f, r);
	check_answers(f, r);
}
