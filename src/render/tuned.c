/* Profiles in TuneD's INI format. The parent `cpu-partitioning` computes isolated_cores_expanded
 * and not_isolated_cpumask from isolated_cores and brings settings for RHEL, some of which are
 * replaced here: a key of the same name replaces the parent's value, a value that begins with "+"
 * is appended to the command line, and an empty value turns the parent's off. */

#include "tuned.h"

#include "base/arena.h"
#include "kernel_args.h"
#include "kube/names.h"
#include "object_build.h"
#include "profile/layout.h"

#define PROFILE_PREFIX "openshift-node-performance-"

/* Without isolated CPUs there is nothing to keep free: the parent `cpu-partitioning` refuses an
 * empty isolated_cores, and so do kernel arguments. */
static bool isolates(const struct partition *part)
{
	struct cpuset isolated = kernel_args_isolated(part);

	return !cpuset_is_empty(&isolated);
}

static void add_main(struct strbuf *b, const struct partition *part)
{
	struct str name = part->profile->name;

	/* Which of the four others are included is decided on the node, by TuneD's functions. */
	strbuf_printf(b,
		      "[main]\n"
		      "summary=Partitioned CPUs: low latency on the isolated ones\n"
		      "include=openshift-node%s"
		      "${f:regex_search_ternary:${f:exec:uname:-r}:rt:," PROFILE_PREFIX
		      "rt-" PRI_STR ":};" PROFILE_PREFIX
		      "${f:lscpu_check:Vendor ID\\:\\s*GenuineIntel:intel:"
		      "Vendor ID\\:\\s*AuthenticAMD:amd:Vendor ID\\:\\s*ARM:arm}-"
		      "${f:lscpu_check:Architecture\\:\\s*x86_64:x86:"
		      "Architecture\\:\\s*aarch64:aarch64}-" PRI_STR "\n",
		      isolates(part) ? ",cpu-partitioning" : "", FMT_STR(name), FMT_STR(name));
}

static void add_variables(struct strbuf *b, const struct partition *part, struct arena *a)
{
	struct cpuset isolated = kernel_args_isolated(part);

	if (!isolates(part))
		return;
	strbuf_printf(
		b,
		"\n[variables]\n"
		"isolated_cores=" PRI_STR "\n"
		"not_isolated_cores_expanded=${f:cpulist_invert:${isolated_cores_expanded}}\n",
		FMT_STR(cpuset_format(&isolated, a)));
}

static void add_cpu(struct strbuf *b, const struct profile *profile)
{
	/* CRI-O sets governor and C-states of each pod's CPUs, so TuneD must not. */
	if (profile->hint_per_pod_power)
		strbuf_add(b, STR("\n[cpu]\nenabled=false\n"));
	else
		strbuf_add(b, STR("\n[cpu]\nforce_latency=cstate.id:1|3\ngovernor=performance\n"
				  "energy_perf_bias=performance\nmin_perf_pct=100\n"));
}

static void add_services(struct strbuf *b, const struct profile *profile)
{
	strbuf_printf(b,
		      "\n[service]\nservice.fwupd-refresh.timer=stop,disable\n"
		      "service.stalld=%s\n",
		      profile->hint_realtime ? "start,enable" : "stop,disable");
}

static void add_vm_and_irqbalance(struct strbuf *b, const struct profile *profile)
{
	strbuf_add(b, STR("\n[vm]\ntransparent_hugepages=never\n"));
	/* Turns the parent's plugin off, not irqbalance: CRI-O bans CPUs per pod in the same file,
	 * and a restart of TuneD would undo that. */
	if (!profile->irq_balancing_off)
		strbuf_add(b, STR("\n[irqbalance]\nenabled=false\n"));
}

/* Kernel threads that must run although a real-time thread occupies their CPU: SCHED_FIFO (f) with
 * priority 11, which is also that of rcutree.kthread_prio. */
static void add_scheduler(struct strbuf *b, const struct profile *profile)
{
	strbuf_add(b, STR("\n[scheduler]\nruntime=0\ngroup.ksoftirqd=0:f:11:*:ksoftirqd.*\n"
			  "group.rcuc=0:f:11:*:rcuc.*\ngroup.ktimers=0:f:11:*:ktimers.*\n"));
	/* Otherwise TuneD moves interrupts off all isolated CPUs, also off those that no container
	 * owns. */
	if (!profile->irq_balancing_off)
		strbuf_add(b, STR("default_irq_smp_affinity=ignore\nirq_process=false\n"));
}

static void add_sysctl(struct strbuf *b, const struct profile *profile)
{
	strbuf_add(b, STR("\n[sysctl]\n"));
	if (profile->hint_realtime)
		strbuf_add(b, STR("kernel.hung_task_timeout_secs=600\nkernel.nmi_watchdog=0\n"
				  "kernel.sched_rt_runtime_us=-1\nvm.stat_interval=10\n"));
	/* timer_migration is off in the parent. Timers must leave a CPU that gets assigned to a
	 * container, and on OpenShift that happens all the time. */
	strbuf_add(b,
		   STR("net.ipv4.tcp_fastopen=3\nvm.dirty_ratio=10\nvm.dirty_background_ratio=3\n"
		       "vm.swappiness=10\nkernel.timer_migration=1\n"));
}

/* "^INTERFACE=ens[\s\S]*": TuneD matches the device's udev properties, one per line. */
static void add_device_regex(struct strbuf *b, yyjson_val *device)
{
	static const struct {
		struct str key;
		const char *property;
	} parts[] = {
		{ STR_INIT("deviceID"), "^ID_MODEL_ID=" },
		{ STR_INIT("vendorID"), "^ID_VENDOR_ID=" },
		{ STR_INIT("interfaceName"), "^INTERFACE=" },
	};
	const char *between = "";

	strbuf_add(b, STR("type=net\ndevices_udev_regex="));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct str text = doc_str(doc_get(device, parts[i].key));
		bool negated = str_starts(text, STR("!"));

		if (!text.n)
			continue;
		strbuf_printf(b, "%s%s%s", between, parts[i].property, negated ? "(?!" : "");
		for (size_t j = negated; j < text.n; j++) {
			if (text.p[j] == '*')
				strbuf_addc(b, '.');
			strbuf_addc(b, text.p[j]);
		}
		strbuf_add(b, negated ? STR(")") : STR(""));
		between = "[\\s\\S]*";
	}
	strbuf_addc(b, '\n');
}

/* As many queues as reserved CPUs: one for each CPU that serves interrupts. */
static void add_net(struct strbuf *b, const struct partition *part)
{
	unsigned queues = cpuset_count(&part->cpus[PROFILE_RESERVED]), n = 0;
	yyjson_val *device;

	if (!part->profile->user_networking)
		return;
	if (!yyjson_arr_size(part->profile->net_devices)) {
		strbuf_printf(b, "\n[net]\nchannels=combined %u\n", queues);
		return;
	}
	DOC_EACH_ITEM (part->profile->net_devices, device) {
		if (n)
			strbuf_printf(b, "\n[net_%u]\n", n);
		else
			strbuf_add(b, STR("\n[net]\n"));
		add_device_regex(b, device);
		strbuf_printf(b, "channels=combined %u\n", queues);
		n++;
	}
}

/* OVS's CPUs are in isolated_cores, but unlike isolated ones they may never get an interrupt. */
static void add_irq_affinity(struct strbuf *b, const struct partition *part, struct arena *a)
{
	struct cpuset set = part->cpus[PROFILE_ISOLATED];

	if (cpuset_is_empty(&part->cpus[PROFILE_OVS_DPDK]))
		return;
	cpuset_union(&set, &part->cpus[PROFILE_RESERVED]);
	cpuset_union(&set, &part->cpus[PROFILE_SHARED]);
	cpuset_minus(&set, &part->cpus[PROFILE_OVS_DPDK]);
	strbuf_printf(b, "cmdline_irqaffinity=+irqaffinity=" PRI_STR "\n",
		      FMT_STR(cpuset_format(&set, a)));
}

static void add_isolation_args(struct strbuf *b, const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	/* OpenShift's text, computed on the node: all but the isolated CPUs. With a shared set that
	 * is too much, because systemd stays on the reserved CPUs
	 * (docs/reference/pools.md#kernel-arguments). */
	struct str reserved = cpuset_format_expanded(&part->cpus[PROFILE_RESERVED], a);
	struct str affinity = profile_has_pools(profile) ? reserved :
							   STR("${not_isolated_cores_expanded}");

	if (!isolates(part)) {
		strbuf_printf(b, "cmdline_affinity=+systemd.cpu_affinity=" PRI_STR "\n",
			      FMT_STR(reserved));
		return;
	}
	strbuf_printf(b,
		      "initrd_remove_dir=\ninitrd_dst_img=\ninitrd_add_dir=\n"
		      "cmdline_cpu_part=+nohz=on rcu_nocbs=${isolated_cores} "
		      "tuned.non_isolcpus=${not_isolated_cpumask} "
		      "systemd.cpu_affinity=" PRI_STR "\n"
		      "cmdline_cpu_part_nohzfull=+nohz_full=${isolated_cores}\n"
		      "cmdline_cpu_tuning=+skew_tick=1\n"
		      "cmdline_iommu=\n"
		      "cmdline_isolation=+isolcpus=%smanaged_irq,${isolated_cores}\n",
		      FMT_STR(affinity), profile->balance_isolated ? "" : "domain,");
	if (profile->hint_realtime)
		strbuf_add(b, STR("cmdline_realtime_nosoftlookup=+nosoftlockup\n"
				  "cmdline_realtime_common=+rcutree.kthread_prio=11\n"));
}

static void add_bootloader(struct strbuf *b, const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	struct str huge = kernel_args_hugepages(part, a);

	strbuf_add(b, STR("\n[bootloader]\n"));
	add_isolation_args(b, part, a);
	if (profile->hint_high_power)
		strbuf_add(b, STR("cmdline_power_performance=\n"));
	if (profile->hint_high_power && profile->hint_realtime)
		strbuf_add(b, STR("cmdline_idle_poll=\n"));
	if (huge.n)
		strbuf_printf(b, "cmdline_hugepages=+" PRI_STR "\n", FMT_STR(huge));
	add_irq_affinity(b, part, a);
	for (size_t i = 0; i < profile->n_kernel_args; i++)
		strbuf_printf(b, "%s" PRI_STR, i ? " " : "cmdline_additionalArg=+",
			      FMT_STR(profile->kernel_args[i]));
	if (profile->n_kernel_args)
		strbuf_addc(b, '\n');
	strbuf_add(b, STR("\n[rtentsk]\n"));
}

static void add_frequencies(struct strbuf *b, const struct partition *part)
{
	const struct profile *profile = part->profile;

	if (!profile->isolated_khz)
		return;
	strbuf_add(b, STR("\n[sysfs]\n"));
	CPUSET_FOREACH (cpu, &part->cpus[PROFILE_ISOLATED])
		strbuf_printf(b, "/sys/devices/system/cpu/cpufreq/policy%u/scaling_max_freq=%lld\n",
			      cpu, (long long)profile->isolated_khz);
	CPUSET_FOREACH (cpu, &part->cpus[PROFILE_RESERVED])
		strbuf_printf(b, "/sys/devices/system/cpu/cpufreq/policy%u/scaling_max_freq=%lld\n",
			      cpu, (long long)profile->reserved_khz);
}

static struct str main_profile(const struct partition *part, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	add_main(&b, part);
	add_variables(&b, part, a);
	add_cpu(&b, part->profile);
	add_services(&b, part->profile);
	add_vm_and_irqbalance(&b, part->profile);
	add_scheduler(&b, part->profile);
	add_sysctl(&b, part->profile);
	strbuf_add(&b, STR("\n[selinux]\navc_cache_threshold=8192\n"));
	add_net(&b, part);
	add_bootloader(&b, part, a);
	add_frequencies(&b, part);
	return strbuf_str(&b);
}

/* The driver's mode. In mode `passive` the generic governors decide, which CRI-O sets per pod. */
static const char *pstate(const struct profile *profile, const char *otherwise)
{
	return profile->hint_per_pod_power ? "passive" :
	       profile->isolated_khz	   ? "active" :
					     otherwise;
}

static struct str intel_profile(const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("[main]\nsummary=Intel processors\n\n[bootloader]\n"
			   "cmdline_iommu_intel=intel_iommu=on iommu=pt\n"));
	if (profile->hint_realtime)
		strbuf_add(&b, STR("cmdline_tuned_intel=tsc=reliable\n"
				   "cmdline_realtime_intel=nmi_watchdog=0 mce=off\n"));
	if (profile->hint_high_power)
		strbuf_add(&b, STR("cmdline_power_performance_intel=processor.max_cstate=1 "
				   "intel_idle.max_cstate=0\n"));
	if (profile->hint_high_power && profile->hint_realtime)
		strbuf_add(&b, STR("cmdline_idle_poll_intel=idle=poll\n"));
	strbuf_printf(&b, "cmdline_pstate=intel_pstate=%s\n",
		      pstate(profile, "${f:intel_recommended_pstate}"));
	return strbuf_str(&b);
}

static struct str amd_profile(const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("[main]\nsummary=AMD processors\n\n[bootloader]\n"
			   "cmdline_iommu_amd=iommu=pt\n"));
	if (profile->hint_realtime)
		strbuf_add(&b, STR("cmdline_realtime_amd=tsc=reliable nmi_watchdog=0 mce=off\n"));
	if (profile->hint_high_power)
		strbuf_add(&b, STR("cmdline_power_performance_amd=processor.max_cstate=1\n"));
	if (profile->hint_high_power && profile->hint_realtime)
		strbuf_add(&b, STR("cmdline_idle_poll_amd=idle=poll\n"));
	strbuf_printf(&b, "cmdline_pstate=amd_pstate=%s\n", pstate(profile, "guided"));
	return strbuf_str(&b);
}

/* All five are always written: the main one includes others by these names, and the node decides
 * which. In the order of the operator's list. */
static const struct {
	const char *infix;
	struct str (*text)(const struct partition *part, struct arena *a);
	struct str constant; /* where there is no function */
} profiles[] = {
	{ "", main_profile, { 0 } },
	{ "rt-", NULL,
	  STR_INIT("[main]\nsummary=Real-time kernel\n\n[sysctl]\n"
		   "drop=kernel.numa_balancing,net.core.busy_read,net.core.busy_poll\n") },
	{ "amd-x86-", amd_profile, { 0 } },
	{ "arm-aarch64-", NULL, STR_INIT("[main]\nsummary=Arm processors\n") },
	{ "intel-x86-", intel_profile, { 0 } },
};

void profile_machine_labels(yyjson_mut_doc *m, yyjson_mut_val *to, const struct partition *part)
{
	if (part->profile->machine_label)
		object_copy_pairs(m, to, part->profile->machine_label);
	else
		doc_put_str(m, to, STR(NAME_MACHINE_ROLE), profile_role(part->profile));
}

static void add_recommend(yyjson_mut_doc *m, yyjson_mut_val *spec, const struct partition *part,
			  struct arena *a)
{
	yyjson_mut_val *entry = yyjson_mut_arr_add_obj(m, doc_put_arr(m, spec, STR("recommend")));
	yyjson_mut_val *config;

	profile_machine_labels(m, doc_put_obj(m, entry, STR("machineConfigLabels")), part);
	config = doc_put_obj(m, doc_put_obj(m, entry, STR("operand")), STR("tunedConfig"));
	doc_put(m, config, STR("reapply_sysctl"), yyjson_mut_null(m));
	doc_put_int(m, entry, STR("priority"), 20); /* the operator's; the lowest number wins */
	doc_put_str(m, entry, STR("profile"),
		    str_printf(a, PROFILE_PREFIX PRI_STR, FMT_STR(part->profile->name)));
}

yyjson_mut_val *tuned_object(yyjson_mut_doc *m, const struct partition *part, struct arena *a)
{
	struct str name = part->profile->name;
	yyjson_mut_val *object, *spec, *list;

	object = object_new(m, NAME_TUNED_API, "Tuned",
			    str_printf(a, PROFILE_PREFIX PRI_STR, FMT_STR(name)));
	doc_put_str(m, yyjson_mut_obj_get(object, "metadata"), STR("namespace"),
		    STR(NAME_TUNED_NAMESPACE));
	spec = doc_put_obj(m, object, STR("spec"));
	list = doc_put_arr(m, spec, STR("profile"));
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		yyjson_mut_val *entry = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, entry, STR("data"),
			    profiles[i].text ? profiles[i].text(part, a) : profiles[i].constant);
		doc_put_str(m, entry, STR("name"),
			    str_printf(a, PROFILE_PREFIX "%s" PRI_STR, profiles[i].infix,
				       FMT_STR(name)));
	}
	add_recommend(m, spec, part, a);
	doc_put_obj(m, object, STR("status"));
	return object;
}

struct str tuned_host_conf(const struct partition *part, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("[main]\nsummary=Partitioned CPUs: low latency on the isolated ones\n"));
	add_cpu(&b, part->profile);
	add_vm_and_irqbalance(&b, part->profile);
	add_scheduler(&b, part->profile);
	if (profile_has(part->profile, PROFILE_ISOLATED))
		strbuf_printf(&b, "isolated_cores=" PRI_STR "\n",
			      FMT_STR(cpuset_format(&part->cpus[PROFILE_ISOLATED], a)));
	add_sysctl(&b, part->profile);
	add_net(&b, part);
	add_frequencies(&b, part);
	return strbuf_str(&b);
}
