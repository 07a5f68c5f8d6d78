/* Sets stay sets until settings_difference(), which makes the text for the runtime. */

#include "placement.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "nri/nri.h"

/* An empty list is never pushed: it means "no change" to the runtime, and every CPU to the kernel.
 */
static int no_cpu_left(enum pool pool, struct err *err)
{
	return err_set(err, ENOSPC, "no CPU left in the %s pool", pool_name(pool));
}

int placement_of_management(const struct cpu_settings *requested, struct str type,
			    const struct cpuset *type_cpus, struct placement *ret, struct err *err)
{
	if (cpuset_is_empty(type_cpus))
		return no_cpu_left(POOL_MANAGEMENT, err);
	if (!cpuset_is_subset(&requested->cpus, type_cpus)) {
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, 0);
		return err_set(err, EPERM,
			       "annotation cpuset \"" PRI_STR "\" is not within the " PRI_STR
			       " CPUs " PRI_STR,
			       FMT_STR(cpuset_format(&requested->cpus, &a)), FMT_STR(type),
			       FMT_STR(cpuset_format(type_cpus, &a)));
	}
	*ret = (struct placement){ .pool = POOL_MANAGEMENT,
				   .names_cpus = !cpuset_is_empty(&requested->cpus),
				   .settings = *requested };
	if (cpuset_is_empty(&requested->cpus))
		ret->settings.cpus = *type_cpus;
	return 0;
}

int placement_of_grant(const struct ledger_grant *grant, struct placement *ret, struct err *err)
{
	const bool is_exclusive = grant->pool == POOL_GUARANTEED;

	if (cpuset_is_empty(&grant->cpus))
		return no_cpu_left(grant->pool, err);
	*ret = (struct placement){
		.pool = grant->pool,
		.is_exclusive = is_exclusive,
		/* D13: with a quota an exclusive container would be throttled on its own CPUs. */
		.settings = { .cpus = grant->cpus,
			      .mems = grant->memory_nodes,
			      .has_quota = is_exclusive,
			      .quota_us = is_exclusive ? CGROUP_UNLIMITED : 0 },
	};
	return 0;
}

int placement_in_kubelet_mode(const char *cpus, const struct cpuset *management,
			      const struct cpuset *shared, struct placement *ret, struct err *err)
{
	struct placement p = { .pool = POOL_SHARED };
	struct cpuset set, want;
	int r;

	r = cpuset_parse(str_from(cpus), &set, err);
	if (r < 0)
		return r;
	want = set;
	if (cpuset_intersects(&set, shared))
		cpuset_intersect(&want, shared);
	else
		cpuset_minus(&want, management);
	/* Otherwise no settings at all: the kubelet's own list stays in force. */
	if (!cpuset_eq(&want, &set))
		p.settings.cpus = want;
	*ret = p;
	return 0;
}

void placement_note_taken(const char *cpus, const struct cpuset *shared, struct cpuset *taken)
{
	struct cpuset set, other;

	if (cpuset_parse(str_from(cpus), &set, NULL) < 0 || !cpuset_intersects(&set, shared))
		return;
	other = set;
	cpuset_minus(&other, shared);
	/* A container with a part of the shared CPUs and no others owns them. Any other one is
	 * shared and has all that no container owns, so the rest has an owner. */
	if (cpuset_is_empty(&other) && !cpuset_eq(&set, shared)) {
		cpuset_union(taken, &set);
		return;
	}
	*taken = *shared;
	cpuset_minus(taken, &set);
}

struct str placement_describe(const struct placement *p, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");

	doc_put_str(m, root, STR("pool"), str_from(pool_name(p->pool)));
	doc_put_bool(m, root, STR("exclusive"), p->is_exclusive);
	cpu_settings_put(&p->settings, m, root, a);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

static bool cpus_fit(const struct cpuset *ours, const char *theirs, enum runtime_values kind)
{
	struct cpuset set;

	if (!*theirs && kind == RUNTIME_UPDATE)
		return true;
	return cpuset_parse(str_from(theirs), &set, NULL) == 0 && cpuset_eq(&set, ours);
}

/* A container without a quota has 0, or a negative number. */
static bool quota_fits(int64_t ours, int64_t theirs, enum runtime_values kind)
{
	if (!theirs && kind == RUNTIME_UPDATE)
		return true;
	return ours < 0 ? theirs <= 0 : ours == theirs;
}

static bool number_fits(uint64_t ours, uint64_t theirs, enum runtime_values kind)
{
	return ours == theirs || (!theirs && kind == RUNTIME_UPDATE);
}

/* Like cpus_fit(); a text that is no list of nodes differs. */
static bool mems_fit(uint64_t ours, const char *theirs, enum runtime_values kind)
{
	if (kind == RUNTIME_UPDATE && (!theirs || !*theirs))
		return true;
	return placement_memory_nodes(theirs) == ours;
}

uint64_t placement_memory_nodes(const char *mems)
{
	struct cpuset nodes;

	return mems && cpuset_parse(str_from(mems), &nodes, NULL) == 0 ? nodes.w[0] : 0;
}

bool settings_difference(const struct cpu_settings *settings, const struct nri_cpu *theirs,
			 enum runtime_values kind, struct arena *a, struct nri_cpu *ret)
{
	struct nri_cpu d = { 0 };

	if (!cpuset_is_empty(&settings->cpus) && !cpus_fit(&settings->cpus, theirs->cpus, kind))
		d.cpus = str_cstr(a, cpuset_format(&settings->cpus, a));
	if (settings->mems && !mems_fit(settings->mems, theirs->mems, kind))
		d.mems = str_cstr(a, cpuset_format(&(struct cpuset){ .w = { settings->mems } }, a));
	if (settings->shares && !number_fits(settings->shares, theirs->shares, kind)) {
		d.has_shares = true;
		d.shares = settings->shares;
	}
	if (settings->has_quota && !quota_fits(settings->quota_us, theirs->quota_us, kind)) {
		d.has_quota = true;
		d.quota_us = settings->quota_us;
	}
	if (settings->period_us && !number_fits(settings->period_us, theirs->period_us, kind)) {
		d.has_period = true;
		d.period_us = settings->period_us;
	}
	*ret = d;
	return d.cpus || d.mems || d.has_shares || d.has_quota || d.has_period;
}
