#pragma once

/* Whether the CPU sets of a partition are valid: against each other, and against the machine when
 * its topology is known. It never changes a set. */

#include <stdbool.h>

struct partition;
struct problem_list;

/* Sets against each other: empty ones, overlaps. */
void check_sets(const struct partition *part, struct problem_list *p);

/* Which workloads the profile pins, against its sets and whether the cluster is partitioned. */
void check_intent(const struct partition *part, bool is_partitioned, struct problem_list *p);

/* The CPUs of workload types are reserved ones. */
void check_types(const struct partition *part, struct problem_list *p);

/* Warns when the reserved CPUs are few for a machine with `n_cpus` CPUs. */
void check_size(const struct partition *part, unsigned n_cpus, struct problem_list *p);

/* Sets against part->topology, which must be there: CPUs it lacks, SMT siblings in different sets,
 * guaranteed CPUs that can never be assigned, NUMA nodes without housekeeping CPUs, CPUs in no
 * set. */
void check_hardware(const struct partition *part, bool allow_split_cores, struct problem_list *p);
