/* The JSON in annotations: no crash, a message for everything that is refused, and what is
 * accepted is the same after writing and parsing it again. */

#include <stdlib.h>
#include <string.h>

#include "admission/annotation.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/stamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_effect(struct str text, struct arena *a)
{
	struct str problem = STR("");

	require(effect_check(text, a, &problem) == 0 || problem.n > 0);
}

static void check_container_cpu(struct str text, struct arena *a)
{
	struct container_cpu cpu = { 0 }, back;
	struct err err = { 0 };
	int r = container_cpu_parse(text, a, &cpu, &err);

	if (r < 0) {
		require(err.msg[0]);
		return;
	}
	require(container_cpu_parse(container_cpu_format(&cpu, a), a, &back, &err) == 0);
	require(back.shares == cpu.shares && back.limit_milli == cpu.limit_milli);
}

static void check_stamps(struct str text, struct arena *a)
{
	struct cpu_stamp *stamps, *back;
	struct err err = { 0 };
	size_t n, n_back;
	int r = stamps_parse(text, a, &stamps, &n, &err);

	if (r < 0) {
		require(err.msg[0]);
		return;
	}
	require(stamps_parse(stamps_format(stamps, n, a), a, &back, &n_back, &err) == 0);
	require(n == n_back);
	for (size_t i = 0; i < n; i++)
		require(str_eq(stamps[i].name, back[i].name) && stamps[i].kind == back[i].kind &&
			stamps[i].milli == back[i].milli && stamps[i].pool == back[i].pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct str text = { (const char *)data, size };

	arena_init(&a, 0);
	check_effect(text, &a);
	check_container_cpu(text, &a);
	check_stamps(text, &a);
	return 0;
}
