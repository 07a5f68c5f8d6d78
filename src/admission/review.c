/* The JSON around a decision. Strings of the response point into the request's body or the arena:
 * yyjson does not copy them, so both must live until the text is written. */

#include "review.h"

#include <errno.h>

#include "admission.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/json_scan.h"
#include "kube/names.h"
#include "kube/pod.h"

#define REVIEW_API "admission.k8s.io/v1"
#define MAX_UID_BYTES 256 /* it is a UUID of 36 bytes */

static enum admission_operation operation_of(struct str text)
{
	if (str_eq(text, STR("CREATE")))
		return OPERATION_CREATE;
	if (str_eq(text, STR("UPDATE")))
		return OPERATION_UPDATE;
	if (str_eq(text, STR("DELETE")))
		return OPERATION_DELETE;
	return OPERATION_OTHER;
}

static bool is_node(yyjson_val *user)
{
	yyjson_val *group;

	DOC_EACH_ITEM (doc_get(user, STR("groups")), group)
		if (str_eq(doc_str(group), STR(NAME_NODES_GROUP)))
			return true;
	return false;
}

static struct admission_request request_of(yyjson_val *rq)
{
	yyjson_val *resource = doc_get(rq, STR("resource"));

	return (struct admission_request){
		.operation = operation_of(doc_str(doc_get(rq, STR("operation")))),
		.group = doc_str(doc_get(resource, STR("group"))),
		.resource = doc_str(doc_get(resource, STR("resource"))),
		.subresource = doc_str(doc_get(rq, STR("subResource"))),
		.namespace = doc_str(doc_get(rq, STR("namespace"))),
		.by_node = is_node(doc_get(rq, STR("userInfo"))),
		.object = doc_get(rq, STR("object")),
		.old_object = doc_get(rq, STR("oldObject")),
	};
}

/* Why the review is malformed; NULL when it is not. */
static const char *fault_of(yyjson_val *root, yyjson_val *rq,
			    const struct admission_request *parsed)
{
	if (!str_eq(object_kind(root), STR("AdmissionReview")))
		return "kind must be AdmissionReview";
	if (!str_eq(object_api(root), STR(REVIEW_API)))
		return "apiVersion must be " REVIEW_API;
	if (!yyjson_is_obj(rq))
		return "request must be an object";
	if (!parsed->resource.n)
		return "request.resource.resource is missing";
	if (!doc_str(doc_get(rq, STR("operation"))).n)
		return "request.operation is missing";
	/* DELETE has no object. */
	if (parsed->operation == OPERATION_CREATE && !yyjson_is_obj(parsed->object))
		return "request.object is missing";
	return NULL;
}

static void put_status(yyjson_mut_doc *m, yyjson_mut_val *response, unsigned code,
		       const char *reason, struct str message)
{
	yyjson_mut_val *status = yyjson_mut_obj(m);

	yyjson_mut_obj_add_val(m, response, "status", status);
	/* The API server passes code, reason and message on to the client. */
	yyjson_mut_obj_add_uint(m, status, "code", code);
	yyjson_mut_obj_add_str(m, status, "status", "Failure");
	yyjson_mut_obj_add_str(m, status, "reason", reason);
	yyjson_mut_obj_add_strn(m, status, "message", message.p, message.n);
}

static int put_patch(yyjson_mut_doc *m, yyjson_mut_val *response, const struct patch *p,
		     struct arena *a, struct err *err)
{
	struct str text, quoted;
	struct strbuf b;
	int r;

	if (patch_is_empty(p))
		return 0;
	r = patch_write(p, a, &text, err);
	if (r < 0)
		return r;
	/* Raw: base64 has nothing to escape, so the writer need not search the text for it. */
	strbuf_init(&b, a);
	strbuf_addc(&b, '"');
	strbuf_add(&b, base64_encode(text, a));
	strbuf_addc(&b, '"');
	quoted = strbuf_str(&b);
	yyjson_mut_obj_add_str(m, response, "patchType", "JSONPatch");
	yyjson_mut_obj_add_val(m, response, "patch", yyjson_mut_rawn(m, quoted.p, quoted.n));
	return 0;
}

static void put_warnings(yyjson_mut_doc *m, yyjson_mut_val *response,
			 const struct admission_result *result)
{
	yyjson_mut_val *list;

	if (!result->n_warnings)
		return;
	list = yyjson_mut_obj_add_arr(m, response, "warnings");
	for (size_t i = 0; i < result->n_warnings; i++)
		yyjson_mut_arr_add_strn(m, list, result->warnings[i].p, result->warnings[i].n);
}

struct envelope {
	yyjson_mut_doc *m;
	yyjson_mut_val *root, *response;
};

/* The same for both kinds of response; `allowed` false with a status is a refusal. */
static struct envelope envelope(struct str uid, bool allowed, struct arena *a)
{
	struct envelope e = { .m = doc_build(a) };

	e.root = yyjson_mut_obj(e.m);
	e.response = yyjson_mut_obj(e.m);
	yyjson_mut_obj_add_str(e.m, e.root, "apiVersion", REVIEW_API);
	yyjson_mut_obj_add_str(e.m, e.root, "kind", "AdmissionReview");
	yyjson_mut_obj_add_val(e.m, e.root, "response", e.response);
	yyjson_mut_obj_add_strn(e.m, e.response, "uid", uid.p, uid.n);
	yyjson_mut_obj_add_bool(e.m, e.response, "allowed", allowed);
	return e;
}

/* The reason that the Kubernetes API has for the status. */
static const char *reason_of(unsigned code)
{
	return code == 413 ? "RequestEntityTooLarge" :
	       code == 503 ? "ServiceUnavailable" :
			     "BadRequest";
}

static int write_malformed(struct str uid, unsigned code, struct str message, struct arena *a,
			   struct str *ret, struct review_outcome *outcome, struct err *err)
{
	struct envelope e = envelope(uid, false, a);

	outcome->is_malformed = true;
	outcome->code = code;
	put_status(e.m, e.response, code, reason_of(code), message);
	return doc_write(e.root, false, a, ret, err);
}

static int write_response(struct str uid, const struct admission_result *result, struct arena *a,
			  struct str *ret, struct err *err)
{
	struct envelope e = envelope(uid, result->allowed, a);
	yyjson_mut_val *audit;
	int r;

	r = put_patch(e.m, e.response, &result->patch, a, err);
	if (r < 0)
		return r;
	if (!result->allowed)
		put_status(e.m, e.response, result->code, result->reason, result->message);
	put_warnings(e.m, e.response, result);
	if (result->rule < RULE__COUNT) {
		/* The API server puts the webhook's name in front of the key. */
		audit = yyjson_mut_obj_add_obj(e.m, e.response, "auditAnnotations");
		yyjson_mut_obj_add_str(e.m, audit, "rule", rule_name(result->rule));
	}
	return doc_write(e.root, false, a, ret, err);
}

/* One request that exceeds its arena fails; the process and other requests are not affected. */
static int exhausted(struct err *err)
{
	return err_set(err, ENOMEM, "the review needs more memory than a request may use");
}

static int review_handle(const struct admission_state *state, enum review_hook hook,
			 yyjson_val *root, struct arena *a, struct str *ret_response,
			 struct review_outcome *ret, struct err *err)
{
	yyjson_val *rq = doc_get(root, STR("request"));
	struct str uid = doc_str(doc_get(rq, STR("uid")));
	struct admission_request parsed = request_of(rq);
	const char *fault = fault_of(root, rq, &parsed);
	struct admission_result result;
	int r;

	/* The API server matches the response by uid, so without one there can be no response. */
	if (!uid.n)
		return err_set(err, EINVAL, "malformed AdmissionReview: %s",
			       fault ? fault : "request.uid is missing");
	*ret = (struct review_outcome){
		.namespace = parsed.namespace,
		.name = object_name(parsed.object),
		.rule = RULE__COUNT,
	};
	if (fault)
		return write_malformed(uid, 400,
				       str_printf(a, "malformed AdmissionReview: %s", fault), a,
				       ret_response, ret, err);
	r = hook == REVIEW_MUTATE ? admit_mutate(state, &parsed, a, &result) :
				    admit_validate(state, &parsed, a, &result);
	if (r < 0)
		return exhausted(err);
	ret->allowed = result.allowed;
	ret->code = result.code;
	ret->rule = result.rule;
	ret->is_changed = !patch_is_empty(&result.patch);
	return write_response(uid, &result, a, ret_response, err);
}

int review_refuse(struct str body, unsigned code, const char *why, struct arena *a,
		  struct str *ret_response, struct review_outcome *ret, struct err *err)
{
	static const struct str path[] = { STR_INIT("request"), STR_INIT("uid") };
	struct review_outcome outcome = { .rule = RULE__COUNT };
	struct str uid, text;
	int r;

	if (!json_scan_str(body, path, ARRAY_LEN(path), &uid) || !uid.n || uid.n > MAX_UID_BYTES)
		return err_set(err, EINVAL, "%s", why);
	r = write_malformed(uid, code, str_printf(a, "the review cannot be read: %s", why), a,
			    &text, &outcome, err);
	if (r < 0)
		return r;
	if (a->failed)
		return exhausted(err);
	*ret_response = text;
	*ret = outcome;
	return 0;
}

int review_respond(const struct admission_state *state, enum review_hook hook, struct str body,
		   struct arena *a, struct str *ret_response, struct review_outcome *ret,
		   struct err *err)
{
	/* Any depth: managedFields of an object nest as deep as its author likes, and the steps
	 * never recurse. */
	static const struct doc_limits limits = { .size_bytes = REVIEW_MAX_SIZE,
						  .values = REVIEW_MAX_VALUES,
						  .any_depth = true };
	struct review_outcome outcome = { 0 };
	struct str text = STR("");
	struct err why = { 0 };
	struct doc doc;
	int r;

	r = doc_parse(body, STR("review"), &limits, a, &doc, &why);
	if (r == -ENOMEM)
		return exhausted(err);
	if (r < 0)
		return review_refuse(body, r == -EFBIG ? 413 : 400, why.msg, a, ret_response, ret,
				     err);
	r = review_handle(state, hook, doc.root, a, &text, &outcome, err);
	if (r < 0)
		return r;
	/* Texts that did not fit are empty, without an error of their own. */
	if (a->failed)
		return exhausted(err);
	*ret_response = text;
	*ret = outcome;
	return 0;
}
