#pragma once

/* The topologies of tests/vectors/cpu-assignment.json, by name. */

#include "cpu/topology.h"
#include "vectors.h"

static inline uint32_t topologies_number(yyjson_val *cpu, struct str key)
{
	int64_t n = -1;

	CHECK(doc_int(doc_get(cpu, key), &n) && n >= 0);
	return (uint32_t)n;
}

/* From [{"cpu","core","socket","numa","uncore"}...]. */
static inline void topologies_build(yyjson_val *list, struct arena *a, struct topology *ret)
{
	struct topology_cpu *cpus = arena_array(a, struct topology_cpu, yyjson_arr_size(list) + 1);
	struct topology_input in = { .cpus = cpus };
	struct err err = { 0 };
	yyjson_val *v;

	DOC_EACH_ITEM (list, v)
		cpus[in.n_cpus++] = (struct topology_cpu){
			.cpu = (uint16_t)topologies_number(v, STR("cpu")),
			.id = {
				[TOPOLOGY_CORE] = topologies_number(v, STR("core")),
				[TOPOLOGY_DIE] = TOPOLOGY_NO_ID,
				[TOPOLOGY_SOCKET] = topologies_number(v, STR("socket")),
				[TOPOLOGY_NUMA] = topologies_number(v, STR("numa")),
				[TOPOLOGY_UNCORE] = topologies_number(v, STR("uncore")),
			},
		};
	CHECK_OK(topology_build(&in, a, ret, &err));
}

static inline void topologies_load(yyjson_val *root, struct str name, struct arena *a,
				   struct topology *ret)
{
	yyjson_val *v = doc_get(doc_get(root, STR("topologies")), name);

	CHECK(v != NULL);
	topologies_build(doc_get(v, STR("cpus")), a, ret);
}
