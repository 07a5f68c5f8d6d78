#pragma once

/* Kernel arguments of a partition: only `isolated` is kept free of the kernel's own work, systemd
 * stays on `reserved` (docs/reference/pools.md#kernel-arguments). OpenShift's TuneD computes its
 * line on the node; these are for hosts without TuneD, with a check of the length of both. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct partition;
struct problem_list;

#define KERNEL_ARGS_MAX 2047 /* COMMAND_LINE_SIZE of x86 and arm64, without its NUL */

struct kernel_args {
	struct str *items;
	size_t n;
};

void kernel_args_build(const struct partition *part, struct arena *a, struct kernel_args *ret);
struct str kernel_args_join(const struct kernel_args *args, struct arena *a);

/* Adds a problem when the line would be cut off by the kernel. */
void kernel_args_check(const struct partition *part, struct arena *a, struct problem_list *p);

/* The arguments for huge pages, as one text: " default_hugepagesz=1G   hugepagesz=2M hugepages=128
 * ". Empty without huge pages. */
struct str kernel_args_hugepages(const struct partition *part, struct arena *a);

/* CPUs that are kept free of the kernel's work: isolated and OVS's. */
struct cpuset kernel_args_isolated(const struct partition *part);

/* CPUs the kernel may use for its own work, as far as they are known: all but isolated and OVS's
 * with a topology, else those that the profile names. */
struct cpuset kernel_args_housekeeping(const struct partition *part);
