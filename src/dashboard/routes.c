/* A request becomes a view. Every answer comes from memory, except the explanation of a pod of a
 * cluster, whose object is read on demand: 150,000 of them would take gigabytes. */

#include <errno.h>

#include "admission/admission_state.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "dashboard_private.h"
#include "explanation.h"
#include "kube/manifest.h"
#include "net/http1.h"
#include "page.h"
#include "views.h"
#include "what_if.h"

#define JSON_TYPE "application/json; charset=utf-8"
#define HISTORY_MAX 5000 /* events of one answer */

static void respond_json(struct small_response *ret, unsigned status, struct str body)
{
	*ret = (struct small_response){
		.http = { .status = status, .content_type = JSON_TYPE, .body = body },
		.headers = request_headers
	};
}

/* {"error":"..."} */
static void respond_error(struct small_response *ret, unsigned status, struct str why,
			  struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");

	doc_put_str(m, root, STR("error"), why);
	(void)doc_write(root, false, a, &text, NULL);
	respond_json(ret, status, text);
}

struct route_call {
	struct dashboard *d;
	const struct small_request *request;
	struct small_response *ret;
	struct arena *a;
};

static struct str parameter(const struct route_call *c, struct str name)
{
	return http_query_get(c->request->http.query, name, c->a);
}

static void get_cluster(struct route_call *c)
{
	respond_json(c->ret, 200, view_cluster(&c->d->state, c->a));
}

static void get_events(struct route_call *c)
{
	if (c->d->config->user_tokens &&
	    !user_access_add_stream(&c->d->access, request_token(c->request),
				    c->request->connection)) {
		respond_error(c->ret, 401, STR("the token is not valid any more"), c->a);
		return;
	}
	*c->ret = (struct small_response){ .http = { .status = 200,
						     .content_type = "text/event-stream",
						     .body = STR(": connected\n\n") },
					   .headers = request_headers,
					   .is_stream = true };
}

static void get_node(struct route_call *c)
{
	const struct str text = view_node(&c->d->state, parameter(c, STR("name")), c->a);

	if (text.n)
		respond_json(c->ret, 200, text);
	else
		respond_error(c->ret, 404, STR("there is no such node"), c->a);
}

/* {} when the node is measured from now on, otherwise {"why":"..."}. The numbers come with the
 * stream. */
static void get_use(struct route_call *c)
{
	const struct shown_node *n = shown_state_find_node(&c->d->state, parameter(c, STR("node")));
	yyjson_mut_doc *m = doc_build(c->a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");
	struct err err = { 0 };
	int r = 0;

	if (!n) {
		respond_error(c->ret, 404, STR("there is no such node"), c->a);
		return;
	}
	if (c->d->config->kubeconfig)
		r = use_meter_ask(&c->d->use, n->name, &err);
	else if (c->d->config->bundle)
		r = err_set(&err, ENODATA, "a bundle has no measurements");
	if (r < 0)
		doc_put_str(m, root, STR("why"), str_from(err.msg));
	(void)doc_write(root, false, c->a, &text, NULL);
	respond_json(c->ret, 200, text);
}

static void get_history(struct route_call *c)
{
	const struct history_filter f = { .node = parameter(c, STR("node")),
					  .namespace = parameter(c, STR("namespace")),
					  .pod = parameter(c, STR("pod")),
					  .max = HISTORY_MAX };

	history_expire(&c->d->state.history, c->d->state.now_ms);
	respond_json(c->ret, 200, history_to_json(&c->d->state.history, &f, c->a));
}

static void get_pods(struct route_call *c)
{
	respond_json(c->ret, 200, view_pods(&c->d->state, parameter(c, STR("text")), c->a));
}

static void get_profile(struct route_call *c)
{
	const struct shown_node *n = shown_state_find_node(&c->d->state, parameter(c, STR("node")));
	struct err err = { 0 };
	struct str text;

	if (!n)
		respond_error(c->ret, 404, STR("there is no such node"), c->a);
	else if (what_if_present(&c->d->state, n, c->a, &text, &err) < 0)
		respond_error(c->ret, 500, str_from(err.msg), c->a);
	else
		*c->ret = (struct small_response){ .http = { .status = 200,
							     .content_type =
								     "text/plain; charset=utf-8",
							     .body = text },
						   .headers = request_headers };
}

static void post_what_if(struct route_call *c)
{
	const struct shown_node *n;
	struct err err = { 0 };
	struct str profile, text;
	struct doc doc;

	if (!str_starts(http1_field(c->request->head, "Content-Type"), STR("application/json"))) {
		respond_error(c->ret, 415, STR("the body is not application/json"), c->a);
		return;
	}
	if (doc_parse(c->request->http.body, STR("body"), NULL, c->a, &doc, &err) < 0) {
		respond_error(c->ret, 400, str_from(err.msg), c->a);
		return;
	}
	n = shown_state_find_node(&c->d->state, doc_str(doc_get(doc.root, STR("node"))));
	profile = doc_str(doc_get(doc.root, STR("profile")));
	if (!n)
		respond_error(c->ret, 404, STR("there is no such node"), c->a);
	else if (profile.n > WHAT_IF_MAX_BYTES)
		respond_error(c->ret, 413, STR("the profile is too large"), c->a);
	else if (what_if(&c->d->state, n, profile, c->a, &text, &err) < 0)
		respond_error(c->ret, 400, str_from(err.msg), c->a);
	else
		respond_json(c->ret, 200, text);
}

/* --- pods --- */

static const char *no_explanation(const struct dashboard *d)
{
	return d->config->kubeconfig || d->config->bundle ?
		       "the pod cannot be read" :
		       "a machine has no pod objects: start the dashboard with -f "
		       "and the manifests of its pods";
}

/* The pod as it is shown, with its explanation or why there is none. */
static void respond_pod(struct route_call *c, const struct shown_pod *pod, yyjson_val *object,
			const struct admission_state *state, const struct err *why)
{
	yyjson_mut_doc *m = doc_build(c->a);
	yyjson_mut_val *root = view_pod(&c->d->state, pod->namespace, pod->name, m), *v;
	struct err err = { 0 };
	struct str text = STR("{}");

	if (object && explanation_of(state, object, m, c->a, &v, &err) >= 0)
		doc_put(m, root, STR("explain"), v);
	else
		doc_put_str(m, root, STR("unexplained"),
			    str_dup(c->a, str_from(err.code ? err.msg :
						   why	    ? why->msg :
							      no_explanation(c->d))));
	(void)doc_write(root, false, c->a, &text, NULL);
	respond_json(c->ret, 200, text);
}

static yyjson_val *find_manifest(const struct manifest_list *list, const struct shown_pod *pod)
{
	for (size_t i = 0; list && i < list->n; i++) {
		struct pod view;

		if (pod_from_object(list->items[i].object, &view) &&
		    str_eq(pod_name(&view), pod->name) &&
		    str_eq(pod_namespace(&view), pod->namespace))
			return list->items[i].object;
	}
	return NULL;
}

static void get_pod(struct route_call *c)
{
	const struct stored_pod *p = shown_state_find_pod(
		&c->d->state, parameter(c, STR("namespace")), parameter(c, STR("name")));
	struct err err = { 0 };

	if (!p)
		respond_error(c->ret, 404, STR("there is no such pod"), c->a);
	else if (!c->d->config->kubeconfig)
		respond_pod(c, &p->pod, find_manifest(c->d->config->manifests, &p->pod),
			    c->d->config->admission, NULL);
	else if (source_cluster_read_pod(&c->d->cluster, &p->pod, c->request->connection, &err) < 0)
		respond_error(c->ret, 503, str_from(err.msg), c->a);
	else
		c->ret->is_deferred = true;
}

void dashboard_on_pod(void *context, uint64_t connection, yyjson_val *object, const struct err *err)
{
	struct dashboard *d = context;
	CLEANUP(arena_done) struct arena a;
	struct small_response response = { 0 };
	struct route_call c = { d, NULL, &response, &a };
	const struct stored_pod *p;

	arena_init(&a, 0);
	if (!object) {
		respond_error(&response, 502, str_from(err->msg), &a);
	} else {
		p = shown_state_find_pod(&d->state,
					 doc_str(doc_find(object, "/metadata/namespace")),
					 object_name(object));
		if (p)
			respond_pod(&c, &p->pod, object, cache_writer_state(&d->cluster.cache),
				    NULL);
		else
			respond_error(&response, 404, STR("there is no such pod"), &a);
	}
	small_server_respond(&d->http, connection, &response);
}

/* --- users --- */

/* Whether the token is accepted. A page asks this first, and again when it gets 401. */
static void get_session(struct route_call *c)
{
	struct err err = { 0 };

	if (!c->d->config->user_tokens)
		respond_json(c->ret, 200, STR("{}"));
	else if (user_access_review(&c->d->access, request_token(c->request),
				    c->request->connection, &err) < 0)
		respond_error(c->ret, 503, str_from(err.msg), c->a);
	else
		c->ret->is_deferred = true;
}

void dashboard_on_review(void *context, uint64_t connection, const struct err *why)
{
	struct dashboard *d = context;
	CLEANUP(arena_done) struct arena a;
	struct small_response response = { 0 };

	arena_init(&a, 0);
	if (!why)
		respond_json(&response, 200, STR("{}"));
	else
		respond_error(&response, why->code == EACCES ? 403 : 502, str_from(why->msg), &a);
	small_server_respond(&d->http, connection, &response);
}

/* 0, or the status of the refusal. Everything but data is public. */
static unsigned refuse_user(struct dashboard *d, const struct small_request *request)
{
	const struct str token = request_token(request);

	if (!d->config->user_tokens || !str_starts(request->http.path, STR("/api/")))
		return 0;
	if (str_eq(request->http.path, STR("/api/session")) && token.n)
		return 0;
	return user_access_allows(&d->access, token) ? 0 : 401;
}

/* --- the table --- */

static const struct {
	const char *method, *path;
	void (*handle)(struct route_call *c);
} routes[] = {
	{ "GET", "/api/cluster", get_cluster }, { "GET", "/api/events", get_events },
	{ "GET", "/api/node", get_node },	{ "GET", "/api/history", get_history },
	{ "GET", "/api/pods", get_pods },	{ "GET", "/api/pod", get_pod },
	{ "GET", "/api/profile", get_profile }, { "GET", "/api/use", get_use },
	{ "GET", "/api/session", get_session }, { "POST", "/api/what-if", post_what_if },
};

static void respond_file(struct small_response *ret, const struct page_file *file)
{
	*ret = (struct small_response){
		.http = { .status = 200, .content_type = file->type, .body = str_from(file->text) },
		.headers = request_headers
	};
}

static void dispatch(struct route_call *c)
{
	const struct http_request *q = &c->request->http;
	const struct page_file *file = page_find(q->path);

	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		if (str_eq(q->path, str_from(routes[i].path))) {
			if (str_eq(q->method, str_from(routes[i].method)))
				routes[i].handle(c);
			else
				respond_error(c->ret, 405, STR("the method is not allowed"), c->a);
			return;
		}
	if (!file)
		respond_error(c->ret, 404, STR("there is no such page"), c->a);
	else if (!str_eq(q->method, STR("GET")))
		respond_error(c->ret, 405, STR("the method is not allowed"), c->a);
	else
		respond_file(c->ret, file);
}

void dashboard_handle(const struct small_request *request, struct small_response *ret,
		      void *context)
{
	struct arena *a = request->http.arena;
	struct route_call c = { context, request, ret, a };
	const char *why;
	unsigned status;

	/* For probes, which have another Host. */
	if (str_eq(request->http.path, STR("/healthz"))) {
		http_response_status(&ret->http, 200, a);
		return;
	}
	status = request_refuse(&c.d->rules, request, &why);
	if (!status) {
		status = refuse_user(c.d, request);
		why = "This dashboard asks for the token of a user of the cluster: "
		      "kubectl create token NAME.";
	}
	if (status)
		respond_error(ret, status, str_from(why), a);
	else
		dispatch(&c);
}
