/* Options of the agent; the agent itself is src/agent. Options that exclude each other are refused
 * here, before anything is opened. */

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agentclient/run_dir.h"
#include "base/err.h"
#include "base/log.h"
#include "command.h"
#include "config_file.h"
#include "distro/distro_read.h"
#include "kube/names.h"
#include "log_options.h"
#include "pools_options.h"

struct agent_options {
	struct agent_config config;
	const char *config_file;
	const char *cpu_manager;
	struct option_list policy_options, types, namespaces, labels, taints;
	const char *dialect, *topology_cpu, *distro;
	const char *host_configuration, *interrupts;
	struct log_options log;
	bool uninstall;
};

#define AT(field) offsetof(struct agent_options, field)

static const struct option_desc options[] = {
	CONFIG_OPTION(struct agent_options, config_file),
	{ OPT_ENUM, 0, "distro", "NAME",
	  "distribution whose sockets and kubelet paths are the defaults below (default: as "
	  "detected, else kubeadm)",
	  DISTRO_CHOICES, AT(distro) },
	{ OPT_STR, 0, "nri-socket", "PATH",
	  "NRI socket of the container runtime (default: of the distribution, "
	  "/var/run/nri/nri.sock)",
	  NULL, AT(config.nri_socket) },
	{ OPT_STR, 0, "nri-index", "NN",
	  "index of this plugin, which sets the order of NRI plugins (default: 90)", NULL,
	  AT(config.nri_index) },
	{ OPT_STR, 0, "run-dir", "DIR",
	  "directory of the ledger, the status file and the socket (default: " AGENT_RUN_DIR ")",
	  NULL, AT(config.run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR",
	  "mount point of the cgroup hierarchy (default: /sys/fs/cgroup)", NULL,
	  AT(config.cgroup_root) },
	{ OPT_STR, 0, "crio-config", "DIR",
	  "CRI-O's configuration, compared with the pools (default: /etc/crio)", NULL,
	  AT(config.crio_dir) },
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(config.topology) },
	{ OPT_UINT, 0, "reconcile-interval", "SECONDS",
	  "check every cgroup for drift once per interval, also without an inotify event "
	  "(default: 60)",
	  NULL, AT(config.reconcile_interval_s) },
	/* The former spelling. */
	{ OPT_UINT, 0, "reassert", "SECONDS", NULL, NULL, AT(config.reconcile_interval_s) },
	{ OPT_STR, 0, "listen", "HOST:PORT",
	  "also serve /metrics, /cpus, /healthz and /readyz at this address", NULL,
	  AT(config.listen) },
	{ OPT_FLAG, 0, "no-confinement", NULL,
	  "do not restrict system calls, capabilities and write access to files after start-up",
	  NULL, AT(config.is_unconfined) },
	{ OPT_STR, 0, "podresources", "SOCKET",
	  "serve the PodResources API here, with the exclusive CPUs of containers", NULL,
	  AT(config.podres) },
	{ OPT_STR, 0, "kubelet-podresources", "SOCKET",
	  "the kubelet's PodResources socket, read for devices and memory (default: "
	  "pod-resources/kubelet.sock below the distribution's kubelet root; empty: not read)",
	  NULL, AT(config.kubelet_podres) },
	{ OPT_STR, 0, "static-pods", "DIR",
	  "convert the kubelet's static pods in DIR in place, such as /etc/kubernetes/manifests",
	  NULL, AT(config.static_pods) },
	/* An option and not a command, because it needs the same sockets, directories and Node. */
	{ OPT_FLAG, 0, "uninstall", NULL,
	  "restore the host and static pods, remove all CPU restrictions and what the agent added "
	  "to "
	  "the Node, "
	  "then exit",
	  NULL, AT(uninstall) },
	{ OPT_GROUP, 0, NULL, NULL, "Pools", NULL, 0 },
	POOLS_OPTIONS(struct agent_options, config.pools, policy_options, types),
	{ OPT_ENUM, 0, "cpu-manager", "WHO",
	  "what assigns exclusive CPUs (default: auto, the kubelet if its policy is static)",
	  "auto|own|kubelet", AT(cpu_manager) },
	{ OPT_STR, 0, "kubelet-state", "FILE",
	  "the kubelet's CPU manager state (default: cpu_manager_state below the distribution's "
	  "kubelet root)",
	  NULL, AT(config.kubelet_state) },
	{ OPT_FLAG, 0, "isolated-partitions", NULL,
	  "make exclusive CPUs isolated cpuset partitions (cgroup v2, Linux 6.7)", NULL,
	  AT(config.isolated_partitions) },
	{ OPT_GROUP, 0, NULL, NULL, "Host", NULL, 0 },
	{ OPT_ENUM, 0, "host-configuration", "MODE",
	  "live keeps host services, interrupts and workqueues off the guaranteed CPUs while the "
	  "node runs, and reports how host files differ from the profile; managed also writes "
	  "them, for profiles with the annotation " NAME_HOST_CONFIGURATION
	  ": " NAME_HOST_CONFIGURATION_MANAGED " (default: off)",
	  "off|live|managed", AT(host_configuration) },
	{ OPT_ENUM, 0, "interrupts", "WHERE",
	  "housekeeping moves interrupts off the guaranteed CPUs (default), keep leaves them where "
	  "they are",
	  "housekeeping|keep", AT(interrupts) },
	{ OPT_STR, 0, "host-root", "DIR",
	  "where /proc/irq, /run/systemd, /sys/devices and /etc of the host are, in a container "
	  "(default: /)",
	  NULL, AT(config.host.root) },
	{ OPT_GROUP, 0, NULL, NULL, "Cluster", NULL, 0 },
	{ OPT_STR, 0, "kubeconfig", "FILE",
	  "API server of the agent's Node (default: in-cluster configuration, or none)", NULL,
	  AT(config.cluster.kubeconfig) },
	{ OPT_STR, 0, "context", "NAME", "context of the kubeconfig (default: the current one)",
	  NULL, AT(config.cluster.context) },
	{ OPT_STR, 0, "api-server", "URL",
	  "address of the API server (default: the kubeconfig's; in a pod the kubelet's, or that "
	  "of Service kubernetes)",
	  NULL, AT(config.cluster.api_server) },
	{ OPT_STR, 0, "node-name", "NAME",
	  "the agent's Node (default: $NODE_NAME, or the host name in lower case)", NULL,
	  AT(config.cluster.node_name) },
	{ OPT_FLAG, 0, "register", NULL,
	  "create the Node with its resources, so that the kubelet can join a partitioned cluster",
	  NULL, AT(config.cluster.registers) },
	{ OPT_STRS, 0, "register-label", "KEY=VALUE", "a label of the Node that is created", NULL,
	  AT(labels) },
	{ OPT_STRS, 0, "register-taint", "KEY[=VALUE]:EFFECT",
	  "a taint of the Node that is created", NULL, AT(taints) },
	{ OPT_FLAG, 0, "taint-unready", NULL, "taint the Node while no runtime is connected", NULL,
	  AT(config.cluster.taints_unready) },
	{ OPT_FLAG, 0, "publish-topology", NULL,
	  "maintain a NodeResourceTopology object with the assignable CPUs of each NUMA node", NULL,
	  AT(config.topology_object.is_on) },
	{ OPT_ENUM, 0, "topology-cpu", "WHICH",
	  "CPUs counted in it: guaranteed CPUs (default), or all but the management CPUs",
	  "guaranteed|all", AT(topology_cpu) },
	{ OPT_FLAG, 0, "no-cluster", NULL, "do not connect to an API server", NULL,
	  AT(config.cluster.is_off) },
	{ OPT_GROUP, 0, NULL, NULL, "Trust", NULL, 0 },
	{ OPT_STRS, 0, "allow-namespace", "NAMESPACE[=TYPE,...]",
	  "a namespace whose pods may use the management pool, or these workload types (default: "
	  "the namespaces' annotations; without a cluster, none)",
	  NULL, AT(namespaces) },
	{ OPT_ENUM, 0, "dialect", "NAME",
	  "legacy-2021 also accepts labels, annotations and files of the 2021 enhancement",
	  "current|legacy-2021", AT(dialect) },
	LOG_OPTIONS(struct agent_options, log),
	{ 0 },
};

static const struct agent_options defaults = {
	.config = {
		.pools = POOLS_DEFAULTS,
		.nri_index = "90",
		.run_dir = AGENT_RUN_DIR,
		.host = { .root = "/" },
		.cgroup_root = "/sys/fs/cgroup",
		.crio_dir = "/etc/crio",
		.topology = "host",
		.cluster = { .version = PINFOLD_VERSION },
		.reconcile_interval_s = 60,
	},
};

static const struct command_example examples[] = {
	{ "pinfold agent", "on a node, with the pools of " NAME_POOLS_FILE },
	{ "pinfold agent --management 0-1 --shared 2-5 --guaranteed 6-15", "the pools as flags" },
	{ "pinfold agent --register --kubeconfig /etc/kubernetes/kubelet.conf",
	  "before an unmodified kubelet, with the kubelet's credentials" },
	{ "pinfold agent --uninstall", "remove all CPU restrictions" },
	{ 0 },
};

static int check_cluster(const struct agent_options *o, struct err *err)
{
	const struct node_sync_config *c = &o->config.cluster;
	const bool publishes = o->config.topology_object.is_on;

	if (c->is_off &&
	    (c->kubeconfig || c->api_server || c->registers || c->taints_unready || publishes))
		return err_set(err, EINVAL, "--no-cluster excludes %s",
			       c->kubeconfig ? "--kubeconfig" :
			       c->api_server ? "--api-server" :
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

/* Paths that were not given are those of the distribution. */
static int use_distro(struct agent_options *o, struct arena *a, struct err *err)
{
	struct agent_config *c = &o->config;
	struct distro_detection d;

	if (distro_choose(o->distro, a, &d, err) < 0)
		return -EINVAL;
	if (!c->nri_socket)
		c->nri_socket = d.distro->nri_socket;
	if (!c->kubelet_state)
		c->kubelet_state = distro_kubelet_path(d.distro, "cpu_manager_state", a);
	if (!c->kubelet_podres)
		c->kubelet_podres = distro_kubelet_path(d.distro, "pod-resources/kubelet.sock", a);
	c->cluster.kubelet_kubeconfig = d.distro->kubelet_kubeconfig;
	c->host.distro = d.distro;
	if (d.is_detected)
		log_info("using the paths of the distribution",
			 LOG_STR("distro", str_from(d.distro->name)));
	if (d.also)
		log_warning("files of a second distribution were found, --distro chooses",
			    LOG_STR("distro", str_from(d.distro->name)),
			    LOG_STR("other", str_from(d.also)));
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	struct agent_options *o = inv->options;
	struct agent_config *c = &o->config;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (check_cluster(o, err) < 0)
		return -EINVAL;
	log_options_apply(&o->log);
	if (use_distro(o, inv->arena, err) < 0)
		return -EINVAL;
	/* Lists of options become arrays and choices become enums: the modules below do not know
	 * option tables. */
	c->pools.policy_options = o->policy_options.items;
	c->pools.n_policy_options = o->policy_options.n;
	c->pools.types = o->types.items;
	c->pools.n_types = o->types.n;
	c->allowed = (struct permission_flags){ o->namespaces.items, o->namespaces.n };
	if (permission_flags_check(&c->allowed, err) < 0)
		return -EINVAL;
	c->cluster.ignores_namespaces = c->allowed.n > 0;
	c->cluster.labels = o->labels.items;
	c->cluster.n_labels = o->labels.n;
	c->cluster.taints = o->taints.items;
	c->cluster.n_taints = o->taints.n;
	c->topology_object.cpu_is_every_cpu = o->topology_cpu &&
					      strcmp(o->topology_cpu, "all") == 0;
	c->host.manages_files = o->host_configuration &&
				strcmp(o->host_configuration, "managed") == 0;
	c->host.is_on = c->host.manages_files ||
			(o->host_configuration && strcmp(o->host_configuration, "live") == 0);
	c->host.keeps_interrupts = o->interrupts && strcmp(o->interrupts, "keep") == 0;
	c->is_legacy = o->dialect && strcmp(o->dialect, "legacy-2021") == 0;
	c->cluster.is_legacy = c->is_legacy;
	c->pools.legacy_marker = c->is_legacy ? NAME_LEGACY_MARKER : NULL;
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
	.about =
		"Connects to containerd or CRI-O as an NRI plugin and sets the CPUs of every "
		"container:\n"
		"management pods run in the management pool with the shares and limits of their\n"
		"annotations, Guaranteed containers with whole CPUs get exclusive CPUs, all others "
		"run\n"
		"in the shared pool. Updates by the kubelet and external changes of cgroups are "
		"reverted.\n"
		"Containers that started without the agent are adopted when it connects.\n"
		"In a cluster the agent maintains resources and a condition of its Node; without "
		"an\n"
		"API server pinning continues.",
	.options = options,
	.options_size = sizeof(struct agent_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
