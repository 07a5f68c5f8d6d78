#pragma once

/* From the texts of a profile to CPU sets: lists as they are, topology expressions against the
 * machine, "rest" last. Only for src/profile. */

#include <stdbool.h>

struct arena;
struct partition;
struct problem_list;

/* Fills cpus and text of the sets that are lists, and reports a second "rest". True when all sets
 * are lists, so that the machine need not be known. */
bool partition_take_lists(struct partition *part, struct arena *a, struct problem_list *p);

/* Fills cpus and text of a partition whose profile and topology are set. False when it cannot. */
bool partition_resolve(struct partition *part, struct arena *a, struct problem_list *p);
