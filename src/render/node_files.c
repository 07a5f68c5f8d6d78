/* Paths, names and texts are those of the Node Tuning Operator, because MachineConfigs replace each
 * other's files by path and users look for these names. The scripts are our own. Kernel
 * arguments are not here: see tuned.c and host.c. */

#include "node_files.h"

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "pinning.h"
#include "profile/layout.h"
#include "scripts.h"

static void add_defaults(struct node_config *c, const struct default_files *files, bool quota_keys,
			 struct arena *a)
{
	const struct workload_cpus all = { STR(NAME_TYPE_MANAGEMENT), STR("") };

	/* An empty CPU set pins nothing, but makes the kubelet advertise the resource. */
	if (files->marker)
		node_config_add(c, NAME_KUBELET_MARKER, MODE_PRIVATE, pinning_marker(&all, 1, a));
	if (files->drop_in)
		node_config_add(c, str_printf(a, NAME_CRIO_DIR "%s", files->drop_in).p, MODE_PLAIN,
				pinning_crio(&all, 1, quota_keys, a));
}

void node_files_bootstrap(const struct default_files *files, bool quota_keys, struct arena *a,
			  struct node_config *ret)
{
	node_config_init(ret, a);
	add_defaults(ret, files, quota_keys, a);
}

static void add_pinning(struct node_config *c, const struct partition *part,
			const struct node_files_options *o, struct arena *a)
{
	struct workload_cpus *w;
	const size_t n = pinning_workloads(part, a, &w);

	/* The cluster's flag decides (docs/reference/openshift-render.md#pinning-files), unless the
	 * profile says explicitly that it pins nothing. OpenShift merges its files with the default
	 * ones; those of a host are complete. */
	if (o->pinned && profile_pins_nothing(part->profile)) {
		if (o->plain_host)
			add_defaults(c,
				     &(struct default_files){
					     true, o->no_crio ? NULL : NAME_CRIO_DEFAULT },
				     o->quota_keys, a);
	} else if (o->pinned) {
		if (!o->no_crio)
			node_config_add(c, NAME_CRIO_DIR NAME_CRIO_PINNING, MODE_PLAIN,
					pinning_crio(w, n, o->quota_keys, a));
		node_config_add(c, NAME_KUBELET_MARKER, MODE_PRIVATE, pinning_marker(w, n, a));
	}
	/* In classic mode the marker is enough, except for reserved CPUs that no type has. */
	if (profile_has_pools(part->profile) || part->profile->n_types)
		node_config_add(c, NAME_POOLS_FILE, MODE_PLAIN, pinning_pools(part, a));
}

/* Packets of virtual devices are steered to reserved CPUs by default
 * (docs/reference/openshift-render.md#profile-annotations). */
static void add_rps(struct node_config *c, const struct partition *part, struct arena *a)
{
	if (!part->profile->rps)
		return;
	node_config_add(
		c, "/etc/sysctl.d/99-default-rps-mask.conf", MODE_PLAIN,
		str_printf(a,
			   "# Receive packet steering of new network devices: the reserved CPUs.\n"
			   "net.core.rps_default_mask = " PRI_STR "\n",
			   FMT_STR(cpuset_format_words(&part->cpus[PROFILE_RESERVED], a))));
	if (part->profile->rps_on_physical)
		return;
	node_config_add(c, "/usr/local/bin/set-rps-mask.sh", MODE_SCRIPT, STR(SET_RPS_MASK_SH));
	node_config_add(c, "/etc/udev/rules.d/99-netdev-physical-rps.rules", MODE_PLAIN,
			STR("# Physical devices have hardware queues: no software steering.\n"
			    "SUBSYSTEM==\"net\", ACTION==\"add\", "
			    "ENV{DEVPATH}!=\"/devices/virtual/net/*\", "
			    "TAG+=\"systemd\", ENV{SYSTEMD_WANTS}=\"update-rps@%k.service\"\n"));
	node_config_add_unit(c, "update-rps@.service", STR(UNIT_RPS_MASK));
	c->units[c->n_units - 1].enabled = false; /* a template, which the rule above starts */
}

/* The profile's reader accepts only sizes such as 64k, 2M and 1G. */
static long size_kib(struct str size)
{
	uint64_t n = 0;

	(void)str_to_u64((struct str){ size.p, size.n - 1 }, 1024, &n);
	switch (size.p[size.n - 1]) {
	case 'G':
		n *= 1024;
		__attribute__((fallthrough));
	case 'M':
		n *= 1024;
	}
	return (long)n;
}

/* Pages of one NUMA node. They are allocated before the kubelet starts and counts them. All
 * other pages are kernel arguments. */
static void add_hugepages(struct node_config *c, const struct partition *part, struct arena *a)
{
	for (size_t i = 0; i < part->profile->n_hugepages; i++) {
		const struct hugepages *h = &part->profile->hugepages[i];
		struct str name;

		if (h->node < 0)
			continue;
		name = str_printf(a, "hugepages-allocation-%ldkB-NUMA%lld.service",
				  size_kib(h->size), (long long)h->node);
		node_config_add(c, "/usr/local/bin/hugepages-allocation.sh", MODE_SCRIPT,
				STR(HUGEPAGES_ALLOCATION_SH));
		node_config_add_unit(c, name.p,
				     str_printf(a, UNIT_HUGEPAGES, size_kib(h->size),
						(long long)h->node, (long long)h->count,
						size_kib(h->size), (long long)h->node));
	}
}

static void add_offline(struct node_config *c, const struct partition *part, struct arena *a)
{
	/* CPU by CPU: the script splits the list at commas and knows no ranges. */
	struct str cpus = cpuset_format_expanded(&part->cpus[PROFILE_OFFLINED], a);

	if (!cpus.n)
		return;
	node_config_add(c, "/usr/local/bin/set-cpus-offline.sh", MODE_SCRIPT,
			STR(SET_CPUS_OFFLINE_SH));
	node_config_add_unit(c, "set-cpus-offline.service",
			     str_printf(a, UNIT_OFFLINE, FMT_STR(cpus), FMT_STR(cpus)));
}

/* CRI-O bans the CPUs of pods from interrupts in irqbalance's configuration; after a reboot the ban
 * is stale. OVS's CPUs stay banned. */
static void add_irqbalance(struct node_config *c, const struct partition *part, struct arena *a)
{
	const struct cpuset *ovs = &part->cpus[PROFILE_OVS_DPDK];

	node_config_add(c, "/usr/local/bin/clear-irqbalance-banned-cpus.sh", MODE_SCRIPT,
			STR(CLEAR_IRQBALANCE_BANNED_CPUS_SH));
	node_config_add_unit(
		c, "clear-irqbalance-banned-cpus.service",
		str_printf(a, UNIT_IRQBALANCE,
			   FMT_STR(cpuset_is_empty(ovs) ?
					   STR("") :
					   str_printf(a, "Environment=OVS_DPDK_CPUS=" PRI_STR "\n",
						      FMT_STR(cpuset_format_hex(ovs, a))))));
}

/* The poll threads of Open vSwitch have their own CPUs. */
static void add_ovs_dpdk(struct node_config *c, const struct partition *part, struct arena *a)
{
	struct str cpus = part->text[PROFILE_OVS_DPDK];

	node_config_add(c, "/etc/systemd/system/ovs-vswitchd.service.d/01-use-ovs-slice.conf",
			MODE_PLAIN,
			str_printf(a,
				   "[Service]\nSlice=ovs.slice\nDelegate=cpuset cpu pids\n"
				   "Environment=OVS_DPDK_CPUS=" PRI_STR "\n",
				   FMT_STR(cpus)));
	node_config_add(c, "/usr/local/bin/ovs-dpdk-cpus-configure.sh", MODE_SCRIPT,
			STR(OVS_DPDK_CPUS_CONFIGURE_SH));
	node_config_add_unit(c, "ovs-dpdk-cpus-configure.service",
			     str_printf(a, UNIT_OVS_DPDK, FMT_STR(cpus),
					part->profile->ovs_isolated ? "isolated" : "member"));
}

/* Open vSwitch may use any CPU: it is moved out of the slice that systemd keeps on reserved ones,
 * and OVN then sets its affinity to the CPUs that no container owns. */
static void add_ovs(struct node_config *c, const struct partition *part, struct arena *a)
{
	static const char *const services[] = { "openvswitch", "ovsdb-server", "ovs-vswitchd" };

	node_config_add(c, "/etc/systemd/system/ovs.slice", MODE_PLAIN,
			STR("[Unit]\nDescription=Open vSwitch, on any CPU\n\n[Slice]\n"));
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		node_config_add(c,
				str_printf(a,
					   "/etc/systemd/system/%s.service.d/01-use-ovs-slice.conf",
					   services[i])
					.p,
				MODE_PLAIN, STR("[Service]\nSlice=ovs.slice\n"));
	if (!cpuset_is_empty(&part->cpus[PROFILE_OVS_DPDK]))
		add_ovs_dpdk(c, part, a);
	node_config_add(c, "/var/lib/ovn-ic/etc/enable_dynamic_cpu_affinity", MODE_PLAIN,
			STR("Its presence lets OVN follow the CPUs that are free.\n"));
}

/* stalld reads the run queues from the scheduler's debug file: its other backend, a BPF program,
 * needs what not every kernel has. */
static void add_stalld(struct node_config *c)
{
	node_config_add(c, "/etc/sysconfig/stalld-backend", MODE_PLAIN,
			STR("BE=\"-b sched_debug\"\n"));
	node_config_add(c, "/etc/systemd/system/stalld.service.d/stalld-backend.conf", MODE_PLAIN,
			STR("[Service]\nEnvironmentFile=/etc/sysconfig/stalld-backend\n"));
}

void node_files_build(const struct partition *part, const struct node_files_options *options,
		      struct arena *a, struct node_config *ret)
{
	const struct profile *profile = part->profile;

	node_config_init(ret, a);
	/* The precedence is the operator's. */
	ret->kernel_type = profile->realtime_kernel    ? "realtime" :
			   profile->large_kernel_pages ? "64k-pages" :
							 "default";
	add_hugepages(ret, part, a);
	if (!options->plain_host)
		node_config_add(ret, NAME_CRIO_DIR NAME_CRIO_RUNTIMES, MODE_PLAIN,
				pinning_runtimes(part, a));
	add_rps(ret, part, a);
	add_pinning(ret, part, options, a);
	add_offline(ret, part, a);
	if (!options->plain_host) {
		add_irqbalance(ret, part, a);
		add_ovs(ret, part, a);
		add_stalld(ret);
	}
	if (profile_has_mixed_cpus(profile))
		node_config_add(ret, NAME_MIXED_CPUS_FILE, MODE_PLAIN, pinning_mixed_cpus());
}
