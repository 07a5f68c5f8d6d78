#pragma once

/* Time counters of the CPUs of this machine, as text: the lines "cpu0 ..." of /proc/stat (proc(5)).
 * Without the rest, which has one number for every interrupt. */

#include "base/str.h"

struct arena;
struct err;

int cpu_stat_read(struct arena *a, struct str *ret, struct err *err);

/* The lines of single CPUs of a /proc/stat. Pure. */
struct str cpu_stat_lines(struct str stat);
