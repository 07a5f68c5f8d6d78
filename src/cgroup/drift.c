/* A value that is correct but was written in another form must not count as drift: the agent would
 * report an external change that no process has made, and verify would fail. */

#include "drift.h"

/* Both lists count: cpuset.cpus is what is requested, the effective list what tasks use. Effective
 * CPUs outside of the wanted ones occur when cpuset.cpus of v2 names no CPU that the parent has:
 * the cgroup then uses the parent's. */
static unsigned cpus_drift(const struct cgroup_cpu *now, const struct cpuset *want)
{
	if (cpuset_is_empty(want))
		return 0;
	if (!cpuset_eq(&now->cpus, want) || !cpuset_is_subset(&now->effective, want))
		return DRIFT_CPUS;
	return cpuset_eq(&now->effective, want) ? 0 : DRIFT_FEWER;
}

/* Which conversion a container's weight comes from depends on the version of its OCI runtime, so
 * both are correct (docs/reference/cgroups.md#shares-and-weight). */
static bool weight_fits(enum cgroup_version version, uint64_t now, const struct cpu_settings *s)
{
	if (!s->shares || now == cpu_settings_weight(s, version))
		return true;
	return version == CGROUP_V2 && now == cgroup_weight_from_shares_linear(s->shares);
}

/* systemd keeps a quota per second in steps of 10 ms, rounded up
 * (docs/reference/cgroups.md#quota-rounding). */
static int64_t systemd_quota(int64_t quota_us, uint64_t period_us)
{
	const __int128 per_s = (__int128)quota_us * 1000000 / (int64_t)period_us;
	const __int128 rounded = (per_s + 9999) / 10000 * 10000;

	return (int64_t)(rounded * (int64_t)period_us / 1000000);
}

static bool quota_fits(const struct cgroup_cpu *now, const struct cpu_settings *s)
{
	if (!s->has_quota)
		return true;
	if (s->quota_us < 0) /* without a quota the period has no effect */
		return now->quota_us < 0;
	if (s->period_us && now->period_us != s->period_us)
		return false;
	return now->quota_us == s->quota_us ||
	       (now->period_us && now->quota_us == systemd_quota(s->quota_us, now->period_us));
}

unsigned drift_of(enum cgroup_version version, const struct cgroup_cpu *now,
		  const struct cpu_settings *settings)
{
	unsigned drift = cpus_drift(now, &settings->cpus);

	if (!weight_fits(version, now->weight, settings))
		drift |= DRIFT_WEIGHT;
	if (!quota_fits(now, settings))
		drift |= DRIFT_QUOTA;
	return drift;
}
