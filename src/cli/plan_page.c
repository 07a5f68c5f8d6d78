#include "plan_page.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "picture/html_page.h"
#include "picture/machine_picture.h"
#include "profile/layout.h"

#define TITLE STR("Change plan")

static const enum picture_look looks[PROFILE_SET__COUNT] = {
	[PROFILE_RESERVED] = PICTURE_MANAGEMENT, [PROFILE_ISOLATED] = PICTURE_FREE,
	[PROFILE_OFFLINED] = PICTURE_NO_POOL,	 [PROFILE_SHARED] = PICTURE_SHARED,
	[PROFILE_OVS_DPDK] = PICTURE_NO_POOL,
};

/* Sets that the old files do not contain are shown as they will be. */
static const struct cpuset *set_of(const struct plan_pool *pool, int id, bool is_after)
{
	return is_after || !pool->sets.is_known[id] ? &pool->part->cpus[id] :
						      &pool->sets.before[id];
}

static void add_changes(const struct plan_pool *pool, struct cpuset *ret)
{
	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		struct cpuset gone = *set_of(pool, id, false), come = *set_of(pool, id, true);

		cpuset_minus(&gone, set_of(pool, id, true));
		cpuset_minus(&come, set_of(pool, id, false));
		cpuset_union(ret, &gone);
		cpuset_union(ret, &come);
	}
}

static struct machine_picture picture_of(const struct plan_pool *pool, bool is_after,
					 struct arena *a)
{
	struct picture_pool *sets = arena_array(a, struct picture_pool, PROFILE_SET__COUNT);
	struct machine_picture m = { .topology = pool->part->topology,
				     .pools = sets,
				     .n_pools = PROFILE_SET__COUNT };

	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		sets[id] = (struct picture_pool){ profile_set_pool((enum profile_set_id)id),
						  looks[id], *set_of(pool, id, is_after) };
	m.heading = str_printf(a, "%s, machine config pool " PRI_STR, is_after ? "After" : "Before",
			       FMT_STR(pool->part->pool->name));
	if (is_after)
		add_changes(pool, &m.changed);
	return m;
}

int plan_svg(const struct plan *plan, struct arena *a, struct str *ret, struct err *err)
{
	struct machine_picture *machines =
		arena_array(a, struct machine_picture, 2 * plan->n_pools + 1);
	size_t n = 0;

	for (size_t i = 0; i < plan->n_pools; i++) {
		if (!plan->pools[i].part->topology)
			continue;
		machines[n++] = picture_of(&plan->pools[i], false, a);
		machines[n++] = picture_of(&plan->pools[i], true, a);
	}
	if (!n)
		return err_set(err, EINVAL,
			       "a picture needs the machines: give --topology (-o html works "
			       "without)");
	*ret = picture_svg(TITLE, machines, n, a);
	return 0;
}

static enum page_mood mood_of(enum plan_effect effect)
{
	return effect == PLAN_REBOOT ? PAGE_BAD : effect == PLAN_RESTART ? PAGE_WARNING : PAGE_OK;
}

static struct str format_set(const struct cpuset *cpus, struct arena *a)
{
	return cpuset_is_empty(cpus) ? STR("none") : cpuset_format(cpus, a);
}

static void add_sets(struct strbuf *b, const struct plan_pool *pool)
{
	static const char *const headings[] = { "Pool", "Before", "After", "CPUs" };
	struct page_table t = page_table_begin(b, STR("CPU sets"), headings, ARRAY_LEN(headings));

	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		const struct cpuset *before = set_of(pool, id, false);
		const struct cpuset *after = set_of(pool, id, true);
		const bool moves = plan_moves(pool, (enum profile_set_id)id);

		if (cpuset_is_empty(before) && cpuset_is_empty(after))
			continue;
		page_table_row(&t, moves ? PAGE_WARNING : PAGE_PLAIN,
			       (struct str[]){ str_from(profile_set_pool((enum profile_set_id)id)),
					       pool->sets.is_known[id] ? format_set(before, b->a) :
									 STR("not known"),
					       format_set(after, b->a),
					       str_printf(b->a, "%u, was %u", cpuset_count(after),
							  cpuset_count(before)) });
	}
	page_table_end(&t);
}

static void add_pods(struct strbuf *b, const struct plan_pool *pool)
{
	static const char *const headings[] = {
		"Result", "Namespace", "Pod", "Node", "Class", "Why"
	};
	struct page_table t;

	if (!pool->n_pods) {
		page_paragraph(b, STR("No pod of the input moves."));
		return;
	}
	t = page_table_begin(b, STR("Pods"), headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < pool->n_pods; i++) {
		const struct plan_pod *p = &pool->pods[i];

		page_table_row(&t, p->fits ? PAGE_OK : PAGE_BAD,
			       (struct str[]){ p->fits ? STR("fits") : STR("no longer fits"),
					       p->namespace, p->name, p->node, str_from(p->class),
					       p->why });
	}
	page_table_end(&t);
}

static void add_pool(struct strbuf *b, const struct plan_pool *pool, unsigned number)
{
	page_heading(b, 2,
		     str_printf(b->a, "Machine config pool " PRI_STR ", profile " PRI_STR,
				FMT_STR(pool->part->pool->name),
				FMT_STR(pool->part->profile->name)));
	page_verdict(b, mood_of(pool->effect),
		     pool->effect == PLAN_NOTHING ?
			     STR("Nothing to restart") :
			     str_printf(b->a, "Needs a %s", plan_effect_name(pool->effect)));
	if (pool->part->topology) {
		const struct machine_picture before = picture_of(pool, false, b->a);
		const struct machine_picture after = picture_of(pool, true, b->a);

		picture_figure(b, &before, 2 * number);
		picture_figure(b, &after, 2 * number + 1);
	} else {
		page_note(b, STR("The machines are not known: give --topology for a picture."));
	}
	add_sets(b, pool);
	add_pods(b, pool);
}

static void add_files(struct strbuf *b, const struct plan_page *p)
{
	static const char *const headings[] = { "Effect", "Change", "File", "Why" };
	struct page_table t;

	page_heading(b, 2, STR("Files"));
	if (!p->plan->n_files) {
		page_paragraph(b, STR("No file changes."));
		return;
	}
	t = page_table_begin(b, STR("Files that change"), headings, ARRAY_LEN(headings));
	for (size_t i = 0; i < p->plan->n_files; i++) {
		const struct plan_file *f = &p->plan->files[i];

		page_table_row(&t, mood_of(f->effect),
			       (struct str[]){ str_from(plan_effect_name(f->effect)),
					       str_from(plan_change_name(f->change)), f->path,
					       str_from(f->why) });
	}
	page_table_end(&t);
	for (size_t i = 0; i < p->plan->n_files; i++)
		page_folded(b,
			    str_printf(b->a, "Diff of " PRI_STR, FMT_STR(p->plan->files[i].path)),
			    p->diffs[i]);
}

struct str plan_page(const struct plan_page *p, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	page_begin(&b, TITLE);
	page_note(&b, str_printf(a, "Compared with " PRI_STR ", by Pinfold " PINFOLD_VERSION,
				 FMT_STR(p->present)));
	page_verdict(&b, p->plan->has_unfit_pods || p->n_blocked ? PAGE_BAD : PAGE_OK,
		     p->n_blocked	     ? STR("The kubelet would not start") :
		     p->plan->has_unfit_pods ? STR("Some pods no longer fit") :
					       STR("All pods of the input fit"));
	for (size_t i = 0; i < p->n_blocked; i++)
		page_verdict(&b, PAGE_BAD, p->blocked[i]);
	for (size_t i = 0; i < p->plan->n_pools; i++)
		add_pool(&b, &p->plan->pools[i], (unsigned)i);
	add_files(&b, p);
	page_end(&b);
	return strbuf_str(&b);
}
