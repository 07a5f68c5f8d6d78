/* A value that is correct but was written in another form must not count as drift: the agent would
 * report an external change that no process has made, and verify would fail. The JSON form connects
 * processes: verify reads it from the agent's status document, the OCI hook from the agent's reply.
 */

#include "cpu_settings.h"

#include <errno.h>

#include "base/err.h"

bool cpu_settings_eq(const struct cpu_settings *a, const struct cpu_settings *b)
{
	/* The numbers first: they differ more often than the sets, which are large. */
	return a->shares == b->shares && a->mems == b->mems &&
	       a->has_linear_weight == b->has_linear_weight && a->has_quota == b->has_quota &&
	       a->quota_us == b->quota_us && a->period_us == b->period_us &&
	       cpuset_eq(&a->cpus, &b->cpus);
}

unsigned cpu_settings_parts(const struct cpu_settings *s)
{
	return (cpuset_is_empty(&s->cpus) ? 0u : CGROUP_CPUS) | (s->shares ? CGROUP_WEIGHT : 0u) |
	       (s->has_quota ? CGROUP_QUOTA : 0u) | (s->mems ? CGROUP_MEMS : 0u);
}

uint64_t cpu_settings_weight(const struct cpu_settings *s, enum cgroup_version version)
{
	if (version == CGROUP_V1)
		return s->shares;
	return s->has_linear_weight ? cgroup_weight_from_shares_linear(s->shares) :
				      cgroup_weight_from_shares(s->shares);
}

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

unsigned cpu_settings_drift(const struct cpu_settings *s, enum cgroup_version version,
			    const struct cgroup_cpu *now)
{
	unsigned drift = cpus_drift(now, &s->cpus);

	if (s->mems && now->mems != s->mems)
		drift |= DRIFT_MEMS;
	if (!weight_fits(version, now->weight, s))
		drift |= DRIFT_WEIGHT;
	if (!quota_fits(now, s))
		drift |= DRIFT_QUOTA;
	return drift;
}

int cpu_settings_enforce(const struct cpu_settings *s, const struct cgroup_fs *fs, const char *path,
			 struct err *err)
{
	uint64_t period_us = s->period_us;
	struct cgroup_cpu now;
	unsigned drift;
	int r;

	/* Read first: in the usual case nothing differs, and a write would raise an inotify event
	 * for the agent itself, which would check the cgroup again. */
	r = *path ? cgroup_read(fs, path, cpu_settings_parts(s), &now, err) : -ENOENT;
	/* A cgroup that is removed during the read fails with ENODEV or ENOENT. */
	if (r < 0 && (!*path || !cgroup_exists(fs, path)))
		return err_set(err, ENOENT, "cgroup %s is not there", path);
	if (r < 0)
		return r;
	/* A write cannot restore CPUs that an ancestor does not have. */
	drift = cpu_settings_drift(s, fs->version, &now) & ~(unsigned)DRIFT_FEWER;
	if (drift & DRIFT_CPUS)
		r = cgroup_set_cpus(fs, path, &s->cpus, err);
	if (r >= 0 && drift & DRIFT_MEMS)
		r = cgroup_set_mems(fs, path, s->mems, err);
	if (r >= 0 && drift & DRIFT_WEIGHT)
		r = cgroup_set_weight(fs, path, cpu_settings_weight(s, fs->version), err);
	if (!period_us) /* removing a quota leaves the period as it is */
		period_us = s->quota_us < 0 ? now.period_us : CGROUP_PERIOD_US;
	if (r >= 0 && drift & DRIFT_QUOTA)
		r = cgroup_set_quota(fs, path, s->quota_us, period_us, err);
	return r < 0 ? r : (int)drift;
}

void cpu_settings_put(const struct cpu_settings *s, yyjson_mut_doc *doc, yyjson_mut_val *object,
		      struct arena *a)
{
	doc_put_str(doc, object, STR("cpus"), cpuset_format(&s->cpus, a));
	if (s->mems)
		doc_put_str(doc, object, STR("mems"),
			    cpuset_format(&(struct cpuset){ .w = { s->mems } }, a));
	if (s->shares)
		doc_put_int(doc, object, STR("shares"), (int64_t)s->shares);
	if (s->has_quota)
		doc_put_int(doc, object, STR("quotaUs"), s->quota_us);
	if (s->period_us)
		doc_put_int(doc, object, STR("periodUs"), (int64_t)s->period_us);
}

static int64_t get_int(yyjson_val *object, struct str key)
{
	int64_t n;

	return doc_int(doc_get(object, key), &n) ? n : 0;
}

int cpu_settings_get(yyjson_val *object, struct cpu_settings *ret, struct err *err)
{
	struct cpu_settings s = {
		.shares = (uint64_t)get_int(object, STR("shares")),
		.has_quota = doc_get(object, STR("quotaUs")) != NULL,
		.quota_us = get_int(object, STR("quotaUs")),
		.period_us = (uint64_t)get_int(object, STR("periodUs")),
	};
	struct cpuset nodes;

	if (cpuset_parse(doc_str(doc_get(object, STR("cpus"))), &s.cpus, err) < 0)
		return err_wrap(err, "cpus");
	if (cpuset_parse(doc_str(doc_get(object, STR("mems"))), &nodes, err) < 0)
		return err_wrap(err, "mems");
	s.mems = nodes.w[0];
	*ret = s;
	return 0;
}
