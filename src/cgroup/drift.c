#include "drift.h"

static unsigned cpus_drift(const struct cgroup_cpu *now, const struct cgroup_want *want)
{
	if (cpuset_is_empty(&want->cpus))
		return 0;
	if (!cpuset_eq(&now->cpus, &want->cpus) || !cpuset_is_subset(&now->effective, &want->cpus))
		return DRIFT_CPUS;
	return cpuset_eq(&now->effective, &want->cpus) ? 0 : DRIFT_FEWER;
}

static bool weight_fits(enum cgroup_version version, uint64_t now, const struct cgroup_want *want)
{
	if (!want->shares || now == drift_weight(version, want))
		return true;
	return version == CGROUP_V2 && now == cgroup_weight_from_shares_linear(want->shares);
}

/* systemd keeps a quota per second in steps of 10 ms, rounded up. */
static int64_t systemd_quota(int64_t quota_us, uint64_t period_us)
{
	const __int128 per_s = (__int128)quota_us * 1000000 / (int64_t)period_us;
	const __int128 rounded = (per_s + 9999) / 10000 * 10000;

	return (int64_t)(rounded * (int64_t)period_us / 1000000);
}

static bool quota_fits(const struct cgroup_cpu *now, const struct cgroup_want *want)
{
	if (!want->has_quota)
		return true;
	if (want->quota_us < 0)
		return now->quota_us < 0;
	if (want->period_us && now->period_us != want->period_us)
		return false;
	return now->quota_us == want->quota_us ||
	       (now->period_us && now->quota_us == systemd_quota(want->quota_us, now->period_us));
}

uint64_t drift_weight(enum cgroup_version version, const struct cgroup_want *want)
{
	if (version == CGROUP_V1)
		return want->shares;
	return want->is_pod ? cgroup_weight_from_shares_linear(want->shares) :
			      cgroup_weight_from_shares(want->shares);
}

unsigned drift_parts(const struct cgroup_want *want)
{
	return (cpuset_is_empty(&want->cpus) ? 0u : CGROUP_CPUS) |
	       (want->shares ? CGROUP_WEIGHT : 0u) | (want->has_quota ? CGROUP_QUOTA : 0u);
}

unsigned drift_of(enum cgroup_version version, const struct cgroup_cpu *now,
		  const struct cgroup_want *want)
{
	unsigned drift = cpus_drift(now, want);

	if (!weight_fits(version, now->weight, want))
		drift |= DRIFT_WEIGHT;
	if (!quota_fits(now, want))
		drift |= DRIFT_QUOTA;
	return drift;
}
