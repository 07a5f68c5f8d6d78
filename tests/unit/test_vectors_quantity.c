/* tests/vectors/quantity.json: how the API server parses and prints each text, and the conversion
 * of a container that requests that amount of CPU. */

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"
#include "kube/quantity.h"
#include "kube/shares.h"
#include "vectors.h"

static const char *const format_names[] = {
	[QUANTITY_DECIMAL_SI] = "DecimalSI",
	[QUANTITY_DECIMAL_EXPONENT] = "DecimalExponent",
	[QUANTITY_BINARY_SI] = "BinarySI",
};
_Static_assert(ARRAY_LEN(format_names) == QUANTITY_FORMAT__COUNT, "every format has a name");

static struct str field(yyjson_val *row, struct str key)
{
	yyjson_val *v = doc_get(row, key);

	CHECK(yyjson_is_str(v));
	return doc_str(v);
}

static int64_t number(yyjson_val *row, struct str key)
{
	return strtoll(field(row, key).p, NULL, 10);
}

static void check_value(yyjson_val *row, struct arena *a)
{
	struct quantity q, rounded, cores;
	struct err err = { 0 };
	int64_t milli;

	CHECK_OK(quantity_parse(field(row, STR("input")), &q, &err));
	CHECK_STR(format_names[q.format], field(row, STR("format")));
	CHECK_INT(quantity_value(&q), number(row, STR("value")));
	CHECK_OK(quantity_milli(&q, &milli, &err));
	CHECK_INT(milli, number(row, STR("milliValue")));
	CHECK_STR(quantity_format(&q, a), field(row, STR("canonical")));
	rounded = quantity_round_up_milli(&q);
	CHECK_STR(quantity_format(&rounded, a), field(row, STR("afterApiDefaulting")));
	cores = quantity_from_int(milli, q.format);
	CHECK_STR(quantity_format(&cores, a), field(row, STR("workloadCores")));
	CHECK_INT((int64_t)cpu_shares_from_milli(milli), number(row, STR("cpushares")));
}

/* Refused as a quantity or as an amount of CPU (D6). */
static void check_out_of_range(yyjson_val *row)
{
	struct quantity q;
	int64_t milli = 42;
	int r;

	r = quantity_parse(field(row, STR("input")), &q, NULL);
	if (r >= 0) {
		CHECK_INT(quantity_value(&q), number(row, STR("value")));
		r = quantity_milli(&q, &milli, NULL);
	}
	CHECK_INT(r, -ERANGE);
	CHECK_INT(milli, 42);
}

TEST(every_row_is_parsed_and_printed_as_by_the_api_server)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = vectors_load("vectors/quantity.json", &a);
	DOC_EACH_ITEM (rows, row) {
		struct str input = field(row, STR("input"));
		struct str error = doc_str(doc_get(row, STR("error")));
		struct err err = { 0 };
		struct quantity q;

		TEST_ROW("\"" PRI_STR "\"", FMT_STR(input));
		n++;
		if (yyjson_is_null(doc_get(row, STR("error")))) {
			check_value(row, &a);
		} else if (str_eq(error, STR("range"))) {
			check_out_of_range(row);
		} else {
			CHECK_INT(quantity_parse(input, &q, &err), -EINVAL);
			CHECK_STR(err.msg, error);
		}
	}
	vectors_count("quantity", n, 82);
}
