/* Topology expressions: never a crash, one-line errors, and only free CPUs are taken. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "profile/topology_expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Two nodes of four cores with two threads; made by hand, because hwloc is slow under a fuzzer. */
static void machine(struct arena *a, struct topology *ret)
{
	struct topology_cpu cpus[16];
	struct topology_input in = { .cpus = cpus, .n_cpus = ARRAY_LEN(cpus) };

	for (unsigned i = 0; i < ARRAY_LEN(cpus); i++)
		cpus[i] = (struct topology_cpu){
			.cpu = (uint16_t)i,
			.id = { i / 2, i / 8, i / 8, i / 8, i / 8 },
		};
	require(topology_build(&in, a, ret, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct str text = { (const char *)data, size };
	struct topology_expr e = { 0 };
	struct cpuset got = { { 42 } };
	struct err err = { 0 };
	struct topology t;
	int r;

	arena_init(&a, 0);
	machine(&a, &t);
	r = topology_expr_parse(text, &a, &e, &err);
	if (r == 0) {
		require(e.n > 0 && e.n <= TOPOLOGY_EXPR_MAX_TERMS);
		r = topology_expr_resolve(&e, &t, &t.online, &got, &err);
	}
	if (r < 0)
		require(err.code == -r && err.msg[0] && !strchr(err.msg, '\n') && got.w[0] == 42);
	return 0;
}
