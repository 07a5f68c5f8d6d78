#include "api_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "net/buffer.h"
#include "object_path.h"

/* The first file only: merging several, as kubectl does, is for people who switch clusters. */
static const char *user_kubeconfig(struct arena *a)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME"), *path;

	if (list && *list)
		return str_cstr(a, (struct str){ list, strcspn(list, ":") });
	if (!home || !*home)
		return NULL;
	path = str_printf(a, "%s/.kube/config", home).p;
	return access(path, F_OK) == 0 ? path : NULL;
}

int api_sync_find_kubeconfig(const char *path, const char *context, struct arena *a,
			     struct kubeconfig *ret, struct err *err)
{
	if (!path)
		path = user_kubeconfig(a);
	if (path)
		return kubeconfig_read(path, context, a, ret, err);
	if (!getenv("KUBERNETES_SERVICE_HOST"))
		return err_set(err, ENOENT,
			       "no cluster: give --kubeconfig, or set KUBECONFIG (there is no "
			       "~/.kube/config)");
	return kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
				     getenv("KUBERNETES_SERVICE_PORT"), KUBECONFIG_POD_DIR, a, ret,
				     err);
}

static void on_pause(struct timer *t)
{
	loop_stop(container_of(t, struct api_sync, pause)->api.loop);
}

int api_sync_open(struct api_sync *s, const struct kubeconfig *kubeconfig, const char *user_agent,
		  struct arena *a, struct err *err)
{
	int r;

	*s = (struct api_sync){ .arena = a, .kubeconfig = *kubeconfig };
	r = loop_init(&s->loop, err);
	if (r < 0)
		return r;
	s->is_open = true;
	timer_init(&s->pause, &s->loop, on_pause);
	r = api_init(&s->api, &s->loop, &s->kubeconfig, user_agent, err);
	if (r < 0)
		api_sync_close(s);
	return r;
}

void api_sync_close(struct api_sync *s)
{
	if (!s->is_open)
		return;
	timer_close(&s->pause, NULL);
	api_close(&s->api);
	loop_done(&s->loop);
	api_done(&s->api);
	s->is_open = false;
}

struct waiting_call {
	struct api_call call;
	struct arena *a;
	yyjson_val *object;
	int result;
	struct err err;
};

static void on_done(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct waiting_call *w = container_of(call, struct waiting_call, call);

	if (err) {
		w->err = *err;
		w->result = -(err->code ? err->code : EIO);
	} else {
		/* The object is the API client's and ends with this function. */
		w->object = doc_freeze(yyjson_val_mut_copy(doc_build(w->a), object), w->a);
	}
	loop_stop(call->api->loop);
}

int api_sync_call(struct api_sync *s, const struct api_request *request, struct arena *a,
		  yyjson_val **ret, struct err *err)
{
	struct waiting_call w = { .a = a };

	api_start(&s->api, &w.call, request, on_done);
	loop_run(&s->loop);
	s->last_status = w.call.http.status;
	if (w.result < 0) {
		if (err)
			*err = w.err;
		return w.result;
	}
	*ret = w.object;
	return 0;
}

int api_sync_get(struct api_sync *s, struct str path, struct arena *a, yyjson_val **ret,
		 struct err *err)
{
	return api_sync_call(s, &(struct api_request){ .method = "GET", .path = path }, a, ret,
			     err);
}

int api_sync_text(struct api_sync *s, struct str path, struct arena *a, struct str *ret,
		  struct err *err)
{
	yyjson_val *text = NULL;
	int r = api_sync_call(
		s,
		&(struct api_request){
			.method = "GET", .path = path, .accept = "*/*", .is_text = true },
		a, &text, err);

	if (r >= 0)
		*ret = doc_str(text);
	return r;
}

#define PAGE 100

/* Hands over the objects of one page; *ret_token is the next page's, "" for the last one. */
static int list_page(struct api_sync *s, const struct api_sync_list *list, struct str token,
		     struct arena *a, struct str *ret_token, struct err *err)
{
	yyjson_val *page, *object;
	int r = api_sync_get(s, object_list_path(list->path, list->selector, PAGE, token, a), a,
			     &page, err);

	if (r < 0)
		return r;
	DOC_EACH_ITEM (doc_get(page, STR("items")), object) {
		r = list->on_object(list->context, object, err);
		if (r < 0)
			return r;
	}
	*ret_token = doc_str(doc_find(page, "/metadata/continue"));
	return 0;
}

int api_sync_list(struct api_sync *s, const struct api_sync_list *list, struct err *err)
{
	CLEANUP(buffer_done) struct buffer token = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct str next;
	int r;

	arena_init(&a, 0);
	do {
		r = list_page(s, list, buffer_str(&token), &a, &next, err);
		if (r < 0)
			return r;
		buffer_consume(&token, buffer_len(&token));
		buffer_add(&token, next);
		arena_reset(&a);
	} while (buffer_len(&token));
	return 0;
}

void api_sync_pause(struct api_sync *s, uint64_t pause_ms)
{
	timer_start(&s->pause, pause_ms, 0);
	loop_run(&s->loop);
}
