/* Two watches and one decision: events of the digest's watch only record what arrived, and decide()
 * runs afterwards, from a timer, because it pauses and resumes the other watch. */

#include "permission_source.h"

#include <errno.h>
#include <time.h>

#include "api_failures.h"
#include "base/log.h"
#include "base/macro.h"
#include "kube/names.h"
#include "pin/permissions_digest.h"

#define LIST_SPREAD_MS 10000

static struct permission_source *source_of(struct watch *w)
{
	return container_of(w, struct permission_source, digest_watch);
}

static void decide_soon(struct permission_source *s)
{
	timer_start(&s->decide_timer, 0, 0);
}

static void use_digest(struct permission_source *s)
{
	const bool is_switch = s->origin != PERMISSIONS_FROM_DIGEST;

	s->origin = PERMISSIONS_FROM_DIGEST;
	if (is_switch) {
		timer_stop(&s->list_timer);
		namespace_watch_pause(&s->namespaces);
	}
	if (s->is_digest_new)
		namespace_allowlist_take(&s->namespaces.allowlist, &s->digest);
	s->is_digest_new = false;
	if (!is_switch)
		return;
	log_info("taking the permissions of namespaces from the operator",
		 LOG_INT("allowed", s->namespaces.allowlist.n));
	if (s->on_known)
		s->on_known(s);
}

static void list_namespaces(struct permission_source *s)
{
	namespace_watch_start(&s->namespaces, s->api, s->failures);
}

static void on_list_timer(struct timer *t)
{
	list_namespaces(container_of(t, struct permission_source, list_timer));
}

static void use_namespaces(struct permission_source *s)
{
	const bool is_start = s->origin == PERMISSIONS_UNDECIDED;

	if (s->origin == PERMISSIONS_FROM_NAMESPACES)
		return;
	if (s->origin == PERMISSIONS_FROM_DIGEST)
		log_warning(
			"the operator no longer confirms the permissions of namespaces, watching "
			"the namespaces");
	s->origin = PERMISSIONS_FROM_NAMESPACES;
	/* The namespaces are the largest response that an agent asks for. Agents that restarted
	 * know the permissions of before, so that they need not all ask in the same moment; the
	 * expiry of a digest is spread already. */
	if (is_start && s->namespaces.allowlist.n)
		timer_start(&s->list_timer, backoff_spread(LIST_SPREAD_MS, backoff_random()), 0);
	else
		list_namespaces(s);
}

static void decide(struct permission_source *s)
{
	const bool is_valid =
		digest_age_is_valid(&s->age, s->digest_watch.is_current, loop_now_ms(s->api->loop));
	const struct permission_facts facts = {
		.is_answered = s->is_answered,
		.is_usable = s->has_digest && is_valid &&
			     (s->is_digest_new || s->origin == PERMISSIONS_FROM_DIGEST),
		.is_listed = s->namespaces.is_listed,
		.is_same = s->is_digest_new &&
			   namespace_allowlist_allows_same(&s->digest, &s->namespaces.allowlist),
	};
	const enum permission_origin want = permission_origin_decide(s->origin, &facts);

	if (want == PERMISSIONS_FROM_DIGEST)
		use_digest(s);
	else if (want == PERMISSIONS_FROM_NAMESPACES)
		use_namespaces(s);
}

static void on_decide(struct timer *t)
{
	decide(container_of(t, struct permission_source, decide_timer));
}

static void on_object(struct watch *watch, yyjson_val *object)
{
	struct permission_source *s = source_of(watch);
	struct err err = { 0 };
	struct str renewed;

	namespace_allowlist_done(&s->digest);
	s->was_in_list = true;
	s->has_digest = permissions_digest_read(object, &s->digest, &renewed, &err) == 0;
	s->is_digest_new = s->has_digest;
	if (s->has_digest)
		digest_age_observe(&s->age, renewed, (int64_t)time(NULL), loop_now_ms(watch->loop));
	else if (!s->has_logged_unusable)
		log_warning("cannot use the operator's digest of permissions, watching the "
			    "namespaces",
			    LOG_ERR(&err));
	s->has_logged_unusable = !s->has_digest;
	decide_soon(s);
}

static void forget_digest(struct permission_source *s)
{
	namespace_allowlist_done(&s->digest);
	s->has_digest = s->is_digest_new = false;
}

static void on_deleted(struct watch *watch, yyjson_val *object)
{
	(void)object;
	forget_digest(source_of(watch));
	decide_soon(source_of(watch));
}

static void on_list(struct watch *watch)
{
	source_of(watch)->was_in_list = false;
}

static void on_synced(struct watch *watch)
{
	struct permission_source *s = source_of(watch);

	if (!s->was_in_list)
		forget_digest(s);
	s->is_answered = true;
	decide_soon(s);
}

/* The namespaces need not wait for the retries: until the digest is there, they count. */
static void on_failure(struct watch *watch, const struct err *err)
{
	struct permission_source *s = source_of(watch);

	/* Without an operator its manifests are absent, which allow agents to read the digest. */
	if (err->code != EACCES)
		api_failures_add(s->failures, loop_now_ms(watch->loop),
				 "watch the operator's digest of permissions", err);
	s->is_answered = true;
	decide_soon(s);
}

static void on_forbidden(struct watch *watch, const struct err *err)
{
	struct permission_source *s = source_of(watch);

	(void)err;
	forget_digest(s);
	s->is_answered = true;
	decide_soon(s);
}

static void on_listed(struct namespace_watch *w)
{
	struct permission_source *s = container_of(w, struct permission_source, namespaces);

	if (s->on_known)
		s->on_known(s);
}

void permission_source_start(struct permission_source *s, struct api *api,
			     struct api_failures *failures)
{
	static const struct watch_config config = {
		.path = "/api/v1/namespaces/" NAME_PERMISSIONS_NAMESPACE "/configmaps",
		.selector = "fieldSelector=metadata.name%3D" NAME_PERMISSIONS,
		.page = 1,
		.may_be_absent = true,
		.frees_memory = true,
	};
	static const struct watch_callbacks callbacks = {
		.on_object = on_object,
		.on_deleted = on_deleted,
		.on_list = on_list,
		.on_synced = on_synced,
		.on_failure = on_failure,
		.on_forbidden = on_forbidden,
	};

	s->api = api;
	s->failures = failures;
	s->namespaces.on_listed = on_listed;
	timer_init(&s->list_timer, api->loop, on_list_timer);
	if (s->namespaces.allowlist.is_legacy) {
		use_namespaces(s);
		return;
	}
	s->age.valid_ms =
		DIGEST_VALID_MS + backoff_jitter(DIGEST_VALID_JITTER_MS, backoff_random());
	timer_init(&s->decide_timer, api->loop, on_decide);
	watch_init(&s->digest_watch, api, &config, &callbacks);
	s->is_open = true;
}

void permission_source_tick(struct permission_source *s)
{
	if (s->is_open && s->is_answered)
		decide(s);
}

void permission_source_close(struct permission_source *s)
{
	if (s->api)
		timer_close(&s->list_timer, NULL);
	if (s->is_open) {
		timer_close(&s->decide_timer, NULL);
		watch_close(&s->digest_watch);
	}
	namespace_watch_close(&s->namespaces);
}

void permission_source_done(struct permission_source *s)
{
	if (s->is_open)
		watch_done(&s->digest_watch);
	namespace_allowlist_done(&s->digest);
	namespace_watch_done(&s->namespaces);
}
