#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agentclient/run_dir.h"
#include "base/err.h"
#include "base/log.h"
#include "command.h"
#include "kube/names.h"

struct agent_options {
	struct agent_config config;
	const char *cpu_manager;
	struct option_list policy_options, namespaces, labels, taints;
	const char *dialect, *topology_cpu;
	const char *log_level, *log_format;
	bool uninstall;
};

#define KUBELET_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define AT(field) offsetof(struct agent_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "nri-socket", "PATH",
	  "where the runtime listens (default: /var/run/nri/nri.sock)", NULL,
	  AT(config.nri_socket) },
	{ OPT_STR, 0, "nri-index", "NN", "our place among NRI plugins (default: 90)", NULL,
	  AT(config.nri_index) },
	{ OPT_STR, 0, "run-dir", "DIR",
	  "ledger, status file and socket (default: " AGENT_RUN_DIR ")", NULL, AT(config.run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR", "where cgroups are mounted (default: /sys/fs/cgroup)",
	  NULL, AT(config.cgroup_root) },
	{ OPT_STR, 0, "crio-config", "DIR",
	  "CRI-O's configuration, compared with ours (default: /etc/crio)", NULL,
	  AT(config.crio_dir) },
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(config.topology) },
	{ OPT_UINT, 0, "reassert", "SECONDS",
	  "look at every cgroup once in this time, also if nobody writes there (default: 60)", NULL,
	  AT(config.reconcile_interval_s) },
	{ OPT_STR, 0, "listen", "HOST:PORT", "serve /metrics and /status here, too", NULL,
	  AT(config.listen) },
	{ OPT_STR, 0, "podresources", "SOCKET",
	  "serve the PodResources API here: the CPUs that containers own", NULL,
	  AT(config.podres) },
	{ OPT_STR, 0, "kubelet-podresources", "SOCKET",
	  "where the kubelet serves it, for devices and memory (default: " KUBELET_SOCKET
	  "; empty: never asked)",
	  NULL, AT(config.kubelet_podres) },
	{ OPT_STR, 0, "static-pods", "DIR",
	  "convert the kubelet's static pods in place, such as in /etc/kubernetes/manifests", NULL,
	  AT(config.static_pods) },
	{ OPT_FLAG, 0, "uninstall", NULL,
	  "put static pods back, widen every cpuset, take what is ours from the Node, and end",
	  NULL, AT(uninstall) },
	{ OPT_GROUP, 0, NULL, NULL, "Pools", NULL, 0 },
	{ OPT_STR, 0, "reserved", "LIST", "CPUs of the platform", NULL, AT(config.pools.reserved) },
	{ OPT_STR, 0, "shared", "LIST", "CPUs of containers that own none", NULL,
	  AT(config.pools.shared) },
	{ OPT_STR, 0, "guaranteed", "LIST", "CPUs that containers get for themselves", NULL,
	  AT(config.pools.guaranteed) },
	{ OPT_STR, 0, "pools-file", "FILE",
	  "where the three lists stand otherwise (default: " NAME_POOLS_FILE ")", NULL,
	  AT(config.pools.pools_file) },
	{ OPT_STR, 0, "marker-file", "FILE",
	  "the kubelet marker, read when there is no pools file (default: " NAME_KUBELET_MARKER ")",
	  NULL, AT(config.pools.marker_file) },
	{ OPT_FLAG, 0, "fold-rest", NULL, "CPUs in no list are shared, instead of an error", NULL,
	  AT(config.pools.fold_rest) },
	{ OPT_STRS, 0, "policy-option", "NAME=VALUE",
	  "an option of the kubelet's static policy, such as full-pcpus-only=true", NULL,
	  AT(policy_options) },
	{ OPT_ENUM, 0, "cpu-manager", "WHO",
	  "who hands out exclusive CPUs (default: auto, the kubelet if its policy is static)",
	  "auto|own|kubelet", AT(cpu_manager) },
	{ OPT_STR, 0, "kubelet-state", "FILE", "the kubelet's CPU manager state", NULL,
	  AT(config.kubelet_state) },
	{ OPT_FLAG, 0, "isolated-partitions", NULL,
	  "take exclusive CPUs from everybody else in the kernel, too (cgroup v2, Linux 6.7)", NULL,
	  AT(config.isolated_partitions) },
	{ OPT_GROUP, 0, NULL, NULL, "Cluster", NULL, 0 },
	{ OPT_STR, 0, "kubeconfig", "FILE",
	  "keep our Node at this API server (default: the one of the pod we are in, or none)", NULL,
	  AT(config.cluster.kubeconfig) },
	{ OPT_STR, 0, "context", "NAME", "which context of the kubeconfig (default: the current)",
	  NULL, AT(config.cluster.context) },
	{ OPT_STR, 0, "node-name", "NAME",
	  "our Node (default: $NODE_NAME, or the host's name in small letters)", NULL,
	  AT(config.cluster.node_name) },
	{ OPT_FLAG, 0, "register", NULL,
	  "create the Node with its resources, so that the kubelet may join a partitioned cluster",
	  NULL, AT(config.cluster.registers) },
	{ OPT_STRS, 0, "register-label", "KEY=VALUE", "a label of the Node that is created", NULL,
	  AT(labels) },
	{ OPT_STRS, 0, "register-taint", "KEY[=VALUE]:EFFECT",
	  "a taint of the Node that is created", NULL, AT(taints) },
	{ OPT_FLAG, 0, "taint-unready", NULL,
	  "keep new pods away by a taint while no runtime is connected", NULL,
	  AT(config.cluster.taints_unready) },
	{ OPT_FLAG, 0, "publish-topology", NULL,
	  "keep a NodeResourceTopology object: what each NUMA node can hand out", NULL,
	  AT(config.topology_object.is_on) },
	{ OPT_ENUM, 0, "topology-policy", "POLICY",
	  "what it says of the node's policy (default: none; single-numa-node makes schedulers "
	  "filter)",
	  "none|best-effort|restricted|single-numa-node", AT(config.topology_object.policy) },
	{ OPT_ENUM, 0, "topology-scope", "SCOPE", "and of its scope (default: container)",
	  "container|pod", AT(config.topology_object.scope) },
	{ OPT_ENUM, 0, "topology-cpu", "WHICH",
	  "what it counts as cpu: guaranteed CPUs (default), or all but the reserved ones",
	  "guaranteed|all", AT(topology_cpu) },
	{ OPT_FLAG, 0, "no-cluster", NULL, "work from annotations and the ledger alone", NULL,
	  AT(config.cluster.is_off) },
	{ OPT_GROUP, 0, NULL, NULL, "Trust", NULL, 0 },
	{ OPT_STRS, 0, "allow-namespace", "NAME",
	  "a namespace whose pods may run on reserved CPUs (default: what the cluster's "
	  "namespaces say; without a cluster, pods that look converted)",
	  NULL, AT(namespaces) },
	{ OPT_ENUM, 0, "dialect", "NAME",
	  "legacy-2021 also understands the namespace label of the first design",
	  "current|legacy-2021", AT(dialect) },
	{ OPT_GROUP, 0, NULL, NULL, "Log", NULL, 0 },
	{ OPT_ENUM, 0, "log-level", "LEVEL", "what is logged (default: info)",
	  "error|warning|info|debug", AT(log_level) },
	{ OPT_ENUM, 0, "log-format", "FORMAT", "text (default) or json lines", "text|json",
	  AT(log_format) },
	{ 0 },
};

static const struct agent_options defaults = {
	.config = {
		.pools = { .pools_file = NAME_POOLS_FILE, .marker_file = NAME_KUBELET_MARKER },
		.kubelet_state = "/var/lib/kubelet/cpu_manager_state",
		.nri_index = "90",
		.run_dir = AGENT_RUN_DIR,
		.cgroup_root = "/sys/fs/cgroup",
		.crio_dir = "/etc/crio",
		.topology = "host",
		.kubelet_podres = KUBELET_SOCKET,
		.cluster = { .version = PINFOLD_VERSION },
		.reconcile_interval_s = 60,
	},
};

static const struct command_example examples[] = {
	{ "pinfold agent", "on a node, pools from " NAME_POOLS_FILE },
	{ "pinfold agent --reserved 0-1 --shared 2-5 --guaranteed 6-15", "the pools as flags" },
	{ "pinfold agent --register --kubeconfig /etc/kubernetes/kubelet.conf",
	  "before a stock kubelet, with its own identity" },
	{ "pinfold agent --uninstall", "let every container run everywhere again" },
	{ 0 },
};

static void set_up_log(const struct agent_options *o)
{
	enum log_level level = LOG_LEVEL_INFO;

	if (o->log_level)
		(void)log_level_parse(str_from(o->log_level), &level);
	log_setup(level, o->log_format && strcmp(o->log_format, "json") == 0 ? LOG_FORMAT_JSON :
									       LOG_FORMAT_TEXT);
}

static int check_cluster(const struct agent_options *o, struct err *err)
{
	const struct node_sync_config *c = &o->config.cluster;
	const bool publishes = o->config.topology_object.is_on;

	if (c->is_off && (c->kubeconfig || c->registers || c->taints_unready || publishes))
		return err_set(err, EINVAL, "--no-cluster excludes %s",
			       c->kubeconfig ? "--kubeconfig" :
			       c->registers  ? "--register" :
			       publishes     ? "--publish-topology" :
					       "--taint-unready");
	if (c->context && !c->kubeconfig)
		return err_set(err, EINVAL, "--context needs --kubeconfig");
	if ((o->labels.n || o->taints.n) && !c->registers)
		return err_set(err, EINVAL, "%s needs --register",
			       o->labels.n ? "--register-label" : "--register-taint");
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	struct agent_options *o = inv->options;
	struct agent_config *c = &o->config;

	if (inv->args.n > 0)
		return err_set(err, EINVAL, "the agent takes no operands, only options");
	if (check_cluster(o, err) < 0)
		return -EINVAL;
	set_up_log(o);
	c->pools.policy_options = o->policy_options.items;
	c->pools.n_policy_options = o->policy_options.n;
	c->namespaces = o->namespaces.items;
	c->n_namespaces = o->namespaces.n;
	c->cluster.labels = o->labels.items;
	c->cluster.n_labels = o->labels.n;
	c->cluster.taints = o->taints.items;
	c->cluster.n_taints = o->taints.n;
	c->topology_object.cpu_is_every_cpu = o->topology_cpu &&
					      strcmp(o->topology_cpu, "all") == 0;
	c->cluster.is_legacy = o->dialect && strcmp(o->dialect, "legacy-2021") == 0;
	if (o->cpu_manager)
		c->cpu_manager = strcmp(o->cpu_manager, "own") == 0 ? AGENT_CPU_MANAGER_OWN :
				 strcmp(o->cpu_manager, "kubelet") == 0 ?
								      AGENT_CPU_MANAGER_KUBELET :
								      AGENT_CPU_MANAGER_AUTO;
	return o->uninstall ? agent_uninstall(c, err) : agent_run(c, err);
}

const struct command cmd_agent = {
	.name = "agent",
	.group = COMMAND_DAEMON,
	.summary = "pin the containers of a node",
	.operands = "",
	.about = "Connects to containerd or CRI-O as an NRI plugin and gives every container its "
		 "CPUs:\n"
		 "management pods the reserved ones with the shares and limits of their "
		 "annotations,\n"
		 "Guaranteed containers with whole CPUs some of their own, all others the shared "
		 "ones.\n"
		 "A kubelet that tries to undo that is answered, a cgroup that somebody changed is "
		 "put\n"
		 "right, and what started while the agent was away is repaired when it is back.\n"
		 "In a cluster it keeps the node's resources and a condition on its Node object;\n"
		 "while the API server is away, pinning goes on.",
	.options = options,
	.options_size = sizeof(struct agent_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
