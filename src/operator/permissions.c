/* The object is replaced as a whole, so that nothing that others added to it stays. */

#include "permissions.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/pod.h"
#include "nodesync/permission_origin.h"
#include "pin/namespace_allowlist.h"
#include "pin/permissions_digest.h"
#include "reconcile.h"

#define INTERVAL_MS 1000 /* changes of namespaces often come in groups */

static void read_namespaces(const struct operator_snapshot *s, struct namespace_allowlist *ret)
{
	const struct object_store *store = &s->stores[OPERATOR_NAMESPACES];

	for (size_t i = 0; i < store->n; i++)
		namespace_allowlist_put(ret, operator_stored_object(&store->items[i], s->arena));
}

static bool is_recent(struct str renewed, int64_t now_s)
{
	int64_t s;

	/* A time in the future is from another clock. */
	return object_time_read(renewed, &s) && s <= now_s && (now_s - s) * 1000 < DIGEST_RENEW_MS;
}

/* Whether the digest in the cluster says the same and is confirmed. */
static bool is_current(const struct operator_snapshot *s, const struct namespace_allowlist *want,
		       bool is_too_large)
{
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist have = { 0 };
	const struct object_store *store = &s->stores[OPERATOR_DIGEST];
	yyjson_val *object = store->n ? operator_stored_object(&store->items[0], s->arena) : NULL;
	struct str renewed;

	if (is_too_large) /* then it has neither names nor a confirmation */
		return object && !doc_get(object, STR("data")) &&
		       !doc_get(object_annotations(object), STR(NAME_RENEWED));
	return object && permissions_digest_read(object, &have, &renewed, NULL) == 0 &&
	       namespace_allowlist_allows_same(want, &have) && is_recent(renewed, s->now_s);
}

static struct api_request write_request(bool exists, struct str body, struct arena *a)
{
	const struct object_ref ref = { .api = STR("v1"),
					.resource = STR("configmaps"),
					.namespace = STR(NAME_PERMISSIONS_NAMESPACE),
					.name = STR(NAME_PERMISSIONS) };

	return operator_replace_request(&ref, exists, body, a);
}

void reconcile_permissions(const struct operator_snapshot *s, struct operator_writes *w,
			   struct reconcile_figures *figures)
{
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 };
	const struct object_store *store = &s->stores[OPERATOR_DIGEST];
	struct operator_write *write;
	struct str body;
	int r;

	read_namespaces(s, &list);
	r = permissions_digest_write(&list, object_time(s->now_s, s->arena), s->arena, &body, NULL);
	figures->namespaces_allowed = list.n;
	figures->is_digest_too_large = r == -E2BIG;
	if (!s->has_current_namespaces || is_current(s, &list, r == -E2BIG))
		return;
	write = operator_writes_add(w);
	write->key = STR("digest of permissions");
	write->what = "permissions digest";
	write->interval_ms = INTERVAL_MS;
	write->kind = OPERATOR_DIGEST;
	write->object = STR(NAME_PERMISSIONS_NAMESPACE "/" NAME_PERMISSIONS);
	write->request = write_request(store->n > 0, body, s->arena);
}
