/* Two levels are compared, because each can be wrong alone: the control files of a cgroup, and the
 * affinity of its threads. A thread can be narrower than its cpuset (it called sched_setaffinity),
 * and a process can be in no container at all. */

#include "audit.h"

#include <inttypes.h>

#include "base/arena.h"

void audit_init(struct audit *t, struct arena *a)
{
	*t = (struct audit){ .a = a };
}

void audit_add(struct audit *t, const struct audit_subject *name, const char *check,
	       struct str expected, struct str actual)
{
	t->findings = arena_reserve(t->a, t->findings, t->n_findings, &t->cap_findings,
				    sizeof(*t->findings));
	t->findings[t->n_findings++] = (struct finding){ *name, check, expected, actual };
}

void audit_require_containers(struct audit *t, size_t n_listed)
{
	static const struct audit_subject node = { 0 };

	if (t->n_containers > 0)
		return;
	audit_add(t, &node, "containers", STR("at least 1"),
		  n_listed == 0 ? STR("none") :
				  str_printf(t->a, "none of %zu is running", n_listed));
}

/* --- one cgroup --- */

static struct str number(uint64_t n, struct arena *a)
{
	return str_printf(a, "%" PRIu64, n);
}

static struct str quota_text(int64_t quota_us, uint64_t period_us, struct arena *a)
{
	if (quota_us < 0)
		return STR("none");
	return str_printf(a, "%" PRId64 "/%" PRIu64, quota_us,
			  period_us ? period_us : CGROUP_PERIOD_US);
}

/* The configured CPUs when they differ, else the effective ones. */
static struct str cpus_text(const struct cgroup_cpu *now, const struct cpuset *want,
			    struct arena *a)
{
	if (cpuset_is_empty(&now->cpus))
		return cpuset_format(&now->effective, a);
	if (!cpuset_eq(&now->cpus, want))
		return cpuset_format(&now->cpus, a);
	return str_printf(a, PRI_STR " in effect", FMT_STR(cpuset_format(&now->effective, a)));
}

void audit_compare(struct audit *t, const struct audit_subject *name, enum cgroup_version version,
		   const struct cgroup_cpu *now, const struct cpu_settings *settings)
{
	const unsigned drift = cpu_settings_drift(settings, version, now);

	if (drift & (DRIFT_CPUS | DRIFT_FEWER))
		audit_add(t, name, "cpus", cpuset_format(&settings->cpus, t->a),
			  cpus_text(now, &settings->cpus, t->a));
	if (drift & DRIFT_MEMS)
		audit_add(
			t, name, "mems",
			cpuset_format(&(struct cpuset){ .w = { settings->mems } }, t->a),
			cpuset_format(&(struct cpuset){ .w = { now->mems ? now->mems :
									   now->effective_mems } },
				      t->a));
	if (drift & DRIFT_WEIGHT)
		audit_add(t, name, "weight", number(cpu_settings_weight(settings, version), t->a),
			  number(now->weight, t->a));
	if (drift & DRIFT_QUOTA)
		audit_add(t, name, "quota",
			  quota_text(settings->quota_us, settings->period_us, t->a),
			  quota_text(now->quota_us, now->period_us, t->a));
}

/* --- threads --- */

/* One finding for all threads: with a wrong cpuset every thread of the cgroup is wrong. */
static void check_threads(struct audit *t, const struct audit_container *c,
			  const struct cgroup_snapshot *s)
{
	const struct proc_affinity *first = NULL;
	struct str more = STR("");
	size_t n = 0;
	pid_t pid = 0;

	if (cpuset_is_empty(&c->settings.cpus))
		return;
	for (size_t i = 0; i < s->processes.n; i++)
		for (size_t k = 0; k < s->processes.items[i].n_affinities; k++) {
			const struct proc_affinity *p = &s->processes.items[i].affinities[k];

			/* Fewer CPUs are the application's choice: it pins its own threads. */
			if (cpuset_is_subset(&p->allowed, &c->settings.cpus))
				continue;
			n += p->n_threads;
			if (first)
				continue;
			first = p;
			pid = s->processes.items[i].pid;
		}
	if (!first)
		return;
	if (n > 1)
		more = str_printf(t->a, ", and %zu more", n - 1);
	audit_add(t, &c->name, "thread", cpuset_format(&c->settings.cpus, t->a),
		  str_printf(t->a, PRI_STR " (thread %d of process %d" PRI_STR ")",
			     FMT_STR(cpuset_format(&first->allowed, t->a)), (int)first->tid,
			     (int)pid, FMT_STR(more)));
}

/* --- exclusive CPUs --- */

/* A finished container keeps its CPUs in the ledger until its pod is gone, but cannot be disturbed.
 */
static bool is_owner(const struct audit_input *in, size_t i)
{
	return in->snapshots[i].is_there && in->containers[i].is_exclusive;
}

/* docs/reference/cpu-manager.md#init-container-reuse */
static bool may_share(const struct audit_container *x, const struct audit_container *y)
{
	return (x->hands_on || y->hands_on) && str_eq(x->name.namespace, y->name.namespace) &&
	       str_eq(x->name.pod, y->name.pod);
}

/* The first other container that may run there, by what its threads may use now: what it should
 * have does not matter to the owner, and not every container has a cgroup (local mode). */
static void check_exclusive(struct audit *t, const struct audit_input *in, size_t i)
{
	const struct audit_container *c = &in->containers[i];

	for (size_t k = 0; is_owner(in, i) && k < in->n; k++) {
		const struct audit_container *other = &in->containers[k];
		struct cpuset both = cgroup_snapshot_allowed(&in->snapshots[k]);

		cpuset_intersect(&both, &c->settings.cpus);
		if (k == i || may_share(c, other) || cpuset_is_empty(&both))
			continue;
		audit_add(t, &c->name, "shared-exclusive",
			  str_printf(t->a, PRI_STR " alone",
				     FMT_STR(cpuset_format(&c->settings.cpus, t->a))),
			  str_printf(t->a, PRI_STR "/" PRI_STR "/" PRI_STR " may run on " PRI_STR,
				     FMT_STR(other->name.namespace), FMT_STR(other->name.pod),
				     FMT_STR(other->name.container),
				     FMT_STR(cpuset_format(&both, t->a))));
		return;
	}
}

static bool is_in_container(const struct audit_input *in, pid_t pid)
{
	for (size_t i = 0; i < in->n; i++)
		for (size_t k = 0; k < in->snapshots[i].processes.n; k++)
			if (in->snapshots[i].processes.items[k].pid == pid)
				return true;
	return false;
}

/* The affinities are compared first: few processes may run on exclusive CPUs, and the search
 * through all containers is only for these. */
static void check_foreign_process(struct audit *t, const struct audit_input *in,
				  const struct process *p)
{
	const struct audit_container *owner = NULL;
	struct cpuset taken = { 0 };

	for (size_t i = 0; i < in->n; i++)
		for (size_t k = 0; is_owner(in, i) && k < p->n_affinities; k++) {
			struct cpuset both = in->containers[i].settings.cpus;

			if (!cpuset_intersects(&both, &p->affinities[k].allowed))
				continue;
			cpuset_intersect(&both, &p->affinities[k].allowed);
			cpuset_union(&taken, &both);
			if (!owner)
				owner = &in->containers[i];
		}
	if (!owner || is_in_container(in, p->pid))
		return;
	t->foreign_processes = arena_reserve(t->a, t->foreign_processes, t->n_foreign,
					     &t->cap_foreign, sizeof(*t->foreign_processes));
	t->foreign_processes[t->n_foreign++] =
		(struct foreign_process){ (int)p->pid, p->name, p->cgroup, taken, owner->name };
}

void audit_run(struct audit *t, const struct audit_input *in)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct audit_container *c = &in->containers[i];
		const struct cgroup_snapshot *s = &in->snapshots[i];

		if (!s->is_there)
			continue;
		t->n_containers++;
		if (s->has_cgroup)
			audit_compare(t, &c->name, in->version, &s->cgroup, &c->settings);
		check_threads(t, c, s);
		check_exclusive(t, in, i);
	}
	for (size_t i = 0; in->machine && i < in->machine->n; i++)
		check_foreign_process(t, in, &in->machine->items[i]);
}
