/* One list, used in three ways: as the boot loader's line on other hosts, as the length check for
 * both targets, and in parts by TuneD's [bootloader] section. */

#include "kernel_args.h"

#include "base/arena.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "profile/layout.h"

static bool has_size(const struct profile *profile, struct str size, bool per_node)
{
	for (size_t i = 0; i < profile->n_hugepages; i++)
		if (str_eq(profile->hugepages[i].size, size) &&
		    (profile->hugepages[i].node >= 0) == per_node)
			return true;
	return false;
}

/* With a default of 1G, 2M pages of single nodes need their size to be announced
 * (docs/reference/openshift-render.md#kernel-arguments). Order matters: the kernel applies a
 * `hugepages` to the `hugepagesz` before it. The blanks are those of the operator's template. */
struct str kernel_args_hugepages(const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	struct strbuf b;

	strbuf_init(&b, a);
	if (profile->default_hugepages.n)
		strbuf_printf(&b, " default_hugepagesz=" PRI_STR "  ",
			      FMT_STR(profile->default_hugepages));
	for (size_t i = 0; i < profile->n_hugepages; i++)
		if (profile->hugepages[i].node < 0)
			strbuf_printf(&b, " hugepagesz=" PRI_STR " hugepages=%lld ",
				      FMT_STR(profile->hugepages[i].size),
				      (long long)profile->hugepages[i].count);
	if (str_eq(profile->default_hugepages, STR("1G")) && has_size(profile, STR("2M"), true) &&
	    !has_size(profile, STR("2M"), false))
		strbuf_add(&b, STR(" hugepagesz=2M hugepages=0 "));
	return strbuf_str(&b);
}

struct cpuset kernel_args_housekeeping(const struct partition *part)
{
	struct cpuset set = part->cpus[PROFILE_RESERVED];

	if (part->topology)
		set = part->topology->online;
	else
		cpuset_union(&set, &part->cpus[PROFILE_SHARED]);
	cpuset_minus(&set, &part->cpus[PROFILE_ISOLATED]);
	cpuset_minus(&set, &part->cpus[PROFILE_OVS_DPDK]);
	cpuset_minus(&set, &part->cpus[PROFILE_OFFLINED]);
	return set;
}

struct cpuset kernel_args_isolated(const struct partition *part)
{
	struct cpuset set = part->cpus[PROFILE_ISOLATED];

	cpuset_union(&set, &part->cpus[PROFILE_OVS_DPDK]);
	return set;
}

struct adding {
	struct arena *a;
	struct kernel_args *args;
};

static void add(struct adding *to, struct str arg)
{
	to->args->items[to->args->n++] = arg;
}

static void add_cpus(struct adding *to, const char *prefix, const struct cpuset *cpus)
{
	add(to, str_printf(to->a, "%s" PRI_STR, prefix, FMT_STR(cpuset_format(cpus, to->a))));
}

static void add_words(struct adding *to, struct str words)
{
	struct str_split split = str_split(words);
	struct str word;

	while (str_next(&split, ' ', &word))
		if (word.n)
			add(to, word);
}

/* All but the affinity of systemd only where there are CPUs to keep free: an empty list means all
 * CPUs to some of these arguments. */
static void add_isolation(struct adding *to, const struct partition *part)
{
	const struct profile *profile = part->profile;
	struct cpuset isolated = kernel_args_isolated(part),
		      housekeeping = kernel_args_housekeeping(part);

	if (cpuset_is_empty(&isolated)) {
		add_cpus(to, "systemd.cpu_affinity=", &part->cpus[PROFILE_RESERVED]);
		return;
	}
	add(to, STR("nohz=on"));
	add_cpus(to, "rcu_nocbs=", &isolated);
	add_cpus(to, "nohz_full=", &isolated);
	/* `domain` also ends load balancing between these CPUs, so that the threads of a container
	 * stay where they are started. Hence it is an option. */
	add_cpus(to,
		 profile->balance_isolated ? "isolcpus=managed_irq," :
					     "isolcpus=domain,managed_irq,",
		 &isolated);
	add_cpus(to, "irqaffinity=", &housekeeping);
	add_cpus(to, "systemd.cpu_affinity=", &part->cpus[PROFILE_RESERVED]);
	add(to, STR("skew_tick=1"));
	if (profile->hint_realtime) {
		add(to, STR("nosoftlockup"));
		add(to, STR("rcutree.kthread_prio=11"));
	}
}

void kernel_args_build(const struct partition *part, struct arena *a, struct kernel_args *ret)
{
	const struct profile *profile = part->profile;
	struct adding to = { .a = a };

	/* 12 at most do not come from the profile's lists. */
	*ret = (struct kernel_args){
		arena_array(a, struct str, 16 + profile->n_hugepages * 2 + profile->n_kernel_args),
		0,
	};
	to.args = ret;
	add_isolation(&to, part);
	add_words(&to, kernel_args_hugepages(part, a));
	for (size_t i = 0; i < profile->n_kernel_args; i++)
		add(&to, profile->kernel_args[i]);
}

struct str kernel_args_join(const struct kernel_args *args, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < args->n; i++) {
		if (i)
			strbuf_addc(&b, ' ');
		strbuf_add(&b, args->items[i]);
	}
	return strbuf_str(&b);
}

void kernel_args_check(const struct partition *part, struct arena *a, struct problem_list *p)
{
	struct cpuset rest = kernel_args_housekeeping(part);
	struct kernel_args args;
	size_t n;

	kernel_args_build(part, a, &args);
	/* TuneD's line has the affinity CPU by CPU and a mask in addition. The sum bounds both
	 * lines; the kernel cuts off a longer one without an error. */
	n = kernel_args_join(&args, a).n + cpuset_format_expanded(&rest, a).n +
	    cpuset_format_words(&rest, a).n + sizeof("tuned.non_isolcpus=");
	if (n > KERNEL_ARGS_MAX)
		problem_error(p, profile_set_at(part->profile, PROFILE_ISOLATED),
			      "the kernel arguments have %zu bytes, and the kernel reads only %d: "
			      "use CPU sets with fewer ranges",
			      n, KERNEL_ARGS_MAX);
}
