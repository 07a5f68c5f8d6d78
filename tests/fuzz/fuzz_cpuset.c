/* CPU lists and expressions: never a crash, and what is accepted reads back as itself. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "cpu/cpuset_expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int (*const parsers[])(struct str text, struct cpuset *ret, struct err *err) = {
	cpuset_parse,
	cpuset_parse_lenient,
	cpuset_parse_kernel,
	cpuset_expr_eval,
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_round_trip(const struct cpuset *s)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset back;

	arena_init(&a, 0);
	require(cpuset_parse(cpuset_format(s, &a), &back, NULL) == 0 && cpuset_eq(s, &back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };

	for (size_t i = 0; i < ARRAY_LEN(parsers); i++) {
		struct cpuset s = { { 42 } };
		struct err err = { 0 };
		int r = parsers[i](text, &s, &err);

		if (r == 0)
			check_round_trip(&s);
		else
			require(r < 0 && err.code == -r && err.msg[0] && s.w[0] == 42);
		require(!strchr(err.msg, '\n')); /* errors are one line */
	}
	return 0;
}
