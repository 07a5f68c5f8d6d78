/* request() sends for the present step and namespace, on_page() hands the objects to the check and
 * goes on with the next page, namespace or step. */

#include "namespace_scan.h"

#include <errno.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/trim.h"
#include "cluster/object_path.h"
#include "kube/names.h"
#include "net/loop.h"

#define PAGE 500 /* the metadata of a pod is a few KiB */

static const struct {
	const char *api, *resource;
	bool is_each_namespace; /* in every namespace of the round, else in the whole cluster */
	const char *selector, *accept;
	void (*check)(struct namespace_checks *c, yyjson_val *object);
} steps[] = {
	{ "v1", "pods", true,
	  "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed", API_METADATA_LIST,
	  namespace_check_pod },
	{ "autoscaling/v2", "horizontalpodautoscalers", false, NULL, NULL,
	  namespace_check_autoscaler },
	{ "v1", "limitranges", false, NULL, NULL, namespace_check_limit_range },
	{ "v1", "resourcequotas", false, NULL, NULL, namespace_check_quota },
};

static void request(struct namespace_scan *s);

uint64_t namespace_scan_pause_ms(uint64_t took_ms, unsigned failures)
{
	const uint64_t share_ms = took_ms * NAMESPACE_SCAN_SHARE;
	uint64_t retry_ms = NAMESPACE_SCAN_RETRY_MS;

	if (!failures)
		return share_ms > NAMESPACE_SCAN_MS ? share_ms : NAMESPACE_SCAN_MS;
	while (--failures && retry_ms < NAMESPACE_SCAN_MS)
		retry_ms *= 2;
	return retry_ms < NAMESPACE_SCAN_MS ? retry_ms : NAMESPACE_SCAN_MS;
}

static void end_round(struct namespace_scan *s, const struct err *err)
{
	const uint64_t now_ms = loop_now_ms(s->api->loop);

	s->is_busy = false;
	s->failed_rounds = err ? s->failed_rounds + 1 : 0;
	s->next_ms = now_ms + namespace_scan_pause_ms(now_ms - s->began_ms, s->failed_rounds);
	buffer_done(&s->next_page);
	if (err) {
		s->failures++;
		arena_done(&s->arena);
		arena_init(&s->arena, 0);
		if (s->on_failure)
			s->on_failure(s, err);
		return;
	}
	arena_done(&s->found_arena);
	s->found_arena = s->arena;
	s->found = s->round.found;
	s->found.arena = &s->found_arena;
	arena_init(&s->arena, 0);
	s->rounds++;
	s->is_complete = true;
	trim_memory(); /* the pages were much larger than what is kept */
	if (s->on_complete)
		s->on_complete(s);
}

/* The next namespace or the next step. */
static void advance(struct namespace_scan *s)
{
	if (steps[s->step].is_each_namespace && s->at + 1 < s->n_names) {
		s->at++;
	} else {
		s->at = 0;
		s->step++;
	}
	if (s->step < ARRAY_LEN(steps))
		request(s);
	else
		end_round(s, NULL);
}

static void on_page(struct api_call *call, yyjson_val *list, const struct err *err)
{
	struct namespace_scan *s = container_of(call, struct namespace_scan, call);
	const struct str more = doc_str(doc_find(list, "/metadata/continue"));
	yyjson_val *object;

	/* A namespace may be gone by now, and an API may be absent. */
	if (err && err->code != ENOENT) {
		end_round(s, err);
		return;
	}
	DOC_EACH_ITEM (doc_get(list, STR("items")), object)
		steps[s->step].check(&s->round, object);
	buffer_consume(&s->next_page, buffer_len(&s->next_page));
	if (more.n) {
		buffer_add(&s->next_page, more);
		request(s);
	} else {
		advance(s);
	}
}

static void request(struct namespace_scan *s)
{
	CLEANUP(arena_done) struct arena a;
	struct object_ref ref = { .api = str_from(steps[s->step].api),
				  .resource = str_from(steps[s->step].resource) };

	arena_init(&a, 0);
	if (steps[s->step].is_each_namespace && !s->n_names) {
		advance(s);
		return;
	}
	if (steps[s->step].is_each_namespace)
		ref.namespace = s->names[s->at];
	s->requests++;
	api_start(s->api, &s->call,
		  &(struct api_request){ .method = "GET",
					 .path = object_list_path(object_path(&ref, &a),
								  steps[s->step].selector, PAGE,
								  buffer_str(&s->next_page), &a),
					 .accept = steps[s->step].accept },
		  on_page);
}

/* Pods of Pinfold are never converted (D18). */
static bool is_exempt(struct str namespace)
{
	return str_eq(namespace, STR(NAME_NAMESPACE_WEBHOOK)) ||
	       str_eq(namespace, STR(NAME_NAMESPACE_AGENT));
}

static void begin_round(struct namespace_scan *s, const struct object_store *allowed)
{
	s->round = (struct namespace_checks){ .arena = &s->arena,
					      .allowed = allowed,
					      .found.arena = &s->arena };
	s->names = arena_array(&s->arena, struct str, allowed->n + 1);
	s->n_names = s->at = s->step = 0;
	for (size_t i = 0; i < allowed->n; i++)
		if (!is_exempt(str_from(allowed->items[i].key)))
			s->names[s->n_names++] =
				str_dup(&s->arena, str_from(allowed->items[i].key));
	s->is_busy = true;
	s->began_ms = loop_now_ms(s->api->loop);
	request(s);
}

void namespace_scan_start(struct namespace_scan *s, struct api *api)
{
	s->api = api;
	arena_init(&s->arena, 0);
	arena_init(&s->found_arena, 0);
}

void namespace_scan_run(struct namespace_scan *s, const struct object_store *allowed,
			bool is_partitioned)
{
	const bool is_new = is_partitioned && !s->was_partitioned;

	if (s->is_busy)
		return;
	s->was_partitioned = is_partitioned;
	if (!is_partitioned) {
		s->found = (struct cluster_findings){ .arena = &s->found_arena };
		s->is_complete = true;
	} else if (is_new || loop_now_ms(s->api->loop) >= s->next_ms) {
		begin_round(s, allowed);
	}
}

void namespace_scan_close(struct namespace_scan *s)
{
	api_cancel(&s->call);
}

void namespace_scan_done(struct namespace_scan *s)
{
	buffer_done(&s->next_page);
	arena_done(&s->arena);
	arena_done(&s->found_arena);
	*s = (struct namespace_scan){ .on_complete = s->on_complete, .on_failure = s->on_failure };
}
