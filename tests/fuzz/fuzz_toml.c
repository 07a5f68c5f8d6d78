/* TOML, and CRI-O's configuration in it: never a crash, and a refusal has a sentence. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/toml_read.h"
#include "nri/nri.h"
#include "pin/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	const struct str text = { (const char *)data, size }, name = STR("f");
	const struct nri_pair annotations[] = { { "target.workload.openshift.io/management", "" },
						{ "resources.workload.openshift.io/c",
						  "{\"cpulimit\":54321}" } };
	struct workloads workloads;
	struct workload_cpu cpu;
	struct err err = { 0 };
	int r;

	arena_init(&a, (size_t)64 << 20);
	r = workloads_parse(&text, &name, 1, true, &a, &workloads, &err);
	if (r < 0) {
		if (err.code != -r || !err.msg[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < workloads.n; i++)
		if (workload_resolve(&workloads.items[i], "c", annotations, 2, &a, &cpu, &err) ==
			    0 &&
		    cpu.limit_milli == 54321 && cpu.quota_us == 0) /* a default stays a limit */
			abort();
	return 0;
}
