#pragma once

/* How busy each CPU of this machine is, from two readings of /proc/stat. Pure. */

#include <stdint.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;

struct cpu_use {
	uint64_t busy[CPUSET_MAX], total[CPUSET_MAX]; /* of the last reading; 0: no such CPU */
	bool has_reading;
};

/* Reads /proc/stat and returns {"0":12,"1":100}, percent since the last reading; "" the first time.
 */
struct str cpu_use_read(struct cpu_use *u, struct str stat, struct arena *a);
