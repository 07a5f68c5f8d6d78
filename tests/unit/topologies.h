#pragma once

/* The machines of tests/vectors/cpu-assignment.json by name. */

#include "cpu/cpuset.h"
#include "cpu/topology.h"
#include "cpu/topology_read.h"
#include "vectors.h"

static inline void topologies_get(yyjson_val *file, struct str name, struct arena *a,
				  struct topology *ret)
{
	struct doc doc = { .root = doc_get(doc_get(file, STR("topologies")), name) };
	struct err err = { 0 };

	CHECK(doc.root);
	CHECK_OK(topology_from_doc(&doc, a, ret, &err));
}

static inline struct cpuset cpus_of(yyjson_val *row, struct str key)
{
	struct err err = { 0 };
	struct cpuset s = { 0 };

	CHECK_OK(cpuset_parse(doc_str(doc_get(row, key)), &s, &err));
	return s;
}

static inline unsigned uint_of(yyjson_val *row, struct str key, unsigned otherwise)
{
	int64_t n;

	return doc_int(doc_get(row, key), &n) ? (unsigned)n : otherwise;
}
