/* The state file: what is written reads back, and no damaged byte gets through. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "cpus.h"
#include "pool/ledger_state.h"
#include "test.h"

static struct str sample(struct arena *a)
{
	struct assignment *entries = arena_array(a, struct assignment, 2);
	struct assignment *order[] = { &entries[0], &entries[1] };
	struct ledger_state s = { .boot_id = STR("b4e6"),
				  .config_hash = 1,
				  .topology_hash = UINT64_MAX,
				  .entries = order,
				  .n_entries = 2 };
	struct pool_config config;
	struct err err = { 0 };
	struct str text;

	pool_config_init(&config);
	config.reserved = cpus("0-1");
	config.shared = cpus("2-3");
	config.guaranteed = cpus("4-7");
	s.config = &config;
	entries[0] = (struct assignment){ .pod_uid = STR("p1"),
					  .pod_namespace = STR("ns"),
					  .pod_name = STR("web"),
					  .container = STR("app"),
					  .kind = CONTAINER_APP,
					  .cpus = cpus("4-5") };
	entries[1] = entries[0];
	entries[1].container = STR("in\"it");
	entries[1].kind = CONTAINER_INIT;
	entries[1].cpus = cpus("4");
	CHECK_OK(ledger_state_encode(&s, a, &text, &err));
	return text;
}

TEST(a_state_reads_back_as_it_was_written)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct ledger_state s;

	arena_init(&a, 0);
	CHECK_OK(ledger_state_decode(sample(&a), STR("state"), &a, &s, &err));
	CHECK_STR(s.boot_id, "b4e6");
	CHECK_UINT(s.config_hash, 1);
	CHECK_UINT(s.topology_hash, UINT64_MAX);
	CHECK_STR(cpuset_format(&s.config->guaranteed, &a), "4-7");
	CHECK_UINT(s.n_entries, 2);
	CHECK_STR(s.entries[1]->container, "in\"it");
	CHECK(s.entries[1]->kind == CONTAINER_INIT);
	CHECK_STR(s.entries[0]->pod_namespace, "ns");
	CHECK_STR(s.entries[0]->pod_name, "web");
	CHECK_STR(cpuset_format(&s.entries[0]->cpus, &a), "4-5");
}

TEST(the_format_of_the_state_file_is_stable)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK_STR(sample(&a),
		  "{\"version\":1,\"checksum\":\"xxh64:4f7785aabdb13014\",\"bootId\":\"b4e6\","
		  "\"configHash\":\"0000000000000001\",\"topologyHash\":\"ffffffffffffffff\","
		  "\"config\":{\"mode\":\"pools\",\"reserved\":\"0-1\",\"shared\":\"2-3\","
		  "\"guaranteed\":\"4-7\",\"options\":{\"full-pcpus-only\":false,"
		  "\"distribute-cpus-across-numa\":false,\"align-by-socket\":false,"
		  "\"distribute-cpus-across-cores\":false,\"strict-cpu-reservation\":true,"
		  "\"prefer-align-cpus-by-uncorecache\":false,\"fold-rest\":false}},"
		  "\"assignments\":[{\"pod\":\"p1\",\"namespace\":\"ns\",\"name\":\"web\","
		  "\"container\":\"app\",\"kind\":\"app\",\"cpus\":\"4-5\"},{\"pod\":\"p1\","
		  "\"namespace\":\"ns\",\"name\":\"web\",\"container\":\"in\\\"it\","
		  "\"kind\":\"init\",\"cpus\":\"4\"}]}");
}

TEST(a_file_truncated_at_any_byte_is_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	text = sample(&a);
	for (size_t n = 0; n < text.n; n++) {
		struct err err = { 0 };
		struct ledger_state s;

		TEST_ROW("%zu bytes", n);
		CHECK(ledger_state_decode((struct str){ text.p, n }, STR("state"), &a, &s, &err) <
		      0);
		CHECK(str_starts(str_from(err.msg), STR("state: ")));
	}
}

TEST(a_file_with_any_bit_flipped_is_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	char *copy;

	arena_init(&a, 0);
	text = sample(&a);
	copy = arena_alloc(&a, text.n, 1);
	memcpy(copy, text.p, text.n);
	for (size_t bit = 0; bit < text.n * 8; bit++) {
		struct err err = { 0 };
		struct ledger_state s;

		TEST_ROW("bit %zu", bit);
		copy[bit / 8] ^= (char)(1 << bit % 8);
		CHECK(ledger_state_decode((struct str){ copy, text.n }, STR("state"), &a, &s,
					  &err) < 0);
		copy[bit / 8] ^= (char)(1 << bit % 8);
	}
}

/* A body with a valid checksum, as after a careful edit of the file. */
static struct str with_checksum(const char *body, struct arena *a)
{
	struct str b = str_from(body);

	return str_printf(a, "{\"version\":1,\"checksum\":\"xxh64:%016" PRIx64 "\",%s", xxh64(b, 0),
			  body);
}

#define CONFIG                                                                                     \
	"\"config\":{\"mode\":\"pools\",\"reserved\":\"0\",\"shared\":\"1\",\"guaranteed\":\"2-"   \
	"3\"}"
#define HASHES                                                                                     \
	"\"bootId\":\"b\",\"configHash\":\"0000000000000001\",\"topologyHash\":"                   \
	"\"0000000000000002\","
#define ENTRY(pod, kind, list)                                                                     \
	"{\"pod\":\"" pod                                                                          \
	"\",\"namespace\":\"\",\"name\":\"\",\"container\":\"c\",\"kind\":\"" kind                 \
	"\",\"cpus\":\"" list "\"}"

TEST(invalid_content_is_refused_with_its_position)
{
	static const struct {
		const char *body, *error;
	} rows[] = {
		{ HASHES CONFIG ",\"assignments\":[]}", NULL },
		{ HASHES CONFIG ",\"assignments\":[" ENTRY("p", "app", "2") "]}", NULL },
		{ HASHES CONFIG "}", "assignments: expected an array, found nothing" },
		{ HASHES "\"assignments\":[]}", "config: expected an object, found nothing" },
		{ "\"bootId\":7}", "bootId: expected a string, found a number" },
		{ "\"bootId\":\"b\",\"configHash\":\"1\"}",
		  "configHash: expected 16 hexadecimal digits" },
		{ HASHES CONFIG ",\"assignments\":[" ENTRY("p", "app", "2-") "]}", "cpus: " },
		{ HASHES CONFIG ",\"assignments\":[" ENTRY("p", "sandbox", "2") "]}",
		  "unknown kind \"sandbox\"" },
		{ HASHES CONFIG
		  ",\"assignments\":[" ENTRY("p", "app", "2") "," ENTRY("p", "app", "3") "]}",
		  "assignments: not sorted, or a duplicate" },
		{ HASHES CONFIG ",\"assignments\":[7]}", "pod: expected a string, found nothing" },
		{ "\"bootId\":\"b\",\"bootId\":\"c\"}", "bootId" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str text = with_checksum(rows[i].body, &a);
		struct err err = { 0 };
		struct ledger_state s;
		int r = ledger_state_decode(text, STR("state"), &a, &s, &err);

		TEST_ROW("row %zu: %s", i, err.msg);
		CHECK((r < 0) == (rows[i].error != NULL));
		CHECK(!rows[i].error || str_has(str_from(err.msg), str_from(rows[i].error)));
		CHECK(!rows[i].error || str_starts(str_from(err.msg), STR("state:1:")));
	}
}

TEST(an_unknown_version_and_damage_have_different_errors)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct ledger_state s;

	arena_init(&a, 0);
	CHECK_ERR(ledger_state_decode(STR("{\"version\":2,\"x\":1}"), STR("state"), &a, &s, &err),
		  EPROTO, "state: version 2 is not supported, expected version 1");
	CHECK_ERR(ledger_state_decode(STR("{}"), STR("state"), &a, &s, &err), EUCLEAN,
		  "state: not a state file");
}
