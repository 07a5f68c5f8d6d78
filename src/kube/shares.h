#pragma once

/* CPU shares (cgroup v1 cpu.shares, the unit of "cpushares") from millicores. The runtime
 * converts them to a weight of cgroup v2 (docs/reference/cgroups.md#shares-and-weight). */

#include <stdint.h>

#define CPU_SHARES_MIN 2
#define CPU_SHARES_MAX 262144
#define CPU_SHARES_PER_CPU 1024

/* milli x 1024 / 1000, floored, within 2..262144. */
static inline uint64_t cpu_shares_from_milli(int64_t milli)
{
	const int64_t milli_max = (int64_t)CPU_SHARES_MAX * 1000 / CPU_SHARES_PER_CPU;
	int64_t shares;

	if (milli >= milli_max) /* also keeps the product within 64 bits */
		return CPU_SHARES_MAX;
	if (milli <= 0)
		return CPU_SHARES_MIN;
	shares = milli * CPU_SHARES_PER_CPU / 1000;
	return shares < CPU_SHARES_MIN ? CPU_SHARES_MIN : (uint64_t)shares;
}

/* The request that has these shares, rounded up; the minimum is that of no request. */
static inline int64_t cpu_shares_to_milli(uint64_t shares)
{
	if (shares <= CPU_SHARES_MIN)
		return 0;
	shares = shares > CPU_SHARES_MAX ? CPU_SHARES_MAX : shares;
	return (int64_t)((shares * 1000 + CPU_SHARES_PER_CPU - 1) / CPU_SHARES_PER_CPU);
}
