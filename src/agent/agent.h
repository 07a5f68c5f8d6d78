#pragma once

/* The node agent as a daemon: reads the configuration, opens the ledger, connects the manager
 * (pin/) to the runtime and reconciles what it placed. Decisions are made in pin/ and pool/. One
 * thread. */

#include <stdbool.h>
#include <stddef.h>

#include "nodesync/node_sync.h"
#include "nodesync/nrt_sync.h"
#include "pin/permission.h"
#include "pin/pools_source.h"

struct distro;
struct err;

enum agent_cpu_manager {
	AGENT_CPU_MANAGER_AUTO,	   /* the kubelet, when its state has policy static */
	AGENT_CPU_MANAGER_OWN,	   /* the agent: every container gets CPUs from its ledger */
	AGENT_CPU_MANAGER_KUBELET, /* the kubelet: the agent only keeps containers off the
				      management CPUs */
};

/* The configuration of the host: live (host/host_live.h), and by files (hostfiles/). */
struct agent_host_config {
	bool is_on;
	bool manages_files; /* --host-configuration managed */
	const struct distro *distro;
	bool keeps_interrupts; /* --interrupts keep */
	const char *root;      /* "/", or where the agent's container has the host's files */
};

struct agent_config {
	struct pools_source pools;
	enum agent_cpu_manager cpu_manager;
	const char *kubelet_state; /* cpu_manager_state */
	const char *nri_socket, *nri_index;
	const char *static_pods;    /* the kubelet's manifest directory; NULL: not converted */
	const char *run_dir;	    /* ledger, status, socket */
	const char *crio_dir;	    /* "/etc/crio": read when the runtime is CRI-O */
	const char *cgroup_root;    /* "/sys/fs/cgroup" */
	const char *topology;	    /* "host" */
	const char *listen;	    /* metrics over TCP; NULL: only the Unix socket */
	const char *podres;	    /* PodResources socket to serve; NULL: none */
	const char *kubelet_podres; /* the kubelet's, read for devices; "": not read */
	struct nrt_config topology_object;
	struct permission_flags allowed; /* namespaces; none: as the cluster says */
	struct node_sync_config cluster;
	bool is_legacy; /* the names of 2021 count, too (D2) */
	struct agent_host_config host;
	bool is_unconfined;	       /* keep system calls, capabilities and write access */
	bool isolated_partitions;      /* make exclusive CPUs isolated cpuset partitions */
	unsigned reconcile_interval_s; /* every cgroup is checked for drift once per interval */
};

/* Runs until SIGTERM or SIGINT. Changed pools files are applied; SIGHUP reads them at once. */
int agent_run(const struct agent_config *config, struct err *err);

/* Restores the host and the static pods' original manifests, widens the cpusets of all containers
 * and pods in the status file, removes what the agent added to the Node, then deletes ledger and
 * status. Refused while an agent runs. */
int agent_uninstall(const struct agent_config *config, struct err *err);
