/* Events are few, whatever happens. Also: who may use the reserved CPUs, and what may be given back
 * of the memory that the kernel counts as ours. */

#include <stdio.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/trim.h"
#include "codec/doc.h"
#include "nodesync/namespace_allowlist.h"
#include "pin/event_queue.h"
#include "test.h"

static void add(struct event_queue *n, unsigned pod, const char *text)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "pod-%u", pod);
	event_queue_add(n, EVENT_CONTAINER_REFUSED,
			&(struct event_subject){ "shop", name, name, "c" }, str_from(text));
}

/* How many may be sent at this moment; each is. */
static unsigned drain(struct event_queue *n, uint64_t now_ms)
{
	const struct event *event;
	unsigned sent = 0;

	while ((event = event_queue_next(n, now_ms))) {
		event_queue_sent(n, event, event->count, now_ms);
		sent++;
	}
	return sent;
}

TEST(the_same_about_the_same_container_is_counted)
{
	struct event_queue n;
	const struct event *event;

	event_queue_init(&n);
	add(&n, 1, "first");
	add(&n, 1, "second");
	add(&n, 2, "other");
	event = event_queue_next(&n, 1000);
	CHECK(event != NULL);
	CHECK_UINT(event->count, 2);
	CHECK_STR(event->text, "second");
	CHECK_STR(event_reason(event->kind), "ContainerRefused");
	CHECK_UINT(drain(&n, 1000), 2);
	add(&n, 1, "again");
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS - 1), 0);
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS), 1);
	event_queue_done(&n);
}

TEST(what_happens_while_one_is_being_sent_is_told_later)
{
	const struct event *event;
	struct event_queue n;

	event_queue_init(&n);
	add(&n, 1, "first");
	event = event_queue_next(&n, 1000);
	add(&n, 1, "meanwhile");
	event_queue_sent(&n, event, 1, 1000);
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS), 1);
	event_queue_done(&n);
}

TEST(a_storm_leaves_slowly_and_loses_what_does_not_fit)
{
	const uint64_t start_ms = 1000000;
	struct event_queue n;

	event_queue_init(&n);
	for (unsigned i = 0; i < EVENT_QUEUE_MAX + 8; i++)
		add(&n, i, "no room");
	CHECK_UINT(n.dropped, 8);
	CHECK_UINT(drain(&n, start_ms), EVENT_QUEUE_BURST);
	CHECK_UINT(drain(&n, start_ms + EVENT_QUEUE_EVERY_MS - 1), 0);
	CHECK_UINT(drain(&n, start_ms + EVENT_QUEUE_EVERY_MS), 1);
	CHECK_UINT(drain(&n, start_ms + (uint64_t)1000 * EVENT_QUEUE_EVERY_MS), EVENT_QUEUE_BURST);
	add(&n, 1000, "room again"); /* what was sent makes room */
	CHECK_UINT(n.dropped, 8);
	event_queue_done(&n);
}

TEST(without_anybody_to_send_nothing_is_kept)
{
	event_queue_add(NULL, EVENT_RUNTIME_LOST, &(struct event_subject){ 0 }, STR("gone"));
}

/* Namespaces. */

static yyjson_val *make_namespace(const char *name, const char *annotation, const char *label,
				  struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = doc_put_obj(m, root, STR("metadata"));

	doc_put_str(m, meta, STR("name"), str_from(name));
	if (annotation)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")),
			    STR("workload.openshift.io/allowed"), str_from(annotation));
	if (label)
		doc_put_str(m, doc_put_obj(m, meta, STR("labels")),
			    STR("workload.openshift.io/allowed"), str_from(label));
	return doc_freeze(root, a);
}

TEST(a_namespace_permits_by_its_annotation)
{
	static const struct {
		const char *annotation, *label;
		bool is_legacy;
		enum permission want;
	} rows[] = {
		{ "management", NULL, false, PERMISSION_GRANTED },
		{ "other,management", NULL, false, PERMISSION_GRANTED },
		{ "other", NULL, false, PERMISSION_DENIED },
		{ "managementx", NULL, false, PERMISSION_DENIED },
		{ "", NULL, false, PERMISSION_DENIED },
		{ NULL, NULL, false, PERMISSION_DENIED },
		{ NULL, "management", false, PERMISSION_DENIED },
		{ NULL, "management", true, PERMISSION_GRANTED },
		{ "other", "management", true, PERMISSION_DENIED },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct namespace_allowlist p = { .is_legacy = rows[i].is_legacy };

		TEST_ROW("row %zu", i);
		namespace_allowlist_begin_list(&p);
		namespace_allowlist_put(&p, make_namespace("shop", rows[i].annotation,
							   rows[i].label, &a));
		CHECK_INT(namespace_allowlist_check(&p, STR("shop")), PERMISSION_UNKNOWN);
		namespace_allowlist_end_list(&p);
		CHECK_INT(namespace_allowlist_check(&p, STR("shop")), rows[i].want);
		CHECK_INT(namespace_allowlist_check(&p, STR("elsewhere")), PERMISSION_DENIED);
		namespace_allowlist_done(&p);
	}
}

TEST(permission_comes_and_goes)
{
	CLEANUP(arena_done) struct arena a;
	struct namespace_allowlist p = { 0 };
	char name[16];

	arena_init(&a, 0);
	namespace_allowlist_begin_list(&p);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "ns-%u", i * 37 % 100);
		namespace_allowlist_put(&p, make_namespace(name, i % 2 ? "management" : NULL, NULL,
							   &a));
	}
	namespace_allowlist_end_list(&p);
	CHECK_UINT(p.n, 50);
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-37")), PERMISSION_GRANTED);
	namespace_allowlist_put(&p, make_namespace("ns-37", NULL, NULL, &a)); /* withdrawn */
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-37")), PERMISSION_DENIED);
	namespace_allowlist_put(&p, make_namespace("ns-37", "management", NULL, &a));
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-37")), PERMISSION_GRANTED);
	namespace_allowlist_remove(&p,
				   make_namespace("ns-37", "management", NULL, &a)); /* deleted */
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-37")), PERMISSION_DENIED);
	namespace_allowlist_begin_list(
		&p); /* what was known counts until the new list is complete */
	namespace_allowlist_put(&p, make_namespace("ns-11", "management", NULL, &a));
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-85")), PERMISSION_GRANTED);
	namespace_allowlist_end_list(&p);
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-85")), PERMISSION_DENIED);
	CHECK_INT(namespace_allowlist_check(&p, STR("ns-11")), PERMISSION_GRANTED);
	namespace_allowlist_done(&p);
}

/* Memory. */

TEST(only_code_that_nobody_wrote_to_is_given_back)
{
	static const char smaps[] =
		"5500-5600 r--p 00000000 fd:01 77                 /usr/bin/pinfold\n"
		"Rss:                 100 kB\nAnonymous:             0 kB\n"
		"5600-5700 r-xp 00100000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             0 kB\n"
		"5700-5800 r--p 00200000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             8 kB\n" /* relocations */
		"5800-5900 rw-p 00300000 fd:01 77                 /usr/bin/pinfold\n"
		"Anonymous:             0 kB\n"
		"5900-5a00 r--s 00000000 fd:01 78                 /usr/share/shared\n"
		"Anonymous:             0 kB\n"
		"6000-7000 rw-p 00000000 00:00 0                  [heap]\n"
		"Anonymous:           500 kB\n"
		"7000-8000 r-xp 00000000 00:00 0                  [vdso]\n"
		"Anonymous:             0 kB\n";
	struct trim_mapping got[8];

	CHECK_UINT(trim_parse(str_from(smaps), got, 8), 2);
	CHECK_UINT(got[0].start, 0x5500);
	CHECK_UINT(got[1].start, 0x5600);
	CHECK_UINT(got[1].end, 0x5700);
	CHECK_UINT(trim_parse(str_from(smaps), got, 1), 1);
	CHECK_UINT(trim_parse(STR("nonsense\n5500-"), got, 8), 0);
	trim_memory(); /* and we still run */
	CHECK_UINT(trim_parse(STR(""), got, 8), 0);
}
