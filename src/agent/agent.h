#pragma once

/* The node agent as a daemon: reads the settings, opens the ledger, connects the Manager to the
 * runtime, and keeps looking after what it placed. One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "nodesync/node_sync.h"
#include "nodesync/nrt_sync.h"
#include "pin/pools_source.h"

struct err;

enum agent_cpu_manager {
	AGENT_CPU_MANAGER_AUTO,	   /* the kubelet's, when its state says policy static */
	AGENT_CPU_MANAGER_OWN,	   /* ours: every container is placed by our ledger */
	AGENT_CPU_MANAGER_KUBELET, /* the kubelet's: only the reserved CPUs are ours to guard */
};

struct agent_config {
	struct pools_source pools;
	enum agent_cpu_manager cpu_manager;
	const char *kubelet_state; /* cpu_manager_state */
	const char *nri_socket, *nri_index;
	const char *static_pods;    /* the kubelet's manifests; NULL: not ours to convert */
	const char *run_dir;	    /* ledger, status, socket */
	const char *crio_dir;	    /* "/etc/crio": looked at when the runtime is CRI-O */
	const char *cgroup_root;    /* "/sys/fs/cgroup" */
	const char *topology;	    /* "host" */
	const char *listen;	    /* metrics over TCP; NULL: only the Unix socket */
	const char *podres;	    /* our PodResources socket; NULL: none */
	const char *kubelet_podres; /* the kubelet's, asked for devices; "": never */
	struct nrt_config topology_object;
	const char *const *namespaces; /* that may use the reserved CPUs; none: unknown */
	size_t n_namespaces;
	struct node_sync_config cluster;
	bool isolated_partitions;      /* exclusive CPUs as partitions of the kernel's */
	unsigned reconcile_interval_s; /* every cgroup is looked at once in this time */
};

/* Runs until SIGTERM or SIGINT. Changed pools are noticed; SIGHUP reads them at once. */
int agent_run(const struct agent_config *config, struct err *err);

/* Puts the originals of static pods back, widens the cpusets of everything the status file lists,
 * takes what is ours from the Node, then forgets the ledger. Refused while an agent runs. */
int agent_uninstall(const struct agent_config *config, struct err *err);
