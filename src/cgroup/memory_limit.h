#pragma once

/* How much memory this process may use before the kernel kills it. */

#include <stdint.h>

/* The smallest limit of the process's cgroup and of those above it (v1 and v2), or the memory of
 * the machine where none is set. `root` is "" or, in tests, a directory with proc and sys. */
uint64_t memory_limit_bytes(const char *root);
