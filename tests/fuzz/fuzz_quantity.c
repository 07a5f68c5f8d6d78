/* Quantities: no crash, and what is accepted is printed as text of the same value. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/quantity.h"
#include "kube/shares.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_text(const struct quantity *q, struct arena *a)
{
	struct quantity back;

	require(quantity_parse(quantity_format(q, a), &back, NULL) == 0);
	require(quantity_cmp(q, &back) == 0);
}

static void check_cores(const struct quantity *q, struct arena *a)
{
	struct quantity cores;
	uint64_t shares;
	int64_t milli;

	if (quantity_milli(q, &milli, NULL) < 0)
		return;
	cores = quantity_from_int(milli, q->format);
	require(quantity_value(&cores) == milli);
	check_text(&cores, a);
	shares = cpu_shares_from_milli(milli);
	require(shares >= CPU_SHARES_MIN && shares <= CPU_SHARES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct quantity q = { .nano = 42 }, rounded, plain;
	struct err err = { 0 };
	int r;

	arena_init(&a, 0);
	r = quantity_parse((struct str){ (const char *)data, size }, &q, &err);
	if (r < 0) {
		require(err.code == -r && err.msg[0] && q.nano == 42);
		return 0;
	}
	check_text(&q, &a);
	plain = q;
	plain.text = STR("");
	check_text(&plain, &a);
	rounded = quantity_round_up_milli(&q);
	check_text(&rounded, &a);
	check_cores(&q, &a);
	return 0;
}
