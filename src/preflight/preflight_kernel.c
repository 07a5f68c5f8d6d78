/* The kernel's features and limits. The oldest kernel is that of RHEL 8, the oldest with nodes of a
 * supported Kubernetes. */

#include <inttypes.h>

#include "base/arena.h"
#include "base/macro.h"
#include "preflight_node.h"

#define INOTIFY_INSTANCES 1024 /* containerd and CRI-O use one for each container */
#define INOTIFY_WATCHES 16384  /* the agent has two for each container, kubelets more */

static void check_version(const struct machine_facts *f, struct preflight_report *r)
{
	unsigned version[2];

	if (!preflight_version(f->kernel, version)) {
		preflight_add(r, PREFLIGHT_KERNEL_VERSION_CHECK, PREFLIGHT_NOTE,
			      STR("the kernel's version is not known"),
			      STR("is /proc mounted below the root directory?"));
		return;
	}
	preflight_add(r, PREFLIGHT_KERNEL_VERSION_CHECK,
		      preflight_is_older(version, 4, 18) ? PREFLIGHT_FAILURE : PREFLIGHT_OK,
		      str_printf(r->a, "Linux " PRI_STR, FMT_STR(f->kernel)),
		      preflight_is_older(version, 4, 18) ?
			      STR("use Linux 4.18 or later; 5.13 or later for Landlock") :
			      STR(""));
	preflight_add(r, PREFLIGHT_ISOLATED_PARTITIONS_CHECK, PREFLIGHT_NOTE,
		      preflight_is_older(version, 6, 7) || f->cgroup_version == 1 ?
			      STR("--isolated-partitions is not available") :
			      STR("--isolated-partitions is available"),
		      preflight_is_older(version, 6, 7) || f->cgroup_version == 1 ?
			      STR("it needs Linux 6.7 and cgroup v2; without it use isolcpus=") :
			      STR(""));
}

static bool has_word(struct str list, struct str word)
{
	struct str_split split = str_split(list);
	struct str item;

	while (str_next(&split, ' ', &item))
		if (str_eq(str_trim(item), word))
			return true;
	return false;
}

static void check_controllers(const struct machine_facts *f, struct preflight_report *r)
{
	static const struct str wanted[] = { STR_INIT("cpuset"), STR_INIT("cpu") };

	if (f->cgroup_version != 2)
		return;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (!has_word(f->controllers, wanted[i])) {
			preflight_add(r, PREFLIGHT_CGROUP_CONTROLLERS_CHECK, PREFLIGHT_FAILURE,
				      str_printf(r->a, "cgroup controller " PRI_STR " is missing",
						 FMT_STR(wanted[i])),
				      STR("remove cgroup_disable= from the kernel arguments and "
					  "cgroup v1 mounts of this controller"));
			return;
		}
	preflight_add(r, PREFLIGHT_CGROUP_CONTROLLERS_CHECK, PREFLIGHT_OK,
		      STR("cgroup controllers cpuset and cpu are available"), STR(""));
}

static void check_cgroups(const struct machine_facts *f, struct preflight_report *r)
{
	if (f->cgroup_version == 2)
		preflight_add(r, PREFLIGHT_CGROUP_VERSION_CHECK, PREFLIGHT_OK, STR("cgroup v2"),
			      STR(""));
	else if (f->cgroup_version == 1)
		preflight_add(r, PREFLIGHT_CGROUP_VERSION_CHECK, PREFLIGHT_WARNING,
			      STR("cgroup v1, which kubelets from 1.35 on refuse by default"),
			      STR("boot with systemd.unified_cgroup_hierarchy=1"));
	else
		preflight_add(r, PREFLIGHT_CGROUP_VERSION_CHECK, PREFLIGHT_FAILURE,
			      STR("no cgroup hierarchy at /sys/fs/cgroup"),
			      STR("mount it, or name it with the agent's --cgroup-root"));
	check_controllers(f, r);
}

static void check_inotify(const struct machine_facts *f, struct preflight_report *r)
{
	const bool is_low = f->inotify_instances < INOTIFY_INSTANCES ||
			    f->inotify_watches < INOTIFY_WATCHES;

	if (!f->inotify_instances || !f->inotify_watches)
		return;
	preflight_add(r, PREFLIGHT_INOTIFY_CHECK, is_low ? PREFLIGHT_WARNING : PREFLIGHT_OK,
		      str_printf(r->a,
				 "%" PRIu64 " inotify instances and %" PRIu64 " watches per user",
				 f->inotify_instances, f->inotify_watches),
		      is_low ? STR("sysctl fs.inotify.max_user_instances=8192 "
				   "fs.inotify.max_user_watches=524288, and in /etc/sysctl.d") :
			       STR(""));
}

static void check_confinement(const struct machine_facts *f, struct preflight_report *r)
{
	if (f->landlock != FACT_UNKNOWN)
		preflight_add(
			r, PREFLIGHT_LANDLOCK_CHECK,
			f->landlock == FACT_YES ? PREFLIGHT_OK : PREFLIGHT_NOTE,
			f->landlock == FACT_YES ?
				STR("Landlock restricts the files that the agent writes") :
				STR("no Landlock: the agent's write access is not restricted"),
			f->landlock == FACT_YES ?
				STR("") :
				STR("Linux 5.13 or later, with landlock in lsm=; the unit's "
				    "ProtectSystem= applies in any case"));
	if (f->seccomp != FACT_UNKNOWN)
		preflight_add(r, PREFLIGHT_SECCOMP_CHECK,
			      f->seccomp == FACT_YES ? PREFLIGHT_OK : PREFLIGHT_FAILURE,
			      f->seccomp == FACT_YES ? STR("seccomp filters are available") :
						       STR("the kernel has no seccomp filters"),
			      f->seccomp == FACT_YES ?
				      STR("") :
				      STR("use a kernel with CONFIG_SECCOMP_FILTER, or start the "
					  "agent with --no-confinement"));
}

void preflight_kernel(const struct machine_facts *f, struct preflight_report *r)
{
	check_version(f, r);
	check_cgroups(f, r);
	check_inotify(f, r);
	check_confinement(f, r);
}
