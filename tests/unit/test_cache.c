#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/cache.h"
#include "test.h"

static void each(struct cache *c, enum cache_kind kind, const char *json,
		 void (*act)(struct cache *, enum cache_kind, yyjson_val *))
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(str_from(json), STR("object"), NULL, &a, &doc, &err));
	act(c, kind, doc.root);
}

static void put(struct cache *c, enum cache_kind kind, const char *json)
{
	each(c, kind, json, cache_put);
	cache_publish(c);
}

static void forget(struct cache *c, enum cache_kind kind, const char *json)
{
	each(c, kind, json, cache_remove);
	cache_publish(c);
}

static void put_namespace(struct cache *c, unsigned i, const char *allowed)
{
	char json[256];

	(void)snprintf(json, sizeof(json),
		       "{\"metadata\":{\"name\":\"team-%u\",\"annotations\":"
		       "{\"workload.openshift.io/allowed\":\"%s\"}}}",
		       i, allowed);
	put(c, CACHE_NAMESPACES, json);
}

static bool find(const struct admission_state *s, unsigned i, struct namespace_permission *ret)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "team-%u", i);
	return s->find_namespace(s->owner, str_from(name), ret);
}

TEST(namespaces_are_added_changed_and_removed)
{
	const struct admission_settings settings = { 0 };
	const struct admission_state *s;
	struct namespace_permission f;
	struct cache c;

	cache_init(&c, &settings, 1);
	for (unsigned i = 0; i < 1000; i++)
		put_namespace(&c, i, i % 2 ? "management" : "other");
	put(&c, CACHE_NAMESPACES, "{\"metadata\":{\"name\":\"plain\"}}");
	put(&c, CACHE_NAMESPACES,
	    "{\"metadata\":{\"name\":\"old\",\"labels\":{\"workload.openshift.io/allowed\":"
	    "\"management\"},\"annotations\":{\"workload.openshift.io/allowed\":\"\"}}}");
	put(&c, CACHE_NAMESPACES, "{\"metadata\":{}}");
	CHECK_UINT(cache_count(&c, CACHE_NAMESPACES), 1002);
	put_namespace(&c, 7, "changed");
	forget(&c, CACHE_NAMESPACES, "{\"metadata\":{\"name\":\"team-8\"}}");
	forget(&c, CACHE_NAMESPACES, "{\"metadata\":{\"name\":\"never-seen\"}}");
	s = cache_acquire(&c, 0);
	for (unsigned i = 0; i < 1000; i++) {
		TEST_ROW("team-%u", i);
		CHECK_INT(find(s, i, &f), i != 8);
		if (i != 8)
			CHECK_STR(f.allowed, i == 7 ? "changed" : i % 2 ? "management" : "other");
	}
	CHECK(s->find_namespace(s->owner, STR("plain"), &f) && !f.has_allowed &&
	      !f.has_legacy_allowed);
	CHECK(s->find_namespace(s->owner, STR("old"), &f) && f.has_allowed && !f.allowed.n);
	CHECK_STR(f.legacy_allowed, "management");
	CHECK(!s->find_namespace(s->owner, STR("absent"), &f));
	cache_release(&c, 0);
	cache_done(&c);
}

TEST(a_new_list_removes_what_is_not_in_it)
{
	const struct admission_settings settings = { 0 };
	const struct admission_state *s;
	struct namespace_permission f;
	struct cache c;

	cache_init(&c, &settings, 1);
	for (unsigned i = 0; i < 300; i++)
		put_namespace(&c, i, "management");
	put(&c, CACHE_INFRASTRUCTURE,
	    "{\"metadata\":{\"name\":\"cluster\"},\"status\":{\"cpuPartitioning\":\"AllNodes\"}}");
	put(&c, CACHE_NODES, "{\"metadata\":{\"name\":\"n1\"}}");
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++)
		cache_begin_list(&c, kind);
	for (unsigned i = 0; i < 300; i += 3)
		put_namespace(&c, i, "management");
	s = cache_acquire(&c, 0);
	CHECK(find(s, 1, &f)); /* the previous list is valid until the new one is complete */
	CHECK(s->infrastructure.is_partitioned);
	cache_release(&c, 0);
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++)
		cache_end_list(&c, kind);
	cache_publish(&c);
	CHECK_UINT(cache_count(&c, CACHE_NAMESPACES), 100);
	CHECK_UINT(cache_count(&c, CACHE_NODES), 0);
	s = cache_acquire(&c, 0);
	CHECK(find(s, 3, &f) && !find(s, 1, &f));
	CHECK(!s->infrastructure.is_present && !s->nodes.n);
	cache_release(&c, 0);
	cache_done(&c);
}

#define NODE(name, spec, allocatable)                                                              \
	"{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                                    \
	"},\"status\":{\"allocatable\":{" allocatable "}}}"
#define CORES "\"management.workload.openshift.io/cores\":\"8000\""
#define SHARED "\"openshift.io/shared-cpus\":\"4000\""

#define TAINTED(key) "\"taints\":[{\"key\":\"" key "\",\"effect\":\"NoSchedule\"}]"

TEST(node_totals_follow_every_change)
{
	static const struct {
		const char *node;
		size_t n, n_reporting, n_available, n_shared;
		struct cores_count cores;
		const char *missing; /* the groups without the shared pool, "name taints;" each */
		bool is_removed;
	} rows[] = {
		{ NODE("a", "", CORES), 1, 1, 1, 0, { 1, 1 }, "a ;", false },
		{ NODE("b", "", CORES "," SHARED), 2, 2, 2, 1, { 2, 2 }, "a ;", false },
		{ NODE("a", "", CORES "," SHARED), 2, 2, 2, 2, { 2, 2 }, "", false },
		{ NODE("c", "\"unschedulable\":true", ""), 3, 3, 2, 2, { 2, 2 }, "", false },
		{ "{\"metadata\":{\"name\":\"d\"}}", 4, 3, 3, 2, { 2, 2 }, "d ;", false },
		{ NODE("a", "", ""), 4, 3, 3, 1, { 1, 1 }, "d ;", false },
		{ NODE("d", TAINTED("x"), CORES),
		  4,
		  4,
		  3,
		  1,
		  { 2, 2 },
		  "a ;d x=:NoSchedule\n;",
		  false },
		{ NODE("d", TAINTED("pinfold.io/unpartitioned"), CORES),
		  4,
		  4,
		  2,
		  1,
		  { 2, 1 },
		  "a ;",
		  false },
		{ "{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
		  "\"status\":\"Unknown\"}]}}",
		  4,
		  3,
		  1,
		  1,
		  { 2, 1 },
		  "",
		  false },
		{ NODE("b", "", ""), 3, 2, 0, 0, { 1, 0 }, "", true },
		{ NODE("b", "", ""), 3, 2, 0, 0, { 1, 0 }, "", true },
		{ NODE("d", "", ""), 2, 1, 0, 0, { 0, 0 }, "", true },
	};
	const struct admission_settings settings = { 0 };
	struct cache c;

	cache_init(&c, &settings, 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct admission_state *s;
		struct cores_count cores;
		char missing[256] = "";

		TEST_ROW("step %zu: %s", i, rows[i].node);
		(rows[i].is_removed ? forget : put)(&c, CACHE_NODES, rows[i].node);
		s = cache_acquire(&c, 0);
		cores = s->count_cores(s->owner, STR("management"));
		for (size_t k = 0; k < s->nodes.n_missing_shared; k++)
			(void)snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				       PRI_STR " " PRI_STR ";",
				       FMT_STR(s->nodes.missing_shared[k].name),
				       FMT_STR(s->nodes.missing_shared[k].taints));
		CHECK_UINT(s->nodes.n, rows[i].n);
		CHECK_UINT(s->nodes.n_reporting, rows[i].n_reporting);
		CHECK_UINT(s->nodes.n_available, rows[i].n_available);
		CHECK_UINT(s->nodes.n_shared, rows[i].n_shared);
		CHECK_STR(str_from(missing), rows[i].missing);
		CHECK_UINT(cores.n, rows[i].cores.n);
		CHECK_UINT(cores.n_available, rows[i].cores.n_available);
		CHECK_UINT(s->count_cores(s->owner, STR("manage")).n, 0);
		cache_release(&c, 0);
	}
	cache_done(&c);
}

#define PROFILE(name, role)                                                                        \
	"{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"nodeSelector\":{"                       \
	"\"node-role.kubernetes.io/" role "\":\"\"}}}"

TEST(profiles_are_known_after_the_first_list_with_the_label_of_their_nodes)
{
	const struct admission_settings settings = { 0 };
	const struct admission_state *s;
	struct cache c;

	cache_init(&c, &settings, 1);
	CHECK(!cache_writer_state(&c)->has_profiles);
	cache_begin_list(&c, CACHE_PROFILES);
	put(&c, CACHE_PROFILES, PROFILE("a", "worker"));
	put(&c, CACHE_PROFILES, PROFILE("b", "ran"));
	cache_end_list(&c, CACHE_PROFILES);
	cache_publish(&c);
	s = cache_writer_state(&c);
	CHECK(s->has_profiles);
	CHECK_UINT(s->n_profiles, 2);
	CHECK_STR(s->profiles[0].name, "a");
	CHECK_STR(s->profiles[0].selector, "node-role.kubernetes.io/worker=");
	put(&c, CACHE_PROFILES, PROFILE("a", "edge"));
	CHECK_STR(cache_writer_state(&c)->profiles[0].selector, "node-role.kubernetes.io/edge=");
	forget(&c, CACHE_PROFILES, PROFILE("a", "edge"));
	CHECK_UINT(cache_writer_state(&c)->n_profiles, 1);
	cache_begin_list(&c, CACHE_PROFILES);
	cache_end_list(&c, CACHE_PROFILES);
	cache_publish(&c);
	CHECK_UINT(cache_writer_state(&c)->n_profiles, 0);
	CHECK(cache_writer_state(&c)->has_profiles);
	cache_done(&c);
}

TEST(a_feature_gate_adds_to_the_flags)
{
	static const struct {
		const char *spec;
		bool pools;
	} rows[] = {
		{ "{}", false },
		{ "{\"featureSet\":\"TechPreviewNoUpgrade\"}", true },
		{ "{\"featureSet\":\"\"}", false },
		{ "{\"featureSet\":\"DevPreviewNoUpgrade\"}", true },
		{ "{\"featureSet\":\"CustomNoUpgrade\"}", false },
		{ "{\"customNoUpgrade\":{\"enabled\":[\"Other\"]}}", false },
		{ "{\"customNoUpgrade\":{\"enabled\":[\"Other\",\"GuaranteedCPUPool\"]}}", true },
	};
	const struct admission_settings settings = { .legacy = true };
	struct cache c;

	cache_init(&c, &settings, 1);
	CHECK(!cache_acquire(&c, 0)->settings.pools);
	cache_release(&c, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256];

		TEST_ROW("%s", rows[i].spec);
		(void)snprintf(text, sizeof(text),
			       "{\"metadata\":{\"name\":\"cluster\"},\"spec\":%s}", rows[i].spec);
		put(&c, CACHE_FEATURE_GATES, text);
		CHECK_INT(cache_acquire(&c, 0)->settings.pools, rows[i].pools);
		cache_release(&c, 0);
	}
	CHECK(cache_acquire(&c, 0)->settings.legacy);
	cache_release(&c, 0);
	forget(&c, CACHE_FEATURE_GATES, "{\"metadata\":{\"name\":\"cluster\"}}");
	CHECK(!cache_acquire(&c, 0)->settings.pools);
	cache_release(&c, 0);
	cache_done(&c);
}

/* Readers must see one published state, never parts of two and never freed memory, which the
 * sanitizers detect. */

#define READERS 3
#define CHANGES 3000

struct race {
	struct cache cache;
	atomic_bool is_over;
	_Atomic unsigned bad, looks;
};

struct reader {
	struct race *race;
	unsigned number;
	pthread_t thread;
};

static void look(struct race *race, const struct admission_state *s, unsigned i)
{
	struct namespace_permission f;

	/* 0..9 always exist; their value ends with their number. */
	if (!find(s, i % 10, &f) || f.allowed.n != 5 || f.allowed.p[4] != (char)('0' + i % 10))
		atomic_fetch_add(&race->bad, 1);
	(void)find(s, 10 + i % 200, &f); /* these are added and removed */
	if (s->nodes.n != s->nodes.n_reporting ||
	    s->count_cores(s->owner, STR("management")).n != s->nodes.n ||
	    (s->infrastructure.is_partitioned !=
	     str_eq(s->infrastructure.partitioning, STR("AllNodes"))))
		atomic_fetch_add(&race->bad, 1);
}

static void *read_on(void *arg)
{
	struct reader *r = arg;

	for (unsigned i = r->number; !atomic_load(&r->race->is_over); i++) {
		look(r->race, cache_acquire(&r->race->cache, r->number), i);
		cache_release(&r->race->cache, r->number);
		atomic_fetch_add(&r->race->looks, 1);
	}
	return NULL;
}

static void change(struct cache *c, unsigned i)
{
	char json[128], value[16];

	(void)snprintf(value, sizeof(value), "%c%03u%u", 'a' + i % 26, i % 1000, i % 10);
	put_namespace(c, i % 10, value);
	put_namespace(c, 10 + i % 200, "management");
	(void)snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"team-%u\"}}",
		       10 + (i * 7) % 200);
	forget(c, CACHE_NAMESPACES, json);
	put(c, CACHE_NODES, NODE("n", "", CORES));
	if (i % 3 == 0)
		forget(c, CACHE_NODES, NODE("n", "", ""));
	put(c, CACHE_INFRASTRUCTURE,
	    i % 2 ? "{\"metadata\":{\"name\":\"cluster\"},\"status\":{\"cpuPartitioning\":"
		    "\"AllNodes\"}}" :
		    "{\"metadata\":{\"name\":\"cluster\"},\"status\":{\"cpuPartitioning\":"
		    "\"None\"}}");
}

TEST(readers_see_one_published_state_and_no_freed_memory)
{
	const struct admission_settings settings = { 0 };
	static struct race race;
	struct reader readers[READERS];

	cache_init(&race.cache, &settings, READERS);
	for (unsigned i = 0; i < 10; i++)
		change(&race.cache, i);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct reader){ .race = &race, .number = i };
		CHECK_INT(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
	}
	for (unsigned i = 0; i < CHANGES; i++)
		change(&race.cache, i);
	atomic_store(&race.is_over, true);
	for (unsigned i = 0; i < READERS; i++)
		(void)pthread_join(readers[i].thread, NULL);
	CHECK_UINT(atomic_load(&race.bad), 0);
	CHECK(atomic_load(&race.looks) > 0);
	grace_collect(&race.cache.grace);
	CHECK_UINT(race.cache.grace.n_retired, 0);
	cache_done(&race.cache);
	TEST_NOTE("%u looks during %u changes", atomic_load(&race.looks), CHANGES * 6);
}

TEST(an_object_needs_about_a_hundred_bytes)
{
	const struct admission_settings settings = { 0 };
	size_t before, after;
	struct cache c;

	cache_init(&c, &settings, 1);
	before = mallinfo2().uordblks;
	for (unsigned i = 0; i < 10000; i++)
		put_namespace(&c, i, "management");
	for (unsigned i = 0; i < 5000; i++) {
		char json[256];

		(void)snprintf(json, sizeof(json), NODE("worker-%u.example.com", "", CORES), i);
		put(&c, CACHE_NODES, json);
	}
	grace_collect(&c.grace);
	after = mallinfo2().uordblks;
	CHECK_UINT(cache_count(&c, CACHE_NAMESPACES) + cache_count(&c, CACHE_NODES), 15000);
	TEST_NOTE("%zu bytes an object", (after - before) / 15000);
	CHECK((after - before) / 15000 <= 120); /* sanitizers' allocators report nothing */
	cache_done(&c);
}
