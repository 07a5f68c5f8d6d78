/* The JSON form connects processes: verify reads it from the agent's status document, the OCI hook
 * from the agent's reply. */

#include "cpu_settings.h"

#include "base/err.h"

unsigned cpu_settings_parts(const struct cpu_settings *s)
{
	return (cpuset_is_empty(&s->cpus) ? 0u : CGROUP_CPUS) | (s->shares ? CGROUP_WEIGHT : 0u) |
	       (s->has_quota ? CGROUP_QUOTA : 0u);
}

uint64_t cpu_settings_weight(const struct cpu_settings *s, enum cgroup_version version)
{
	if (version == CGROUP_V1)
		return s->shares;
	return s->has_linear_weight ? cgroup_weight_from_shares_linear(s->shares) :
				      cgroup_weight_from_shares(s->shares);
}

void cpu_settings_put(const struct cpu_settings *s, yyjson_mut_doc *doc, yyjson_mut_val *object,
		      struct arena *a)
{
	doc_put_str(doc, object, STR("cpus"), cpuset_format(&s->cpus, a));
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

	if (cpuset_parse(doc_str(doc_get(object, STR("cpus"))), &s.cpus, err) < 0)
		return err_wrap(err, "cpus");
	*ret = s;
	return 0;
}
