#include "host_plan.h"

bool host_cpus_decide(const struct host_pools *pools, struct host_cpus *ret)
{
	struct host_cpus c = { *pools->management, *pools->online };

	cpuset_intersect(&c.services, pools->online);
	cpuset_minus(&c.housekeeping, pools->guaranteed);
	if (cpuset_is_empty(&c.services))
		return false;
	/* Management CPUs are never guaranteed ones, except while no other is online. */
	cpuset_union(&c.housekeeping, &c.services);
	*ret = c;
	return true;
}

bool host_cpus_eq(const struct host_cpus *a, const struct host_cpus *b)
{
	return cpuset_eq(&a->services, &b->services) &&
	       cpuset_eq(&a->housekeeping, &b->housekeeping);
}

void host_mask_within(const struct cpuset *original, const struct cpuset *allowed,
		      struct cpuset *ret)
{
	struct cpuset s = *original;

	cpuset_intersect(&s, allowed);
	*ret = cpuset_is_empty(&s) ? *allowed : s;
}

bool host_cgroup_is_pods(struct str name)
{
	return str_starts(name, STR("kubepods")) || str_has(name, STR("-kubepods"));
}

bool host_unit_is_service(struct str name, bool has_pods)
{
	if (has_pods || host_cgroup_is_pods(name) || str_eq(name, STR("machine.slice")))
		return false;
	return str_eq(name, STR("init.scope")) || str_ends(name, STR(".slice"));
}

/* Names that runtimes and virtual machine managers give to cgroups of theirs. */
static bool is_container(struct str name)
{
	static const struct str prefixes[] = {
		STR_INIT("machine"), STR_INIT("libpod"), STR_INIT("docker"), STR_INIT("lxc"),
		STR_INIT("crio-"),   STR_INIT("cri-"),	 STR_INIT("nspawn"),
	};

	if (str_starts(name, STR("docker.")) || str_starts(name, STR("lxc.service")))
		return false; /* services, not containers */
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	return host_cgroup_is_pods(name);
}

bool host_process_is_service(struct str cgroups)
{
	struct str_split lines = str_split(cgroups);
	struct str line, part;

	while (str_next(&lines, '\n', &line)) {
		struct str_split parts = str_split(line);

		(void)str_next(&parts, '/', &part); /* "0::" */
		while (str_next(&parts, '/', &part))
			if (is_container(part))
				return false;
	}
	return true;
}

bool host_mask_decide(const struct host_mask *m, struct cpuset *ret)
{
	if (cpuset_is_subset(m->now, m->allowed) && !(m->is_changed && m->original))
		return false;
	host_mask_within(m->original ? m->original : m->now, m->allowed, ret);
	return !cpuset_eq(ret, m->now);
}
