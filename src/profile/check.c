/* OpenShift's render validates no profile, and its admission does not know the machine
 * (docs/reference/openshift-render.md#profile-validation). Here every problem is found before a
 * file is written. */

#include "check.h"

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "layout.h"
#include "pool/config.h"

static void check_overlap(const struct partition *part, enum profile_set_id x,
			  enum profile_set_id y, struct problem_list *p)
{
	struct cpuset both = part->cpus[x];

	cpuset_intersect(&both, &part->cpus[y]);
	if (!cpuset_is_empty(&both))
		problem_error(p, profile_set_at(part->profile, y),
			      "%s and %s overlap: CPUs " PRI_STR, profile_set_name(x),
			      profile_set_name(y), FMT_STR(cpuset_format(&both, p->a)));
}

static struct problem_at cpu_at(const struct profile *profile)
{
	return PROBLEM_AT(profile->at.doc, doc_find(profile->at.object, "/spec/cpu"), "spec.cpu");
}

void check_sets(const struct partition *part, struct problem_list *p)
{
	for (int x = 0; x < PROFILE_SET__COUNT; x++) {
		const struct profile_set *set = &part->profile->sets[x];

		/* An expression is empty as long as no machine is known. */
		if (set->text.n && (set->is_list || part->topology) &&
		    cpuset_is_empty(&part->cpus[x]))
			problem_error(p, profile_set_at(part->profile, (enum profile_set_id)x),
				      "the set is empty: all CPUs are in other sets");
		for (int y = x + 1; y < PROFILE_SET__COUNT; y++)
			check_overlap(part, (enum profile_set_id)x, (enum profile_set_id)y, p);
	}
	if (!profile_has(part->profile, PROFILE_ISOLATED))
		problem_note(
			p, cpu_at(part->profile), "%s",
			profile_has_pools(part->profile) ?
				"no isolated set: containers that request whole CPUs do not fit "
				"these nodes" :
				"no isolated set: the kernel is not tuned for exclusive CPUs");
	/* CPU 0 usually has no `online` file in sysfs, and set-cpus-offline.sh does all or nothing.
	 */
	if (cpuset_has(&part->cpus[PROFILE_OFFLINED], 0))
		problem_warn(p, profile_set_at(part->profile, PROFILE_OFFLINED),
			     "most machines cannot take CPU 0 offline, and then no CPU is taken "
			     "offline");
}

void check_intent(const struct partition *part, bool is_partitioned, struct problem_list *p)
{
	const struct profile *profile = part->profile;

	if (profile_pins_nothing(profile) && profile_has_pools(profile))
		problem_error(
			p, PROBLEM_AT(profile->at.doc, profile->workloads, "spec.cpu.workloads"),
			"must contain Infrastructure when spec.cpu.shared is set: in pools mode "
			"management pods run on the reserved CPUs");
	else if (profile_pins_nothing(profile))
		problem_note(p,
			     PROBLEM_AT(profile->at.doc, profile->workloads, "spec.cpu.workloads"),
			     "empty: management pods may use all CPUs");
	if (profile->pins_infrastructure && !is_partitioned)
		problem_warn(p,
			     PROBLEM_AT(profile->at.doc, profile->workloads, "spec.cpu.workloads"),
			     "pins Infrastructure, but the cluster is not partitioned "
			     "(Infrastructure status.cpuPartitioning)");
	if (profile_has_pools(profile) && !is_partitioned)
		problem_warn(p, profile_set_at(profile, PROFILE_SHARED),
			     "the cluster is not partitioned, so platform pods share these CPUs");
}

void check_types(const struct partition *part, struct problem_list *p)
{
	const struct profile *profile = part->profile;
	const struct cpuset *reserved = &part->cpus[PROFILE_RESERVED];
	const struct problem_at at = PROBLEM_AT(
		profile->at.doc,
		doc_get(doc_find(profile->at.object, "/metadata/annotations"), STR(NAME_TYPES)),
		"metadata.annotations." NAME_TYPES);

	if (profile->n_types && profile_pins_nothing(profile))
		problem_error(p, at,
			      "spec.cpu.workloads must contain Infrastructure: without it "
			      "no workload type has CPUs of its own");
	for (size_t i = 0; i < profile->n_types; i++) {
		const struct pool_type *t = &profile->types[i];
		struct cpuset wrong = t->cpus;

		cpuset_minus(&wrong, reserved);
		if (cpuset_is_empty(&t->cpus))
			problem_error(p, at, "workload type %s has no CPUs", t->name);
		/* An expression is empty as long as no machine is known. */
		else if (!cpuset_is_empty(reserved) && !cpuset_is_empty(&wrong))
			problem_error(p, at,
				      "CPUs " PRI_STR " of workload type %s are not reserved",
				      FMT_STR(cpuset_format(&wrong, p->a)), t->name);
	}
}

static void check_present(const struct partition *part, struct problem_list *p)
{
	struct cpuset there = part->topology->online;

	/* On a machine that already runs with the profile, offlined CPUs are offline. */
	cpuset_union(&there, &part->topology->offline);
	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		struct cpuset missing = part->cpus[id];

		cpuset_minus(&missing, &there);
		if (!cpuset_is_empty(&missing))
			problem_error(p, profile_set_at(part->profile, (enum profile_set_id)id),
				      "the machine has no CPUs " PRI_STR ", only " PRI_STR,
				      FMT_STR(cpuset_format(&missing, p->a)),
				      FMT_STR(cpuset_format(&there, p->a)));
	}
}

/* One finding per pair of sets, with the CPUs of both sides, not one per core. */
static void check_split_pair(const struct partition *part, enum profile_set_id x,
			     enum profile_set_id y, enum problem_level level,
			     struct problem_list *p)
{
	struct cpuset cores, other;

	/* First the CPUs of y that are siblings of x, then the CPUs of x that they belong to. */
	topology_whole(part->topology, TOPOLOGY_CORE, &part->cpus[x], &cores);
	other = part->cpus[y];
	cpuset_intersect(&other, &cores);
	cpuset_minus(&other, &part->cpus[x]);
	if (cpuset_is_empty(&other))
		return;
	topology_whole(part->topology, TOPOLOGY_CORE, &other, &cores);
	cpuset_intersect(&cores, &part->cpus[x]);
	problem_add(p, level, profile_set_at(part->profile, y),
		    "cores are split between %s and %s: CPUs " PRI_STR " are siblings of " PRI_STR,
		    profile_set_name(x), profile_set_name(y), FMT_STR(cpuset_format(&cores, p->a)),
		    FMT_STR(cpuset_format(&other, p->a)));
}

/* An offlined sibling is how SMT is turned off for a core: that is no split. */
static void check_split(const struct partition *part, enum problem_level level,
			struct problem_list *p)
{
	for (int x = 0; x < PROFILE_SET__COUNT; x++)
		for (int y = x + 1; y < PROFILE_SET__COUNT; y++)
			if (x != PROFILE_OFFLINED && y != PROFILE_OFFLINED)
				check_split_pair(part, (enum profile_set_id)x,
						 (enum profile_set_id)y, level, p);
}

/* The kubelet option full-pcpus-only: set by the user, or by kubelet_config.c for this policy
 * (docs/reference/cpu-manager.md#full-pcpus-only). */
static bool gives_whole_cores(const struct profile *profile)
{
	yyjson_val *option =
		doc_find(profile->kubelet_base, "/cpuManagerPolicyOptions/full-pcpus-only");

	if (option)
		return str_eq(doc_str(option), STR("true"));
	return str_eq(profile->topology_policy, STR("single-numa-node"));
}

static void check_unusable(const struct partition *part, enum problem_level level,
			   struct problem_list *p)
{
	struct cpuset usable = part->cpus[PROFILE_ISOLATED], split;

	if (!gives_whole_cores(part->profile))
		return;
	/* The core of an offlined sibling is whole again once that one is offline. */
	cpuset_union(&usable, &part->cpus[PROFILE_OFFLINED]);
	topology_split(part->topology, TOPOLOGY_CORE, &usable, &split);
	cpuset_intersect(&split, &part->cpus[PROFILE_ISOLATED]);
	if (!cpuset_is_empty(&split))
		problem_add(p, level, profile_set_at(part->profile, PROFILE_ISOLATED),
			    "CPUs " PRI_STR
			    " can never be assigned: full-pcpus-only assigns whole cores",
			    FMT_STR(cpuset_format(&split, p->a)));
}

/* Interrupts and kernel threads of a node then run on another one, or on guaranteed CPUs. */
static void check_housekeeping(const struct partition *part, struct problem_list *p)
{
	const struct topology_elements *nodes = &part->topology->level[TOPOLOGY_NUMA];
	struct cpuset housekeeping = part->cpus[PROFILE_RESERVED];

	cpuset_union(&housekeeping, &part->cpus[PROFILE_SHARED]);
	for (unsigned i = 0; i < nodes->n; i++) {
		struct cpuset node = { 0 };

		topology_add_element(part->topology, TOPOLOGY_NUMA, i, &node);
		cpuset_minus(&node, &part->cpus[PROFILE_OFFLINED]);
		if (!cpuset_is_empty(&node) && !cpuset_intersects(&node, &housekeeping))
			problem_warn(p, profile_set_at(part->profile, PROFILE_RESERVED),
				     "NUMA node %u has no reserved or shared CPU", nodes->ids[i]);
	}
}

/* With pools the agent uses the three pools only. Without, the kubelet knows only the reserved set,
 * and CPUs that no set names are in its shared pool. */
static void check_uncovered(const struct partition *part, struct problem_list *p)
{
	struct cpuset rest = part->topology->online;

	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		cpuset_minus(&rest, &part->cpus[id]);
	if (!cpuset_is_empty(&rest))
		problem_warn(p, cpu_at(part->profile), "CPUs " PRI_STR " are in no set: %s",
			     FMT_STR(cpuset_format(&rest, p->a)),
			     profile_has_pools(part->profile) ? "no container runs there" :
								"they belong to the shared pool");
}

void check_size(const struct partition *part, unsigned n_cpus, struct problem_list *p)
{
	unsigned have = cpuset_count(&part->cpus[PROFILE_RESERVED]);
	/* Interrupts, kernel threads and DaemonSets grow with the machine; two CPUs are the least
	 * on which a kubelet, a runtime and the platform's pods start in time. */
	unsigned want = n_cpus < 4 ? n_cpus / 2 : n_cpus <= 64 ? 2 : (n_cpus + 31) / 32;

	if (have < want)
		problem_warn(p, profile_set_at(part->profile, PROFILE_RESERVED),
			     "%u reserved CPU%s for a machine with %u CPUs: at least %u are "
			     "recommended, "
			     "or platform pods start slowly and time out",
			     have, have == 1 ? "" : "s", n_cpus, want);
}

void check_hardware(const struct partition *part, bool allow_split_cores, struct problem_list *p)
{
	enum problem_level level = allow_split_cores ? PROBLEM_WARNING : PROBLEM_ERROR;

	check_present(part, p);
	check_split(part, level, p);
	check_unusable(part, level, p);
	check_housekeeping(part, p);
	check_uncovered(part, p);
}
