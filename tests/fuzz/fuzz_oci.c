/* What a runtime hands to an OCI hook: a configuration becomes a record or an error, and a record
 * that was written can be read. The first line is the state, the rest the configuration. */

#include <stdlib.h>
#include <string.h>

#include "agent/outside.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct outside o;
	struct doc doc;

	if (doc_parse(text, STR("record"), NULL, a, &doc, &err) < 0)
		abort();
	if (outside_parse(&doc, a, &o, &err) < 0)
		return;
	if (!outside_id_is_valid(str_from(o.container.id)) || !*o.container.name || !*o.pod.uid)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str_split split = str_split((struct str){ (const char *)data, size });
	CLEANUP(arena_done) struct arena a;
	struct doc state, config;
	struct str first, record;
	struct outside o;

	arena_init(&a, 0);
	(void)outside_cgroup(split.rest);
	if (!str_next(&split, '\n', &first))
		return 0;
	if (doc_parse(first, STR("state"), NULL, &a, &state, NULL) < 0)
		return 0;
	(void)outside_parse(&state, &a, &o, NULL);
	if (split.ended || doc_parse(split.rest, STR("config"), NULL, &a, &config, NULL) < 0)
		return 0;
	if (outside_describe(&state, &config, "/a/b", &a, &record, NULL) == 0)
		check_record(record, &a);
	return 0;
}
