/* The kubelet's checkpoint: what else its reader accepts and refuses. Checksums are in
 * test_vectors_checkpoint, the checks at start in test_vectors_ledger. */

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "pool/checkpoint.h"
#include "test.h"

TEST(a_checkpoint_is_read_as_the_kubelet_reads_it)
{
	static const struct {
		const char *text;
		int version;
		const char *policy, *default_cpus;
		const char *error;
	} rows[] = {
		/* A checksum of 0 is not verified; keys come in any case, unknown ones are passed
		   over. */
		{ "{\"policyName\":\"none\",\"defaultCpuSet\":\"\",\"checksum\":0}", 2, "none", "",
		  NULL },
		{ "{\"POLICYNAME\":\"static\",\"defaultCPUSet\":\"+0-3\",\"new\":{}}", 2, "static",
		  "0-3", NULL },
		{ "{\"policyName\":\"static\",\"defaultCpuSet\":\"0\",\"entries\":{\"id1\":\"2\"}}",
		  1, "static", "0", NULL },
		{ "{\"policyName\":\"static\",\"defaultCpuSet\":\"0\",\"entries\":null}", 2,
		  "static", "0", NULL },
		{ "{\"policyName\":\"static\",\"checksum\":7}", 0, NULL, NULL,
		  "f: checkpoint is corrupted" },
		{ "{\"data\":\"{}\",\"dataChecksum\":7}", 0, NULL, NULL,
		  "f: could not load v4 checkpoint: checkpoint is corrupted" },
		{ "{\"dataChecksum\":7}", 0, NULL, NULL,
		  "f: could not load v4 checkpoint: checkpoint is corrupted" },
		{ "[]", 0, NULL, NULL, "f:1:1: expected an object, found a list" },
		{ "{\"entries\":{\"p\":{\"c\":\"x\"}}}", 0, NULL, NULL,
		  "f: could not parse cpuset \"x\" for container \"c\" in pod \"p\": " },
		{ "{\"defaultCpuSet\":\"x\"}", 0, NULL, NULL,
		  "f: could not parse default CPU set \"x\": " },
		{ "{\"entries\":{\"p\":7}}", 0, NULL, NULL,
		  "f: expected an object, found a number" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct checkpoint c = { 0 };
		struct err err = { 0 };
		int r = checkpoint_decode(str_from(rows[i].text), STR("f"), &a, &c, &err);

		TEST_ROW("row %zu: %s", i, err.msg);
		if (rows[i].error) {
			CHECK(r < 0);
			CHECK(str_starts(str_from(err.msg), str_from(rows[i].error)));
			continue;
		}
		CHECK_OK(r);
		CHECK_INT(c.version, rows[i].version);
		CHECK(!c.verified);
		CHECK_STR(c.policy, rows[i].policy);
		CHECK_STR(cpuset_format(&c.default_cpus, &a), rows[i].default_cpus);
	}
}

TEST(null_and_missing_maps_are_hashed_differently)
{
	CLEANUP(arena_done) struct arena a;
	struct str missing, null;
	struct err err = { 0 };
	struct doc doc;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(STR("{}"), STR(""), NULL, &a, &doc, &err));
	CHECK_OK(checkpoint_hash_input(doc.root, CHECKPOINT_V2, &a, &missing, &err));
	CHECK_OK(doc_parse(STR("{\"entries\":null}"), STR(""), NULL, &a, &doc, &err));
	CHECK_OK(checkpoint_hash_input(doc.root, CHECKPOINT_V2, &a, &null, &err));
	CHECK(str_has(missing, STR("string)map[] Checksum")));
	CHECK(str_has(null, STR("string)<nil> Checksum")));
}

TEST(a_default_set_may_be_missing_only_when_nothing_is_assigned)
{
	struct checkpoint_entry entry = { STR("p"), STR("c"), { { 1 } } };
	struct checkpoint empty = { 0 }, held = { .entries = &entry, .n_entries = 1 };
	struct checkpoint_machine machine = { .cpus = { { 0xff } }, .reserved = { { 3 } } };
	struct err err = { 0 };
	struct cpuset got;

	CHECK_OK(checkpoint_check(&empty, &machine, &got, &err));
	CHECK_UINT(got.w[0], 0xff);
	machine.strict = true;
	CHECK_OK(checkpoint_check(&empty, &machine, &got, &err));
	CHECK_UINT(got.w[0], 0xfc);
	CHECK_ERR(checkpoint_check(&held, &machine, &got, &err), EINVAL,
		  "default cpuset cannot be empty");
}
