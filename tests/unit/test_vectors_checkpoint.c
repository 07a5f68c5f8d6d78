/* tests/vectors/cpu-checkpoint.json: the kubelet's checksums, pod fingerprints, and the hashes both
 * are made of. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macro.h"
#include "podres/fingerprint.h"
#include "pool/checkpoint.h"
#include "vectors.h"

static struct str text_of(yyjson_val *row, const char *key)
{
	return doc_str(doc_get(row, str_from(key)));
}

static int64_t number_of(yyjson_val *row, const char *key)
{
	int64_t n = -1;

	CHECK(doc_int(doc_get(row, str_from(key)), &n));
	return n;
}

static const struct {
	const char *name;
	enum checkpoint_form form;
	int version;
} formats[] = {
	{ "v1", CHECKPOINT_V1, 1 },
	{ "v2", CHECKPOINT_V2, 2 },
	{ "v2 (type name V2)", CHECKPOINT_V2_NAMED, 2 },
	{ "v3", CHECKPOINT_V3, 3 },
	{ "v3 (type name V3)", CHECKPOINT_V3_NAMED, 3 },
};

/* The file a row stands for; in a file, a pod's set is {"cpuSet":"4-6"}. */
static struct str file_of(yyjson_val *row, int64_t checksum, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *v = yyjson_mut_obj(m), *pods;
	yyjson_val *pod, *list;
	struct err err = { 0 };
	struct str text;

	doc_put_str(m, v, STR("policyName"), text_of(row, "policyName"));
	doc_put_str(m, v, STR("defaultCpuSet"), text_of(row, "defaultCpuSet"));
	doc_put(m, v, STR("entries"), yyjson_val_mut_copy(m, doc_get(row, STR("entries"))));
	if (doc_get(row, STR("podEntries"))) {
		pods = doc_put_obj(m, v, STR("podEntries"));
		DOC_EACH_PAIR (doc_get(row, STR("podEntries")), pod, list)
			doc_put_str(m, doc_put_obj(m, pods, doc_str(pod)), STR("cpuSet"),
				    doc_str(list));
	}
	doc_put_int(m, v, STR("checksum"), checksum);
	CHECK_OK(doc_write(v, false, a, &text, &err));
	return text;
}

static bool is_readable(yyjson_val *row)
{
	yyjson_val *pod, *containers, *name, *list;
	struct cpuset s;

	if (cpuset_parse(text_of(row, "defaultCpuSet"), &s, NULL) < 0)
		return false;
	DOC_EACH_PAIR (doc_get(row, STR("entries")), pod, containers)
		DOC_EACH_PAIR (containers, name, list)
			if (cpuset_parse(doc_str(list), &s, NULL) < 0)
				return false;
	return true;
}

static void check_file(yyjson_val *row, int version, struct arena *a)
{
	int64_t checksum = number_of(row, "checksum");
	struct str good = file_of(row, checksum, a), bad = file_of(row, checksum ^ 1, a);
	struct checkpoint c = { 0 };
	struct err err = { 0 };

	CHECK_ERR(checkpoint_decode(bad, STR("state"), a, &c, &err), EUCLEAN,
		  "state: checkpoint is corrupted");
	if (!is_readable(row)) {
		CHECK(checkpoint_decode(good, STR("state"), a, &c, &err) == -EINVAL);
		CHECK(str_has(str_from(err.msg), STR("could not parse")));
		return;
	}
	CHECK_OK(checkpoint_decode(good, STR("state"), a, &c, &err));
	CHECK_INT(c.version, version);
	CHECK(c.verified);
	CHECK_STR(c.policy, text_of(row, "policyName"));
	CHECK_STR(cpuset_format(&c.default_cpus, a), text_of(row, "defaultCpuSet"));
	CHECK_UINT(c.n_pod_entries, yyjson_obj_size(doc_get(row, STR("podEntries"))));
}

TEST(every_checksum_is_the_one_the_kubelet_writes)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *row;
	size_t n = 0;

	arena_init(&a, 0);
	DOC_EACH_ITEM (doc_get(vectors_load("vectors/cpu-checkpoint.json", &a), STR("checkpoint")),
		       row) {
		struct str format = text_of(row, "format"), input;
		struct err err = { 0 };
		struct doc doc;
		size_t i = 0;

		TEST_ROW(PRI_STR, FMT_STR(text_of(row, "id")));
		while (i < ARRAY_LEN(formats) && !str_eq(format, str_from(formats[i].name)))
			i++;
		CHECK(i < ARRAY_LEN(formats));
		CHECK_OK(doc_parse(file_of(row, 0, &a), STR("row"), NULL, &a, &doc, &err));
		CHECK_OK(checkpoint_hash_input(doc.root, formats[i].form, &a, &input, &err));
		CHECK_STR(input, text_of(row, "hashInput"));
		CHECK_INT(fnv1a32(FNV1A32_START, input), number_of(row, "checksum"));
		check_file(row, formats[i].version, &a);
		n++;
	}
	vectors_count("checkpoint", n, 16);
}

static struct str v4_file(yyjson_val *row, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *v = yyjson_mut_obj(m);
	struct err err = { 0 };
	struct str text;

	doc_put_str(m, v, STR("policyName"), STR("outer keys do not count"));
	doc_put_str(m, v, STR("data"), text_of(row, "data"));
	doc_put_int(m, v, STR("dataChecksum"), number_of(row, "dataChecksum"));
	CHECK_OK(doc_write(v, false, a, &text, &err));
	return text;
}

TEST(version_4_counts_the_bytes_of_its_data)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *row;
	size_t n = 0;

	arena_init(&a, 0);
	DOC_EACH_ITEM (doc_get(vectors_load("vectors/cpu-checkpoint.json", &a), STR("v4data")),
		       row) {
		struct checkpoint c = { 0 };
		struct err err = { 0 };
		struct doc inner;
		int r;

		TEST_ROW(PRI_STR, FMT_STR(text_of(row, "id")));
		CHECK_INT(checkpoint_data_checksum(text_of(row, "data")),
			  number_of(row, "dataChecksum"));
		CHECK_OK(doc_parse(text_of(row, "data"), STR("data"), NULL, &a, &inner, &err));
		r = checkpoint_decode(v4_file(row, &a), STR("state"), &a, &c, &err);
		if (r < 0) {
			CHECK(str_starts(
				str_from(err.msg),
				STR("state: could not load v4 checkpoint: could not parse")));
		} else {
			CHECK_INT(c.version, 4);
			CHECK_STR(c.policy, text_of(inner.root, "policyName"));
			CHECK_UINT(c.n_pod_entries,
				   yyjson_obj_size(doc_get(inner.root, STR("podEntries"))));
		}
		n++;
	}
	vectors_count("version 4 data", n, 8);
}

TEST(a_whole_file_of_version_4_is_read)
{
	CLEANUP(arena_done) struct arena a;
	struct checkpoint c;
	struct err err = { 0 };
	yyjson_val *row;
	size_t n = 0;

	arena_init(&a, 0);
	DOC_EACH_ITEM (doc_get(vectors_load("vectors/cpu-checkpoint.json", &a), STR("v4file")),
		       row) {
		CHECK_OK(checkpoint_decode(text_of(row, "bytes"), STR("state"), &a, &c, &err));
		CHECK_INT(c.version, 4);
		CHECK_STR(c.policy, CHECKPOINT_POLICY_STATIC);
		CHECK_STR(cpuset_format(&c.default_cpus, &a), "0-3");
		CHECK_UINT(c.n_entries, 1);
		CHECK_STR(c.entries[0].pod_uid, "pod1");
		CHECK_STR(c.entries[0].container, "c1");
		CHECK_STR(cpuset_format(&c.entries[0].cpus, &a), "4-5");
		n++;
	}
	vectors_count("version 4 file", n, 1);
}

TEST(the_hashes_have_their_published_values)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *root, *row;
	size_t n = 0;

	arena_init(&a, 0);
	root = vectors_load("vectors/cpu-checkpoint.json", &a);
	DOC_EACH_ITEM (doc_get(root, STR("fnv1a32")), row) {
		CHECK_INT(fnv1a32(FNV1A32_START, text_of(row, "in")), number_of(row, "out"));
		n++;
	}
	DOC_EACH_ITEM (doc_get(root, STR("xxh64")), row) {
		struct str seed = doc_text(doc_get(row, STR("seed")));
		uint64_t number = 0;

		TEST_ROW(PRI_STR, FMT_STR(text_of(row, "in")));
		CHECK(str_to_u64(seed, UINT64_MAX, &number));
		CHECK_STR(str_printf(&a, "%016" PRIx64, xxh64(text_of(row, "in"), number)),
			  text_of(row, "out"));
		n++;
	}
	vectors_count("hash", n, 9);
}

TEST(the_fingerprint_of_pods_does_not_depend_on_their_order)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *row;
	size_t n = 0;

	arena_init(&a, 0);
	DOC_EACH_ITEM (doc_get(vectors_load("vectors/cpu-checkpoint.json", &a),
			       STR("podFingerprint")),
		       row) {
		yyjson_val *pods = doc_get(row, STR("pods"));

		for (int backwards = 0; backwards < 2; backwards++) {
			CLEANUP(fingerprint_done) struct fingerprint f;
			size_t size = yyjson_arr_size(pods);
			char sign[FINGERPRINT_MAX];

			fingerprint_init(&f);
			for (size_t i = 0; i < size; i++) {
				yyjson_val *pod =
					yyjson_arr_get(pods, backwards ? size - 1 - i : i);

				fingerprint_add(&f, doc_str(yyjson_arr_get(pod, 0)),
						doc_str(yyjson_arr_get(pod, 1)));
			}
			fingerprint_sign(&f, sign);
			CHECK_STR((const char *)sign, text_of(row, "sign"));
		}
		n++;
	}
	vectors_count("fingerprint", n, 3);
}
