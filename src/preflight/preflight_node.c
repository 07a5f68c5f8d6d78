/* Distribution, kubelet and agent; the other groups have files of their own. */

#include "preflight_node.h"

#include "base/arena.h"
#include "kube/names.h"
#include "pool/checkpoint.h"

static void check_distribution(const struct machine_facts *f, struct preflight_report *r)
{
	const struct distro *d = f->distro.distro;

	if (!f->distro.is_detected)
		preflight_add(r, PREFLIGHT_DISTRO_CHECK, PREFLIGHT_WARNING,
			      STR("no distribution was detected; the paths of kubeadm are used"),
			      STR("name it with --distro, here and for the agent"));
	else if (f->distro.also)
		preflight_add(r, PREFLIGHT_DISTRO_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a, "%s, but files of %s exist, too", d->title,
					 f->distro.also),
			      STR("remove what the other distribution left, or name this one with "
				  "--distro, here and for the agent"));
	else
		preflight_add(r, PREFLIGHT_DISTRO_CHECK, PREFLIGHT_OK, str_from(d->title), STR(""));
	for (size_t i = 0; i < DISTRO_LIMITS && d->limits[i].what; i++)
		preflight_add(r, PREFLIGHT_DISTRO_LIMITS_CHECK, PREFLIGHT_NOTE,
			      str_from(d->limits[i].what), str_from(d->limits[i].remedy));
	if (f->etc_is_read_only == FACT_YES && !d->etc_is_read_only)
		preflight_add(r, PREFLIGHT_DISTRO_LIMITS_CHECK, PREFLIGHT_WARNING,
			      STR("/etc is read-only: a host bundle cannot be installed"),
			      STR("use the DaemonSet, with pools from the cluster or from flags"));
}

/* The kubelet starts only with the policy that its state file was written under
 * (docs/reference/cpu-manager.md#start-checks). */
static void check_state(const struct kubelet_fact *k, struct preflight_report *r)
{
	if (!k->policy.n || !k->state_policy.n)
		return;
	if (str_eq(k->policy, k->state_policy))
		preflight_add(r, PREFLIGHT_CPU_MANAGER_STATE_CHECK, PREFLIGHT_OK,
			      STR("cpu_manager_state has the configured policy"), STR(""));
	else
		preflight_add(r, PREFLIGHT_CPU_MANAGER_STATE_CHECK, PREFLIGHT_FAILURE,
			      str_printf(r->a,
					 "cpu_manager_state was written under policy " PRI_STR
					 ", the configuration says " PRI_STR
					 ": the kubelet does not start with it",
					 FMT_STR(k->state_policy), FMT_STR(k->policy)),
			      STR("drain the node, stop the kubelet, remove cpu_manager_state, "
				  "start the kubelet"));
}

/* D27: with the static policy the kubelet assigns every CPU outside reservedSystemCPUs. */
static void check_static_policy(const struct machine_facts *f, struct preflight_report *r)
{
	struct cpuset want = f->pools.reserved, has = { 0 }, missing;

	if (!f->pools.is_classic)
		cpuset_union(&want, &f->pools.shared);
	missing = want;
	if (cpuset_parse(f->kubelet.reserved_cpus, &has, NULL) == 0)
		cpuset_minus(&missing, &has);
	if (cpuset_is_empty(&missing)) {
		preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_OK,
			      STR("policy static: the kubelet assigns exclusive CPUs"), STR(""));
		return;
	}
	preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_FAILURE,
		      str_printf(r->a,
				 "policy static, and reservedSystemCPUs \"" PRI_STR
				 "\" lack CPUs " PRI_STR
				 " of the management or the shared pool: the kubelet assigns them",
				 FMT_STR(f->kubelet.reserved_cpus),
				 FMT_STR(cpuset_format(&missing, r->a))),
		      str_printf(r->a,
				 "set cpuManagerPolicy: none, so that the agent assigns, or "
				 "reservedSystemCPUs: \"" PRI_STR "\"",
				 FMT_STR(cpuset_format(&want, r->a))));
}

static void check_kubelet(const struct machine_facts *f, struct preflight_report *r)
{
	const struct kubelet_fact *k = &f->kubelet;
	struct str policy = k->policy.n ? k->policy : k->state_policy;

	if (k->config_error.n)
		preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_WARNING, k->config_error,
			      STR("correct the file; the kubelet refuses it, too"));
	check_state(k, r);
	if (!policy.n)
		preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_NOTE,
			      STR("the kubelet's CPU manager policy is not known: there is neither "
				  "a configuration file nor cpu_manager_state"),
			      STR("run this command on the node as root, after the kubelet "
				  "started"));
	else if (str_eq(policy, STR(CHECKPOINT_POLICY_STATIC)) && f->has_pools)
		check_static_policy(f, r);
	else if (str_eq(policy, STR(CHECKPOINT_POLICY_STATIC)))
		preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_NOTE,
			      STR("policy static: the kubelet assigns exclusive CPUs"), STR(""));
	else
		preflight_add(r, PREFLIGHT_CPU_MANAGER_CHECK, PREFLIGHT_OK,
			      str_printf(r->a,
					 "policy " PRI_STR ": the agent assigns exclusive CPUs",
					 FMT_STR(policy)),
			      STR(""));
}

static void check_agent(const struct machine_facts *f, struct preflight_report *r)
{
	if (f->agent_runs == FACT_UNKNOWN)
		return;
	if (f->agent_runs == FACT_NO) {
		preflight_add(r, PREFLIGHT_AGENT_RUNNING_CHECK, PREFLIGHT_WARNING,
			      f->agent_error.n ? f->agent_error : STR("no agent runs"),
			      STR("systemctl enable --now pinfold-agent, or deploy the DaemonSet"));
		return;
	}
	preflight_add(r, PREFLIGHT_AGENT_RUNNING_CHECK, PREFLIGHT_OK, STR("an agent runs"),
		      STR(""));
	if (f->agent_connected == FACT_NO)
		preflight_add(r, PREFLIGHT_AGENT_CONNECTED_CHECK, PREFLIGHT_FAILURE,
			      STR("the agent is not connected to the runtime: new containers are "
				  "not pinned"),
			      str_printf(r->a,
					 "see nri-enabled and nri-socket; the agent connects to %s",
					 f->nri.path));
	else
		preflight_add(r, PREFLIGHT_AGENT_CONNECTED_CHECK, PREFLIGHT_OK,
			      STR("the agent is connected to the runtime"), STR(""));
}

void preflight_node(const struct machine_facts *f, struct preflight_report *r)
{
	check_distribution(f, r);
	preflight_kernel(f, r);
	preflight_cpus(f, r);
	preflight_runtime(f, r);
	check_kubelet(f, r);
	check_agent(f, r);
}
