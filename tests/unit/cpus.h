#pragma once

/* Parses a CPU list in one call. */

#include "base/err.h"
#include "cpu/cpuset.h"
#include "test.h"

static inline struct cpuset cpus(const char *list)
{
	struct err err = { 0 };
	struct cpuset s = { 0 };

	CHECK_OK(cpuset_parse(str_from(list), &s, &err));
	return s;
}
