/* Pools against the machine: cores, NUMA nodes, isolated CPUs, interrupts. */

#include "base/arena.h"
#include "base/macro.h"
#include "preflight_node.h"

static void check_pools(const struct machine_facts *f, struct preflight_report *r)
{
	if (f->pools_error.code)
		preflight_add(r, PREFLIGHT_POOLS_CHECK, PREFLIGHT_FAILURE,
			      str_dup(r->a, str_from(f->pools_error.msg)),
			      STR("correct it; `pinfold profile check --topology host` checks a "
				  "profile against this machine"));
	else if (!f->has_pools)
		preflight_add(r, PREFLIGHT_POOLS_CHECK, PREFLIGHT_NOTE,
			      STR("this node has neither a pools file nor a kubelet marker"),
			      STR("apply a PerformanceProfile, install a bundle of `pinfold render "
				  "--target host`, or give the agent --management, --shared and "
				  "--guaranteed"));
	else
		preflight_add(
			r, PREFLIGHT_POOLS_CHECK, PREFLIGHT_OK,
			f->pools.is_classic ?
				str_printf(r->a, "%s: management " PRI_STR, f->pools_from,
					   FMT_STR(cpuset_format(&f->pools.reserved, r->a))) :
				str_printf(r->a,
					   "%s: management " PRI_STR ", shared " PRI_STR
					   ", guaranteed " PRI_STR,
					   f->pools_from,
					   FMT_STR(cpuset_format(&f->pools.reserved, r->a)),
					   FMT_STR(cpuset_format(&f->pools.shared, r->a)),
					   FMT_STR(cpuset_format(&f->pools.guaranteed, r->a))),
			STR(""));
}

/* CPUs of cores that belong to more than one pool: their threads disturb each other. */
static struct cpuset split_cores(const struct machine_facts *f)
{
	const struct cpuset *const sets[] = { &f->pools.reserved, &f->pools.guaranteed };
	struct cpuset split = { 0 }, some;

	for (size_t i = 0; f->has_pools && i < ARRAY_LEN(sets); i++) {
		topology_split(&f->topology, TOPOLOGY_CORE, sets[i], &some);
		cpuset_union(&split, &some);
	}
	return split;
}

static void check_smt(const struct machine_facts *f, struct preflight_report *r)
{
	const struct cpuset split = split_cores(f);
	const unsigned threads = f->topology.level[TOPOLOGY_CORE].max_size;

	if (!cpuset_is_empty(&split))
		preflight_add(r, PREFLIGHT_SMT_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a,
					 "SMT is on, and pools split the cores of CPUs " PRI_STR
					 ": threads of one core share its caches and execution "
					 "units",
					 FMT_STR(cpuset_format(&split, r->a))),
			      STR("give whole cores to pools; `pinfold topology` shows siblings"));
	else
		preflight_add(r, PREFLIGHT_SMT_CHECK, PREFLIGHT_OK,
			      threads > 1 ? str_printf(r->a, "SMT is on, %u threads for each core",
						       threads) :
					    STR("SMT is off"),
			      STR(""));
}

static void check_numa(const struct machine_facts *f, struct preflight_report *r)
{
	const unsigned n = f->topology.level[TOPOLOGY_NUMA].n;
	const bool ignores = n > 1 && f->has_pools && f->pools.topology.policy == HINT_POLICY_NONE;

	preflight_add(r, PREFLIGHT_NUMA_CHECK, ignores ? PREFLIGHT_WARNING : PREFLIGHT_OK,
		      ignores ?
			      str_printf(r->a,
					 "%u NUMA nodes, and topology policy none: exclusive CPUs "
					 "may come from several",
					 n) :
			      str_count(r->a, n, "NUMA node", "NUMA nodes"),
		      ignores ? STR("set spec.numa.topologyPolicy of the profile, or "
				    "--topology-policy") :
				STR(""));
}

/* The scheduler moves no task between isolated CPUs: containers with a set of them stay on one. */
static void check_isolcpus(const struct machine_facts *f, struct preflight_report *r)
{
	struct cpuset wrong = f->isolcpus, guaranteed;

	if (!f->has_isolcpus || !f->has_pools)
		return;
	pool_config_guaranteed(&f->pools, &f->topology, &guaranteed);
	cpuset_minus(&wrong, &guaranteed);
	if (cpuset_is_empty(&wrong))
		preflight_add(r, PREFLIGHT_ISOLCPUS_CHECK, PREFLIGHT_OK,
			      STR("isolcpus= has only guaranteed CPUs"), STR(""));
	else
		preflight_add(r, PREFLIGHT_ISOLCPUS_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a,
					 "isolcpus= has CPUs " PRI_STR
					 " of other pools: the kernel does not balance load there",
					 FMT_STR(cpuset_format(&wrong, r->a))),
			      STR("remove them from isolcpus= and reboot"));
}

/* CPUs that interrupts have to stay away from. */
static bool quiet_cpus(const struct machine_facts *f, struct cpuset *ret)
{
	*ret = f->isolcpus;
	if (!f->has_isolcpus && f->has_pools)
		*ret = f->pools.guaranteed;
	return !cpuset_is_empty(ret);
}

static void check_irqs(const struct machine_facts *f, struct preflight_report *r)
{
	struct cpuset quiet, wrong;
	const char *what = "irqaffinity=";

	if (!quiet_cpus(f, &quiet))
		return;
	wrong = f->has_irqaffinity ? f->irqaffinity : f->irq_default;
	if (!f->has_irqaffinity)
		what = "the default affinity of interrupts";
	cpuset_intersect(&wrong, &quiet);
	if (cpuset_is_empty(&wrong)) {
		wrong = f->irq_cpus;
		what = "the affinity of interrupts";
		cpuset_intersect(&wrong, &quiet);
	}
	if (cpuset_is_empty(&wrong))
		preflight_add(r, PREFLIGHT_IRQ_AFFINITY_CHECK, PREFLIGHT_OK,
			      STR("interrupts stay off isolated and guaranteed CPUs"), STR(""));
	else
		preflight_add(r, PREFLIGHT_IRQ_AFFINITY_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a, "%s has %s CPUs " PRI_STR, what,
					 f->has_isolcpus ? "isolated" : "guaranteed",
					 FMT_STR(cpuset_format(&wrong, r->a))),
			      STR("set irqaffinity= to the management CPUs; irqbalance: "
				  "IRQBALANCE_BANNED_CPULIST. Few management CPUs may have too few "
				  "interrupt vectors: reduce the queues of network devices "
				  "(ethtool -L)"));
}

void preflight_cpus(const struct machine_facts *f, struct preflight_report *r)
{
	check_pools(f, r);
	if (!f->has_topology)
		return;
	check_smt(f, r);
	check_numa(f, r);
	check_isolcpus(f, r);
	check_irqs(f, r);
}
