#pragma once

/* Sets of logical CPU numbers and their text forms: lists ("0-3,8"), hexadecimal masks, and the
 * kernel's masks of 32-bit words. Independent of a machine: whether a CPU exists, is online, or has
 * siblings is in topology.h. */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

#define CPUSET_MAX 8192 /* the largest CONFIG_NR_CPUS a distribution ships; 1 KiB per set */
#define CPUSET_WORDS (CPUSET_MAX / 64)
#define CPUSET_NONE CPUSET_MAX /* "no such CPU", returned by the searches below */

/* A value type: copy it, keep it on the stack. { 0 } is the empty set. */
struct cpuset {
	uint64_t w[CPUSET_WORDS];
};

static inline bool cpuset_has(const struct cpuset *s, unsigned cpu)
{
	return cpu < CPUSET_MAX && (s->w[cpu / 64] >> (cpu % 64) & 1);
}

static inline void cpuset_add(struct cpuset *s, unsigned cpu)
{
	assert(cpu < CPUSET_MAX);
	s->w[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

static inline void cpuset_del(struct cpuset *s, unsigned cpu)
{
	assert(cpu < CPUSET_MAX);
	s->w[cpu / 64] &= ~(UINT64_C(1) << (cpu % 64));
}

/* Adds first..last, both included. */
void cpuset_add_range(struct cpuset *s, unsigned first, unsigned last);

/* These change `s`, like |=, &=, &= ~ and ^= on numbers. */
void cpuset_union(struct cpuset *s, const struct cpuset *with);
void cpuset_intersect(struct cpuset *s, const struct cpuset *with);
void cpuset_minus(struct cpuset *s, const struct cpuset *without);
void cpuset_xor(struct cpuset *s, const struct cpuset *with);

bool cpuset_is_empty(const struct cpuset *s);
bool cpuset_is_subset(const struct cpuset *s, const struct cpuset *of);
bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b);
bool cpuset_eq(const struct cpuset *a, const struct cpuset *b);
unsigned cpuset_count(const struct cpuset *s);

/* The lowest CPU, the highest, and the lowest that is >= from; CPUSET_NONE when there is none. */
unsigned cpuset_first(const struct cpuset *s);
unsigned cpuset_last(const struct cpuset *s);
unsigned cpuset_next(const struct cpuset *s, unsigned from);

/* Every CPU in ascending order. The body may remove the current CPU. */
#define CPUSET_FOREACH(cpu, s)                                                                     \
	for (unsigned cpu = cpuset_first(s); cpu != CPUSET_NONE; cpu = cpuset_next(s, cpu + 1))

/* Parses a list: "0-3,8,10-11", digits only, no blanks; "" is the empty set. -EINVAL for a
 * malformed list, -ERANGE for CPUs from CPUSET_MAX on. On failure all parsers here leave *ret
 * unchanged. */
int cpuset_parse(struct str list, struct cpuset *ret, struct err *err);

/* The same, but a number may have a sign: the kubelet accepts that in its state files. */
int cpuset_parse_lenient(struct str list, struct cpuset *ret, struct err *err);

/* Parses the content of sysfs and cgroup files: a list that ends in a newline. */
int cpuset_parse_kernel(struct str text, struct cpuset *ret, struct err *err);
/* The same for a mask: hexadecimal words of 32 bits, "ff" or "3,0000000f". */
int cpuset_parse_words(struct str text, struct cpuset *ret, struct err *err);

/* The texts are in `a`. */
struct str cpuset_format(const struct cpuset *s, struct arena *a);	    /* "0-3,8" */
struct str cpuset_format_expanded(const struct cpuset *s, struct arena *a); /* "0,1,2,3,8" */
struct str cpuset_format_hex(const struct cpuset *s, struct arena *a);	    /* "10f", empty: "0" */
struct str cpuset_format_words(const struct cpuset *s, struct arena *a);    /* "0000010f" */
