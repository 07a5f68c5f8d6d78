#include "placement.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "codec/doc.h"
#include "nri/nri.h"

static char *text_of(const struct cpuset *cpus, struct arena *a)
{
	return (char *)str_cstr(a, cpuset_format(cpus, a));
}

int place_management(const struct container_class *class, const struct cpuset *reserved,
		     struct arena *a, struct placement *ret, struct err *err)
{
	struct placement p = { .pool = POOL_MANAGEMENT };
	struct cpuset cpus = *reserved;
	struct err why = { 0 };

	if (class->cpu.cpus.n > 0 && cpuset_parse(class->cpu.cpus, &cpus, &why) < 0)
		return err_set(err, EINVAL, "annotation cpuset %s: %s", quote(class->cpu.cpus).text,
			       why.msg);
	if (cpuset_is_empty(&cpus) || !cpuset_is_subset(&cpus, reserved))
		return err_set(err, EPERM,
			       "annotation cpuset %s is not within the reserved CPUs %s",
			       quote(class->cpu.cpus).text, text_of(reserved, a));
	p.settings = (struct cpu_settings){
		.cpus = text_of(&cpus, a),
		.shares = class->cpu.shares,
		.has_quota = class->cpu.quota_us != 0,
		.quota_us = class->cpu.quota_us,
		.period_us = class->cpu.period_us,
	};
	*ret = p;
	return 0;
}

int place_grant(const struct ledger_grant *grant, struct arena *a, struct placement *ret,
		struct err *err)
{
	const bool is_exclusive = grant->pool == POOL_GUARANTEED;

	/* An empty list would mean "no change" to the runtime, and every CPU to the kernel. */
	if (cpuset_is_empty(&grant->cpus))
		return err_set(err, ENOSPC, "no CPU left in the %s pool", pool_name(grant->pool));
	*ret = (struct placement){
		.pool = grant->pool,
		.is_exclusive = is_exclusive,
		.settings = { .cpus = text_of(&grant->cpus, a),
			      .has_quota = is_exclusive,
			      .quota_us = is_exclusive ? -1 : 0 },
	};
	return 0;
}

int place_beside_kubelet(const char *cpus, const struct cpuset *reserved, struct arena *a,
			 struct placement *ret, struct err *err)
{
	struct placement p = { .pool = POOL_SHARED, .settings.cpus = "" };
	struct cpuset set;
	int r;

	r = cpuset_parse(str_from(cpus), &set, err);
	if (r < 0)
		return r;
	if (cpuset_intersects(&set, reserved)) {
		cpuset_minus(&set, reserved);
		if (!cpuset_is_empty(&set))
			p.settings.cpus = text_of(&set, a);
	}
	*ret = p;
	return 0;
}

struct str place_describe(const struct placement *p, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");

	doc_put_str(m, root, STR("pool"), str_from(pool_name(p->pool)));
	doc_put_bool(m, root, STR("exclusive"), p->is_exclusive);
	doc_put_str(m, root, STR("cpus"), str_from(p->settings.cpus));
	if (p->settings.shares)
		doc_put_int(m, root, STR("shares"), (int64_t)p->settings.shares);
	if (p->settings.has_quota)
		doc_put_int(m, root, STR("quotaUs"), p->settings.quota_us);
	if (p->settings.period_us)
		doc_put_int(m, root, STR("periodUs"), (int64_t)p->settings.period_us);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

/* Texts may be spelled differently and mean the same. */
static bool same_cpus(const char *a, const char *b)
{
	struct cpuset x, y;

	if (strcmp(a, b) == 0)
		return true;
	return cpuset_parse(str_from(a), &x, NULL) == 0 &&
	       cpuset_parse(str_from(b), &y, NULL) == 0 && cpuset_eq(&x, &y);
}

bool place_difference(const struct cpu_settings *settings, const struct nri_cpu *now,
		      struct nri_cpu *ret)
{
	struct nri_cpu d = { 0 };

	if (*settings->cpus && !same_cpus(settings->cpus, now->cpus))
		d.cpus = settings->cpus;
	if (settings->shares && (!now->has_shares || now->shares != settings->shares)) {
		d.has_shares = true;
		d.shares = settings->shares;
	}
	/* No quota at all and a quota of none are the same. */
	if (settings->has_quota && !(settings->quota_us < 0 && now->quota_us <= 0) &&
	    (!now->has_quota || now->quota_us != settings->quota_us)) {
		d.has_quota = true;
		d.quota_us = settings->quota_us;
	}
	if (settings->period_us && (!now->has_period || now->period_us != settings->period_us)) {
		d.has_period = true;
		d.period_us = settings->period_us;
	}
	*ret = d;
	return d.cpus || d.has_shares || d.has_quota || d.has_period;
}

bool place_insist(const struct cpu_settings *settings, const struct nri_cpu *requested,
		  struct nri_cpu *ret)
{
	struct nri_cpu d = { 0 };

	/* Zero and empty in a request mean "unchanged" (spec/runtime.md 2.10). */
	if (*settings->cpus && *requested->cpus && !same_cpus(settings->cpus, requested->cpus))
		d.cpus = settings->cpus;
	if (settings->shares && requested->shares && requested->shares != settings->shares) {
		d.has_shares = true;
		d.shares = settings->shares;
	}
	if (settings->has_quota && requested->quota_us &&
	    requested->quota_us != settings->quota_us) {
		d.has_quota = true;
		d.quota_us = settings->quota_us;
	}
	if (settings->period_us && requested->period_us &&
	    requested->period_us != settings->period_us) {
		d.has_period = true;
		d.period_us = settings->period_us;
	}
	*ret = d;
	return d.cpus || d.has_shares || d.has_quota || d.has_period;
}
