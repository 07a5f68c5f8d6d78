/* A remedy is for a group, not for a process: a host has hundreds of processes, and all services of
 * a slice are restricted by one setting. */

#include "foreign.h"

#include "base/arena.h"

#define NAMES_SHOWN 5

/* The first component of a cgroup path: "system.slice" of "/system.slice/cron.service". */
static struct str top_of(struct str cgroup)
{
	struct str_split parts = str_split(str_skip(cgroup, 1));
	struct str top = STR("");

	(void)str_next(&parts, '/', &top);
	return top;
}

/* The unit whose setting a shim inherits: "k3s.service" of "/system.slice/k3s.service". */
static struct str service_of(struct str cgroup)
{
	struct str_split parts = str_split(cgroup);
	struct str part;

	while (str_next(&parts, '/', &part))
		if (str_ends(part, STR(".service")))
			return part;
	return STR("containerd.service");
}

static bool is_shim(const struct foreign_process *p)
{
	return str_starts(p->name, STR("containerd-shim")); /* the kernel keeps 15 bytes */
}

static bool is_monitor(const struct foreign_process *p)
{
	return str_eq(p->name, STR("conmon"));
}

static bool is_pods(struct str top)
{
	return str_eq(top, STR("kubepods")) || str_eq(top, STR("kubepods.slice"));
}

static bool is_unit(struct str top)
{
	return str_ends(top, STR(".slice")) || str_ends(top, STR(".scope"));
}

static struct str name_of(const struct foreign_process *p)
{
	const struct str top = top_of(p->cgroup);

	if (is_shim(p))
		return STR("container shims");
	if (is_monitor(p))
		return STR("container monitors");
	if (is_pods(top))
		return STR("containers unknown to the agent");
	return is_unit(top) ? top : STR("processes outside systemd units");
}

/* AllowedCPUs= needs the cpuset controller of cgroup v2 (systemd.resource-control(5)). It reaches
 * running processes; CPUAffinity= only those that are started later. */
static struct str unit_remedy(struct str unit, const struct foreign_host *host, struct str cpus,
			      struct arena *a)
{
	if (host->version == CGROUP_V2)
		return str_printf(a, "systemctl set-property " PRI_STR " AllowedCPUs=" PRI_STR,
				  FMT_STR(unit), FMT_STR(cpus));
	return str_printf(a,
			  "set CPUAffinity=" PRI_STR
			  " in /etc/systemd/system.conf and restart the services of " PRI_STR,
			  FMT_STR(cpus), FMT_STR(unit));
}

static struct str remedy_of(const struct foreign_process *p, const struct foreign_host *host,
			    struct arena *a)
{
	const struct str cpus = host->management.n ? host->management : STR("LIST");
	const struct str top = top_of(p->cgroup);

	if (is_shim(p))
		return unit_remedy(service_of(p->cgroup), host, cpus, a);
	if (is_monitor(p) && is_pods(top))
		return str_printf(
			a,
			"set conmon_cgroup = \"system.slice\" in the configuration of "
			"CRI-O, recreate the pods, and restrict that slice to CPUs " PRI_STR,
			FMT_STR(cpus));
	if (is_pods(top))
		return STR("see pinfold status: the runtime did not report these containers to the "
			   "agent");
	if (is_unit(top))
		return unit_remedy(top, host, cpus, a);
	return str_printf(a, "taskset -a -c -p " PRI_STR " PID for each process", FMT_STR(cpus));
}

static struct foreign_group *group_of(struct foreign_group *groups, size_t *n, struct str name)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq(groups[i].name, name))
			return &groups[i];
	groups[*n] = (struct foreign_group){ .name = name };
	return &groups[(*n)++];
}

/* A process chooses its name: control characters would reach the terminal, and a comma separates
 * names here. */
static struct str printable(struct str name, struct arena *a)
{
	char *copy = arena_alloc(a, name.n + 1, 1);

	for (size_t i = 0; i < name.n; i++) {
		const unsigned char c = (unsigned char)name.p[i];

		copy[i] = c < 0x20 || c == 0x7f || c == ',' ? '?' : name.p[i];
	}
	return (struct str){ copy, name.n };
}

static bool lists_name(struct str names, struct str name)
{
	struct str_split split = str_split(names);
	struct str item;

	while (str_next(&split, ',', &item))
		if (str_eq(str_trim(item), name))
			return true;
	return false;
}

static size_t count_names(struct str names)
{
	size_t n = names.n > 0;

	for (size_t i = 0; i < names.n; i++)
		n += names.p[i] == ',';
	return n;
}

static void add_name(struct foreign_group *g, struct str name, struct arena *a)
{
	const size_t n = count_names(g->names);

	if (n > NAMES_SHOWN || lists_name(g->names, name))
		return;
	if (n == NAMES_SHOWN)
		name = STR("...");
	g->names = str_printf(a, PRI_STR "%s" PRI_STR, FMT_STR(g->names), n ? ", " : "",
			      FMT_STR(name));
}

void foreign_groups(const struct audit *t, const struct foreign_host *host, struct arena *a,
		    struct foreign_group **ret, size_t *ret_n)
{
	struct foreign_group *groups = arena_array(a, struct foreign_group, t->n_foreign);
	size_t n = 0;

	for (size_t i = 0; i < t->n_foreign; i++) {
		const struct foreign_process *p = &t->foreign_processes[i];
		struct foreign_group *g = group_of(groups, &n, name_of(p));

		if (g->n++ == 0)
			g->remedy = remedy_of(p, host, a);
		cpuset_union(&g->cpus, &p->cpus);
		add_name(g, printable(p->name, a), a);
	}
	*ret = groups;
	*ret_n = n;
}
