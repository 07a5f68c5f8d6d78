/* Input of an OCI hook: a configuration becomes a record or an error, a written record can be read,
 * and an adjusted configuration is valid and stays the same when adjusted again. The first line is
 * the state, the rest the configuration. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "oci/oci_record.h"
#include "oci/precreate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct oci_record o;
	struct doc doc;

	if (doc_parse(text, STR("record"), NULL, a, &doc, &err) < 0)
		abort();
	if (oci_record_parse(&doc, a, &o, &err) < 0)
		return;
	if (!oci_record_id_is_valid(str_from(o.container.id)) || !*o.container.name || !*o.pod.uid)
		abort();
}

static void check_adjusting(const struct doc *config, struct arena *a)
{
	static const struct str responses[] = {
		STR_INIT("{\"exclusive\":true,\"cpus\":\"4-5\",\"quotaUs\":-1}"),
		STR_INIT("{\"cpus\":\"2\"}"),
		STR_INIT("{\"cpus\":\"0\",\"shares\":20,\"quotaUs\":5000,\"periodUs\":10000}"),
	};

	for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
		struct str text, again;
		struct doc adjusted;

		if (precreate_adjust(config, responses[i], a, &text, NULL) < 0 ||
		    doc_parse(text, STR("adjusted"), NULL, a, &adjusted, NULL) < 0 ||
		    precreate_check(&adjusted, a, NULL) < 0 ||
		    precreate_adjust(&adjusted, responses[i], a, &again, NULL) < 0 ||
		    !str_eq(text, again))
			abort();
	}
}

static void check_config(const struct doc *config, struct arena *a)
{
	const struct str id = precreate_id(config);

	if (id.n && !oci_record_id_is_valid(id))
		abort();
	(void)precreate_cgroup(config, a);
	if (precreate_check(config, a, NULL) == 0)
		check_adjusting(config, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str_split split = str_split((struct str){ (const char *)data, size });
	CLEANUP(arena_done) struct arena a;
	struct oci_record_source given = { .cgroup = "/a/b" };
	struct doc state, config;
	struct str first, record;
	struct oci_record o;

	arena_init(&a, 0);
	(void)oci_record_cgroup(split.rest);
	if (!str_next(&split, '\n', &first))
		return 0;
	if (doc_parse(first, STR("state"), NULL, &a, &state, NULL) < 0)
		return 0;
	(void)oci_record_parse(&state, &a, &o, NULL);
	if (split.ended || doc_parse(split.rest, STR("config"), NULL, &a, &config, NULL) < 0)
		return 0;
	check_config(&config, &a);
	given.id = doc_str(doc_get(state.root, STR("id")));
	if (oci_record_build(&config, &given, &a, &record, NULL) == 0)
		check_record(record, &a);
	return 0;
}
