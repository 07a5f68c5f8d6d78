#pragma once

/* The node agent as a daemon: reads the settings, opens the ledger, connects the Manager to the
 * runtime, and keeps looking after what it placed. One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "settings.h"

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
	const char *run_dir;	       /* ledger, status, socket */
	const char *crio_dir;	       /* "/etc/crio": looked at when the runtime is CRI-O */
	const char *cgroup_root;       /* "/sys/fs/cgroup" */
	const char *topology;	       /* "host" */
	const char *listen;	       /* metrics over TCP; NULL: only the Unix socket */
	const char *const *namespaces; /* that may use the reserved CPUs; none: unknown */
	size_t n_namespaces;
	unsigned reassert_s; /* every cgroup is looked at once in this time */
};

/* Runs until SIGTERM or SIGINT. SIGHUP reads the pools again. */
int agent_run(const struct agent_config *config, struct err *err);

/* Widens the cpusets of everything the status file lists, then forgets the ledger. The number of
 * cgroups that could not be widened is logged. */
int agent_uninstall(const struct agent_config *config, struct err *err);
