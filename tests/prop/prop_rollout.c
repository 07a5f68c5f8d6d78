/* Rollouts over random clusters: agents, evictions, node failures, lost responses, operators that
 * are killed and replaced, and administrators who pause, in random order. At no moment are more
 * nodes of a pool taken than allowed; a node is empty when its agent may act, where the change
 * needs that; and in the end every change is applied and every cordon of the operator is undone. */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "kube/names.h"
#include "operator/reconcile.h"
#include "operator/writer.h"
#include "prop.h"

#define MAX_NODES 12
#define MAX_PODS 4

struct sim_node {
	char name[16];
	size_t pool;
	unsigned version, partition_version;
	bool is_ready, is_unschedulable, is_cordoned_by_admin;
	char rollout[16], granted[16];
	unsigned n_pending; /* changes "N-2", "N-1"...: the first one is next */
	unsigned needs[3];
	unsigned n_pods; /* that have to leave */
	unsigned applied;
};

struct sim {
	struct prop *r;
	struct sim_node nodes[MAX_NODES];
	size_t n, n_pools;
	unsigned max_unavailable[3];
	bool is_paused[3];
	unsigned counter; /* of resource versions */
	bool is_calm;	  /* nothing fails from now on */

	/* The operator that is the leader. */
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct reconcile_memory memory;
	uint64_t now_ms;
};

static const char *const need_names[] = { "KubeletRestart", "RuntimeRestart", "Reboot" };

static void hash_of(const struct sim_node *n, unsigned which, char ret[16])
{
	(void)snprintf(ret, 16, "%x", 0x1000u * (n->applied + which + 1) + 1);
}

static void store_text(struct sim *s, enum operator_kind kind, const char *key, unsigned version,
		       const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;
	struct str kept;
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", version);
	CHECK_OK(doc_parse(str_from(text), STR("object"), NULL, a, &doc, &err));
	CHECK_OK(operator_object_trim(kind, doc.root, a, &kept, &err));
	(void)object_store_put(&s->stores[kind], str_from(key), str_from(number), kept);
}

static void see_node(struct sim *s, const struct sim_node *n, struct arena *a)
{
	char text[600];

	(void)snprintf(text, sizeof(text),
		       "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"pool\":\"p%zu\"}%s%s%s},"
		       "\"spec\":{\"unschedulable\":%s},\"status\":{\"conditions\":["
		       "{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
		       n->name, n->pool,
		       *n->rollout ? ",\"annotations\":{\"" NAME_ROLLOUT "\":\"" : "", n->rollout,
		       *n->rollout ? "\"}" : "", n->is_unschedulable ? "true" : "false",
		       n->is_ready ? "True" : "False");
	store_text(s, OPERATOR_NODES, n->name, n->version, text, a);
}

static void see_partition(struct sim *s, const struct sim_node *n, struct arena *a)
{
	char hash[16];
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{", n->name);
	if (*n->granted)
		strbuf_printf(&b, "\"granted\":\"%s\"", n->granted);
	strbuf_printf(&b,
		      "},\"status\":{\"source\":\"Profile\",\"profile\":{\"name\":\"p%zu\","
		      "\"generation\":1},\"pending\":[",
		      n->pool);
	for (unsigned i = 0; i < n->n_pending; i++) {
		hash_of(n, i, hash);
		strbuf_printf(&b,
			      "%s{\"what\":\"%s\",\"reason\":\"Differs\",\"message\":\"differs\","
			      "\"hash\":\"%s\"}",
			      i ? "," : "", need_names[n->needs[i]], hash);
	}
	strbuf_add(&b, STR("]}}"));
	strbuf_addc(&b, '\0');
	store_text(s, OPERATOR_PARTITIONS, n->name, n->partition_version, b.p, a);
}

static void see_profiles(struct sim *s, struct arena *a)
{
	for (size_t i = 0; i < s->n_pools; i++) {
		char name[24], text[400];

		(void)snprintf(name, sizeof(name), "p%u", (unsigned)i);
		(void)snprintf(text, sizeof(text),
			       "{\"metadata\":{\"name\":\"%s\",\"generation\":1,\"annotations\":{"
			       "\"" NAME_MAX_UNAVAILABLE "\":\"%u\",\"" NAME_PAUSED "\":\"%s\","
			       "\"" NAME_REBOOT "\":\"operator\"}},"
			       "\"spec\":{\"nodeSelector\":{\"pool\":\"%s\"}}}",
			       name, s->max_unavailable[i], s->is_paused[i] ? "true" : "false",
			       name);
		store_text(s, OPERATOR_PROFILES, name, ++s->counter, text, a);
	}
}

/* Watches deliver some of what has changed, each object on its own. */
static void watch(struct sim *s, struct arena *a, bool everything)
{
	if (everything || prop_one_in(s->r, 2))
		see_profiles(s, a);
	for (size_t i = 0; i < s->n; i++) {
		if (everything || prop_one_in(s->r, 2))
			see_node(s, &s->nodes[i], a);
		if (everything || prop_one_in(s->r, 2))
			see_partition(s, &s->nodes[i], a);
	}
}

/* A new leader reads everything after its election. */
static void replace_operator(struct sim *s, struct arena *a)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&s->stores[i]);
	reconcile_memory_done(&s->memory);
	watch(s, a, true);
}

static bool is_taken(const struct sim_node *n)
{
	return *n->granted || *n->rollout;
}

static void check_places(const struct sim *s)
{
	for (size_t pool = 0; pool < s->n_pools; pool++) {
		unsigned taken = 0;

		for (size_t i = 0; i < s->n; i++)
			taken += s->nodes[i].pool == pool && is_taken(&s->nodes[i]);
		CHECK(taken <= s->max_unavailable[pool]);
	}
}

static struct sim_node *find_node(struct sim *s, struct str name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(name, str_from(s->nodes[i].name)))
			return &s->nodes[i];
	return NULL;
}

static bool version_is(yyjson_val *body, unsigned version)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", version);
	return str_eq(doc_str(doc_find(body, "/metadata/resourceVersion")), str_from(number));
}

static bool patch_node(struct sim *s, struct sim_node *n, yyjson_val *body)
{
	yyjson_val *annotation =
		doc_get(doc_find(body, "/metadata/annotations"), STR(NAME_ROLLOUT));
	yyjson_val *unschedulable = doc_find(body, "/spec/unschedulable");

	if (!version_is(body, n->version))
		return false; /* 409 */
	if (annotation)
		(void)snprintf(n->rollout, sizeof(n->rollout), PRI_STR,
			       FMT_STR(doc_str(annotation)));
	if (unschedulable)
		CHECK(!n->is_cordoned_by_admin || doc_bool(unschedulable, false));
	if (unschedulable)
		n->is_unschedulable = doc_bool(unschedulable, false);
	n->version = ++s->counter;
	return true;
}

static bool patch_partition(struct sim *s, struct sim_node *n, yyjson_val *body)
{
	struct str granted = doc_str(doc_find(body, "/spec/granted"));

	if (!version_is(body, n->partition_version))
		return false;
	(void)snprintf(n->granted, sizeof(n->granted), PRI_STR, FMT_STR(granted));
	n->partition_version = ++s->counter;
	return true;
}

static void list_pods(struct sim *s, const struct sim_node *n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("{\"pods\":["));
	for (unsigned i = 0; i < n->n_pods; i++)
		strbuf_printf(&b,
			      "%s{\"namespace\":\"default\",\"name\":\"%s-%u\",\"uid\":\"u\","
			      "\"controller\":\"ReplicaSet\"}",
			      i ? "," : "", n->name, i);
	strbuf_add(&b, STR("]}"));
	(void)object_store_put(&s->stores[OPERATOR_NODE_PODS], str_from(n->name), STR(""),
			       strbuf_str(&b));
}

/* Without a response the operator does not know whether the server has executed the request. */
static void doubt(struct sim *s, const struct operator_write *w)
{
	if (w->kind < OPERATOR_WATCHED)
		object_store_doubt(&s->stores[w->kind], w->object, s->now_ms + WRITER_FENCE_MS);
}

/* The response is the object as it is now. */
static void end_doubt(struct sim *s, const struct operator_write *w, const struct sim_node *n,
		      struct arena *a)
{
	if (w->kind == OPERATOR_NODES)
		see_node(s, n, a);
	else if (w->kind == OPERATOR_PARTITIONS)
		see_partition(s, n, a);
	if (object_store_find(&s->stores[w->kind], w->object))
		object_store_doubt(&s->stores[w->kind], w->object, 0);
}

/* What the server does, and whether the operator gets the response. */
static void execute(struct sim *s, const struct operator_write *w, struct arena *a)
{
	const bool is_answered = s->is_calm || !prop_one_in(s->r, 6);
	struct sim_node *n = find_node(s, w->object);
	struct err err = { 0 };
	struct doc doc = { 0 };
	bool is_done = true;

	if (!s->is_calm && prop_one_in(s->r, 6)) {
		doubt(s, w); /* the request is lost */
		return;
	}
	if (!is_answered)
		doubt(s, w);
	if (w->request.body.n)
		CHECK_OK(doc_parse(w->request.body, STR("body"), NULL, a, &doc, &err));
	if (strcmp(w->what, "eviction") == 0) {
		struct str pod = doc_str(doc_find(doc.root, "/metadata/name"));

		n = find_node(s, (struct str){ pod.p,
					       (size_t)((const char *)memrchr(pod.p, '-', pod.n) -
							pod.p) });
		if (n && n->n_pods && (s->is_calm || !prop_one_in(s->r, 3))) /* else 429 */
			n->n_pods--;
		return;
	}
	if (!n)
		return;
	if (w->kind == OPERATOR_NODE_PODS && is_answered)
		list_pods(s, n, a);
	if (w->kind == OPERATOR_NODES && w->request.body.n)
		is_done = patch_node(s, n, doc.root);
	if (w->kind == OPERATOR_PARTITIONS && w->request.body.n)
		is_done = patch_partition(s, n, doc.root);
	if (is_done && is_answered && w->kind < OPERATOR_WATCHED)
		end_doubt(s, w, n, a);
	check_places(s);
}

static void forget_pods(struct sim *s, const struct reconcile_result *result)
{
	struct object_store *pods = &s->stores[OPERATOR_NODE_PODS];

	for (size_t i = pods->n; i-- > 0;) {
		bool is_kept = false;

		for (size_t k = 0; k < result->n_drained; k++)
			is_kept |= str_eq(result->drained[k], str_from(pods->items[i].key));
		if (!is_kept)
			(void)object_store_remove(pods, str_from(pods->items[i].key));
	}
}

static void reconcile(struct sim *s)
{
	struct operator_snapshot snapshot;
	struct reconcile_result result;
	struct arena a;
	size_t stop;

	arena_init(&a, 0);
	operator_snapshot_build(s->stores, 1000, s->now_ms += 500, &a, &snapshot);
	operator_reconcile(&snapshot, &s->memory, &result);
	forget_pods(s, &result);
	/* It may be killed among its writes. */
	stop = s->is_calm || !prop_one_in(s->r, 5) ? result.writes.n :
						     prop_below(s->r, result.writes.n + 1);
	for (size_t i = 0; i < stop; i++)
		execute(s, &result.writes.items[i], &a);
	if (stop < result.writes.n || (!s->is_calm && prop_one_in(s->r, 10)))
		replace_operator(s, &a);
	arena_done(&a);
}

/* An agent applies what was granted, and its node may be unavailable for a while. */
static void run_agent(struct sim *s, struct sim_node *n)
{
	char hash[16];

	if (!n->is_ready && (s->is_calm || prop_one_in(s->r, 2))) {
		n->is_ready = true;
		n->version = ++s->counter;
	}
	if (!n->n_pending)
		return;
	/* Restarts are applied before reboots, in the order in which they wait. */
	for (unsigned i = 0; i < n->n_pending; i++) {
		hash_of(n, i, hash);
		if (strcmp(hash, n->granted) != 0)
			continue;
		CHECK(i == 0);
		CHECK(n->needs[0] == 1 || s->n == 1 || (n->n_pods == 0 && n->is_unschedulable));
		n->applied++;
		n->n_pending--;
		memmove(n->needs, n->needs + 1, n->n_pending * sizeof(*n->needs));
		n->is_ready = prop_one_in(s->r, 2);
		n->version = ++s->counter;
		n->partition_version = ++s->counter;
		return;
	}
}

static void disturb(struct sim *s)
{
	struct sim_node *n = &s->nodes[prop_below(s->r, s->n)];

	switch (prop_below(s->r, 6)) {
	case 0:
		n->is_ready = !n->is_ready;
		n->version = ++s->counter;
		break;
	case 1: /* a scheduler puts a pod on a node that accepts pods */
		if (!n->is_unschedulable && n->n_pods < MAX_PODS)
			n->n_pods++;
		break;
	case 2:
		s->is_paused[n->pool] = !s->is_paused[n->pool];
		break;
	default:
		run_agent(s, n);
	}
}

static void draw(struct sim *s)
{
	s->n = prop_between(s->r, 1, MAX_NODES);
	s->n_pools = prop_between(s->r, 1, 3);
	for (size_t i = 0; i < s->n_pools; i++)
		s->max_unavailable[i] = (unsigned)prop_between(s->r, 1, 3);
	for (size_t i = 0; i < s->n; i++) {
		struct sim_node *n = &s->nodes[i];

		(void)snprintf(n->name, sizeof(n->name), "node%02u", (unsigned)i);
		n->pool = prop_below(s->r, s->n_pools);
		n->version = ++s->counter;
		n->partition_version = ++s->counter;
		n->is_ready = true;
		n->is_unschedulable = n->is_cordoned_by_admin = prop_one_in(s->r, 8);
		n->n_pods = (unsigned)prop_below(s->r, MAX_PODS);
		n->n_pending = (unsigned)prop_below(s->r, 3);
		/* A reboot comes last. */
		for (unsigned k = 0; k < n->n_pending; k++)
			n->needs[k] = k + 1 == n->n_pending && prop_one_in(s->r, 2) ?
					      2 :
					      (unsigned)prop_below(s->r, 2);
	}
}

/* Such a node counts as unavailable, and may keep the others waiting. */
static void uncordon_by_admin(struct sim *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct sim_node *n = &s->nodes[i];

		if (!n->is_cordoned_by_admin || *n->rollout)
			continue;
		n->is_unschedulable = n->is_cordoned_by_admin = false;
		n->version = ++s->counter;
	}
}

static bool is_finished(const struct sim *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->nodes[i].n_pending || is_taken(&s->nodes[i]))
			return false;
	return true;
}

TEST(rollouts_take_no_more_nodes_than_allowed_and_end)
{
	struct prop r;

	PROP_LOOP (&r) {
		struct sim s = { .r = &r };
		struct arena a;
		unsigned turns = 0;

		arena_init(&a, 0);
		draw(&s);
		replace_operator(&s, &a);
		for (unsigned i = 0; i < 100; i++) {
			disturb(&s);
			if (prop_one_in(&r, 2))
				watch(&s, &a, false);
			if (prop_one_in(&r, 2))
				reconcile(&s);
		}
		/* An administrator uncordons the own nodes, which otherwise count as unavailable.
		 */
		s.is_calm = true;
		for (size_t i = 0; i < s.n_pools; i++)
			s.is_paused[i] = false;
		while (!is_finished(&s)) {
			CHECK(turns++ < 40 * MAX_NODES);
			for (size_t i = 0; i < s.n; i++)
				run_agent(&s, &s.nodes[i]);
			uncordon_by_admin(&s);
			watch(&s, &a, true);
			reconcile(&s);
		}
		for (size_t i = 0; i < s.n; i++)
			CHECK(s.nodes[i].is_unschedulable == s.nodes[i].is_cordoned_by_admin);
		for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
			object_store_done(&s.stores[i]);
		reconcile_memory_done(&s.memory);
		arena_done(&a);
	}
}
