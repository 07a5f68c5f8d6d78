#pragma once

/* The agent's command line, as far as it concerns the cluster. Texts are the caller's. */

#include <stdbool.h>
#include <stddef.h>

struct node_sync_config {
	bool is_off;		/* --no-cluster */
	const char *kubeconfig; /* NULL: the service account of the agent's pod, or no cluster */
	const char *context;	/* NULL: the kubeconfig's current context */
	const char *api_server; /* URL; NULL: as the kubeconfig or the pod says */
	const char
		*kubelet_kubeconfig; /* read for the address that the kubelet uses; may be NULL */
	const char *node_name;	     /* NULL: the environment's NODE_NAME, else the host name */
	const char *version;	     /* of this program */
	bool registers; /* creates the Node if it does not exist when the agent starts */
	bool taints_unready;
	bool is_legacy;		   /* namespaces may allow by label */
	bool ignores_namespaces;   /* an administrator named them (--allow-namespace) */
	const char *const *labels; /* of a Node that the agent creates */
	const char *const *taints; /* likewise */
	size_t n_labels, n_taints;
};
