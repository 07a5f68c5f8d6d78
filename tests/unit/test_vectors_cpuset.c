/* tests/vectors/cpuset.json: what Kubernetes' own CPU lists do, row by row. */

#include <errno.h>

#include "base/macro.h"
#include "cpu/cpuset.h"
#include "vectors.h"

static struct cpuset set(yyjson_val *list)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK(yyjson_is_str(list));
	CHECK_OK(cpuset_parse(doc_str(list), &s, &err));
	return s;
}

static struct cpuset set_of(yyjson_val *cpus)
{
	struct cpuset s = { 0 };
	yyjson_val *cpu;
	int64_t n;

	DOC_EACH_ITEM (cpus, cpu) {
		CHECK(doc_int(cpu, &n));
		cpuset_add(&s, (unsigned)n);
	}
	return s;
}

static void name_row(yyjson_val *row)
{
	TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("id")))));
}

static void check_valid(yyjson_val *row, struct arena *a)
{
	yyjson_val *expect = doc_get(row, STR("expect")), *cpus = doc_get(expect, STR("cpus"));
	struct str in = doc_str(doc_get(row, STR("in")));
	bool is_signed = str_has(in, STR("+"));
	struct err err = { 0 };
	struct cpuset s, listed;
	int64_t size;

	CHECK_OK(cpuset_parse_lenient(in, &s, &err));
	CHECK_STR(cpuset_format(&s, a), doc_str(doc_get(expect, STR("canonical"))));
	CHECK(doc_int(doc_get(expect, STR("size")), &size));
	CHECK_INT(cpuset_count(&s), size);
	if (cpus) {
		listed = set_of(cpus);
		CHECK(cpuset_eq(&s, &listed));
	}
	/* The one place where we are stricter: signs in what people write. */
	CHECK_INT(cpuset_parse(in, &s, &err), is_signed ? -EINVAL : 0);
}

TEST(every_list_parses_or_fails_as_in_kubernetes)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = doc_get(vectors_load("vectors/cpuset.json", &a), STR("parse"));
	DOC_EACH_ITEM (rows, row) {
		struct str in = doc_str(doc_get(row, STR("in")));
		struct cpuset s;

		name_row(row);
		n++;
		if (doc_find(row, "/expect/invalid")) {
			CHECK(cpuset_parse(in, &s, NULL) < 0);
			CHECK(cpuset_parse_lenient(in, &s, NULL) < 0);
		} else {
			check_valid(row, &a);
		}
	}
	vectors_count("parse", n, 47);
}

TEST(every_set_prints_as_in_kubernetes)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = doc_get(vectors_load("vectors/cpuset.json", &a), STR("format"));
	DOC_EACH_ITEM (rows, row) {
		struct cpuset s = set_of(doc_get(row, STR("cpus")));

		name_row(row);
		n++;
		CHECK_STR(cpuset_format(&s, &a), doc_str(doc_get(row, STR("expect"))));
	}
	vectors_count("format", n, 9);
}

static void check_result(yyjson_val *row, const struct cpuset *got)
{
	struct cpuset want = set(doc_get(row, STR("expect")));

	CHECK(cpuset_eq(got, &want));
}

static void check_union(yyjson_val *row, struct cpuset a)
{
	yyjson_val *others = doc_get(row, STR("others")), *list;

	DOC_EACH_ITEM (others, list) {
		struct cpuset other = set(list);

		cpuset_union(&a, &other);
	}
	check_result(row, &a);
}

static void check_intersection(yyjson_val *row, struct cpuset a)
{
	struct cpuset b = set(doc_get(row, STR("b"))), common = a;

	cpuset_intersect(&common, &b);
	check_result(row, &common);
	CHECK(cpuset_intersects(&a, &b) == !cpuset_is_empty(&common));
}

static void check_difference(yyjson_val *row, struct cpuset a)
{
	struct cpuset b = set(doc_get(row, STR("b")));

	cpuset_minus(&a, &b);
	check_result(row, &a);
}

static void check_subset(yyjson_val *row, struct cpuset a)
{
	struct cpuset b = set(doc_get(row, STR("b")));

	CHECK(cpuset_is_subset(&a, &b) == yyjson_is_true(doc_get(row, STR("expect"))));
}

static void check_equal(yyjson_val *row, struct cpuset a)
{
	struct cpuset b = set(doc_get(row, STR("b")));

	CHECK(cpuset_eq(&a, &b) == yyjson_is_true(doc_get(row, STR("expect"))));
}

static void check_contains(yyjson_val *row, struct cpuset a)
{
	struct cpuset yes = set_of(doc_get(row, STR("yes")));
	struct cpuset no = set_of(doc_get(row, STR("no")));

	CPUSET_FOREACH (cpu, &yes)
		CHECK(cpuset_has(&a, cpu));
	CPUSET_FOREACH (cpu, &no)
		CHECK(!cpuset_has(&a, cpu));
}

static void check_size(yyjson_val *row, struct cpuset a)
{
	int64_t size;

	CHECK(doc_int(doc_get(row, STR("expect")), &size));
	CHECK_INT(cpuset_count(&a), size);
}

static const struct {
	struct str op;
	void (*check)(yyjson_val *row, struct cpuset a);
} ops[] = {
	{ STR_INIT("union"), check_union },
	{ STR_INIT("intersection"), check_intersection },
	{ STR_INIT("difference"), check_difference },
	{ STR_INIT("subset"), check_subset },
	{ STR_INIT("equal"), check_equal },
	{ STR_INIT("contains"), check_contains },
	{ STR_INIT("size"), check_size },
};

TEST(every_set_operation_gives_the_result_of_kubernetes)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0, checked = 0;

	arena_init(&a, 0);
	rows = doc_get(vectors_load("vectors/cpuset.json", &a), STR("ops"));
	DOC_EACH_ITEM (rows, row) {
		struct str op = doc_str(doc_get(row, STR("op")));

		name_row(row);
		n++;
		for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
			if (!str_eq(op, ops[i].op))
				continue;
			ops[i].check(row, set(doc_get(row, STR("a"))));
			checked++;
		}
		CHECK_UINT(checked, n); /* no row with an operation we do not know */
	}
	vectors_count("operation", n, 42);
}

TEST(every_kernel_text_reads_as_its_list)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = doc_get(vectors_load("vectors/cpuset.json", &a), STR("kernel_input"));
	DOC_EACH_ITEM (rows, row) {
		struct cpuset want = set(doc_get(row, STR("cpus"))), s;

		n++;
		CHECK_OK(cpuset_parse_kernel(doc_str(doc_get(row, STR("raw"))), &s, &err));
		CHECK(cpuset_eq(&s, &want));
	}
	vectors_count("kernel text", n, 2);
}
