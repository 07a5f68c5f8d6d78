/* Every row of crio-workload.json: CRI-O's own configuration and annotations, and what a container
 * gets from them. */

#include <string.h>

#include "base/macro.h"
#include "nri/nri.h"
#include "pin/workload.h"
#include "vectors.h"

static struct nri_cpu cpu_of(yyjson_val *v, struct arena *a)
{
	struct nri_cpu cpu = { .cpus = str_cstr(a, doc_str(doc_get(v, STR("cpus")))) };
	int64_t n;

	cpu.has_shares = doc_int(doc_get(v, STR("shares")), &n);
	cpu.shares = cpu.has_shares ? (uint64_t)n : 0;
	cpu.has_quota = doc_int(doc_get(v, STR("quota")), &n);
	cpu.quota_us = cpu.has_quota ? n : 0;
	cpu.has_period = doc_int(doc_get(v, STR("period")), &n);
	cpu.period_us = cpu.has_period ? (uint64_t)n : 0;
	return cpu;
}

static size_t annotations_of(yyjson_val *object, struct nri_pair *ret, size_t max, struct arena *a)
{
	yyjson_val *key, *value;
	size_t n = 0;

	DOC_EACH_PAIR (object, key, value) {
		CHECK(n < max);
		ret[n++] =
			(struct nri_pair){ str_cstr(a, doc_str(key)), str_cstr(a, doc_str(value)) };
	}
	return n;
}

static int config_of(yyjson_val *v, struct arena *a, struct workloads *ret, struct err *err)
{
	struct str texts[8], names[8];
	yyjson_val *item;
	size_t n = 0;

	if (yyjson_is_str(v)) {
		texts[0] = doc_str(v);
		names[n++] = STR("crio.conf");
	} else {
		DOC_EACH_ITEM (v, item) {
			CHECK(n < ARRAY_LEN(texts));
			texts[n] = doc_str(item);
			names[n++] = STR("drop-in");
		}
	}
	return workloads_parse(texts, names, n, false, a, ret, err);
}

/* Overwrites what the kubelet requested with what is set, as CRI-O does. */
static void apply(const struct workload_cpu *cpu, struct arena *a, struct nri_cpu *target)
{
	if (cpu->cpus.n > 0)
		target->cpus = str_cstr(a, cpu->cpus);
	if (cpu->shares != 0) {
		target->has_shares = true;
		target->shares = cpu->shares;
	}
	if (cpu->quota_us != 0) {
		target->has_quota = true;
		target->quota_us = cpu->quota_us;
	}
	if (cpu->period_us != 0) {
		target->has_period = true;
		target->period_us = cpu->period_us;
	}
}

/* "parse", "validate", "mutate" or "": where it failed. */
static const char *run(yyjson_val *row, struct arena *a, struct nri_cpu *cpu, struct err *err)
{
	struct nri_pair annotations[16];
	const char *container = str_cstr(a, doc_str(doc_get(row, STR("containerName"))));
	const struct workload *w;
	struct workloads workloads;
	struct workload_cpu got;
	size_t n;
	int r;

	r = config_of(doc_get(row, STR("config")), a, &workloads, err);
	if (r < 0)
		return err->code == 33 /* EDOM */ ? "validate" : "parse";
	n = annotations_of(doc_get(row, STR("podAnnotations")), annotations, ARRAY_LEN(annotations),
			   a);
	w = workloads_match(&workloads, annotations, n);
	if (!w)
		return "";
	if (workload_resolve(w, container, annotations, n, a, &got, err) < 0)
		return "mutate";
	apply(&got, a, cpu);
	return "";
}

/* CRI-O's own words, where they are about values and not about Go. */
static void check_words(yyjson_val *error, const struct err *err)
{
	const struct str words = doc_str(doc_get(error, STR("crioMessage")));

	if (str_has(words, STR("cannot be less than")) || str_has(words, STR("shouldn't be empty")))
		CHECK_STR(err->msg, words);
}

static void check_row(yyjson_val *row, struct arena *a)
{
	struct nri_cpu got = cpu_of(doc_get(row, STR("inputLinuxCpu")), a);
	yyjson_val *expect = doc_get(row, STR("expect"));
	yyjson_val *error = doc_get(expect, STR("error"));
	const struct nri_cpu want = cpu_of(doc_get(expect, STR("linuxCpu")), a);
	struct err err = { 0 };

	CHECK_STR(run(row, a, &got, &err), doc_str(doc_get(error, STR("stage"))));
	if (error) {
		CHECK(err.msg[0]);
		check_words(error, &err);
		return;
	}
	CHECK_STR(got.cpus, want.cpus);
	CHECK_INT(got.has_shares, want.has_shares);
	CHECK_UINT(got.shares, want.shares);
	CHECK_INT(got.has_quota, want.has_quota);
	CHECK_INT(got.quota_us, want.quota_us);
	CHECK_INT(got.has_period, want.has_period);
	CHECK_UINT(got.period_us, want.period_us);
}

TEST(containers_get_the_settings_of_crio)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *row;
	size_t n = 0;

	arena_init(&a, 0);
	DOC_EACH_ITEM (vectors_load("vectors/crio-workload.json", &a), row) {
		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("name")))));
		check_row(row, &a);
		n++;
	}
	vectors_count("crio-workload", n, 103);
}
