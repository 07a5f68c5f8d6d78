/* The steps do not know each other: each reads the snapshot and adds its writes. */

#include "reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "admission_parameters.h"
#include "base/arena.h"
#include "checks.h"
#include "openshift_apply.h"
#include "permissions.h"

void reconcile_memory_done(struct reconcile_memory *m)
{
	for (size_t i = 0; i < m->n_profiles; i++)
		free(m->profiles[i].name);
	free(m->profiles);
	*m = (struct reconcile_memory){ 0 };
}

static struct profile_memory *remember(struct reconcile_memory *m, struct str name)
{
	struct profile_memory *p;

	for (size_t i = 0; i < m->n_profiles; i++)
		if (str_eq(str_from(m->profiles[i].name), name))
			return &m->profiles[i];
	m->profiles = reallocarray(m->profiles, m->n_profiles + 1, sizeof(*m->profiles));
	if (!m->profiles)
		abort(); /* D21 */
	p = &m->profiles[m->n_profiles++];
	*p = (struct profile_memory){ .name = strndup(name.p, name.n) };
	return p;
}

/* Profiles that were not seen in this reconcile are deleted. */
static void forget(struct reconcile_memory *m)
{
	for (size_t i = m->n_profiles; i-- > 0;) {
		struct profile_memory *p = &m->profiles[i];

		if (p->is_seen) {
			p->is_seen = false;
			continue;
		}
		free(p->name);
		*p = m->profiles[--m->n_profiles];
	}
}

static void report_profiles(const struct operator_snapshot *s, const struct rollout *r,
			    struct reconcile_memory *m, struct operator_writes *w)
{
	for (size_t i = 0; i < s->n_profiles; i++) {
		const struct operator_profile *p = &s->profiles[i];
		struct profile_memory *memory = remember(m, p->name);
		struct profile_status old, now;

		profile_status_read(p, &old);
		profile_status_compute(s, r, p, &now);
		profile_status_settle(&now, &old, &memory->settling, s->now_ms);
		profile_status_write(s, p, &old, &now, w);
		memory->status = now;
		for (size_t c = 0; c < PROFILE_CONDITION__COUNT; c++)
			memory->status.conditions[c] =
				(struct condition){ .status = now.conditions[c].status };
		memory->is_seen = true;
	}
	forget(m);
}

static void count_steps(const struct rollout *r, struct arena *a, struct reconcile_result *ret)
{
	ret->drained = arena_array(a, struct str, r->n);
	for (size_t i = 0; i < r->n; i++) {
		const struct rollout_node *node = &r->nodes[i];

		ret->figures.steps[node->step]++;
		ret->figures.n_reboot += node->reboot != NULL;
		if (node->drains && (node->step == ROLLOUT_DRAIN || node->step == ROLLOUT_GRANT))
			ret->drained[ret->n_drained++] = node->node->name;
	}
}

void operator_reconcile(const struct operator_snapshot *s, struct reconcile_memory *m,
			struct reconcile_result *ret)
{
	struct rollout rollout;

	*ret = (struct reconcile_result){ .writes.arena = s->arena };
	rollout_plan(s, s->arena, &rollout);
	count_steps(&rollout, s->arena, ret);
	rollout_write(s, &rollout, &ret->writes);
	report_profiles(s, &rollout, m, &ret->writes);
	reconcile_permissions(s, &ret->writes, &ret->figures);
	reconcile_admission_parameters(s, &ret->writes);
	reconcile_openshift(s, &ret->writes);
	reconcile_checks(s, &ret->writes, &ret->figures);
}
