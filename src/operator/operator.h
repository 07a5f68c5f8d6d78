#pragma once

/* The operator: coordinates what concerns more than one node. It follows PerformanceProfiles,
 * NodePartitions and Nodes, decides in pure functions over a snapshot (snapshot.h) what to write
 * (writes.h), and writes it. It has no state of its own: everything it needs to go on after a
 * restart is in the cluster. One replica is the leader and acts; its caches are read after it
 * became the leader, so that it sees everything that its predecessor wrote. */

#include <stdbool.h>

#include "base/str.h"

struct err;

struct operator_config {
	const char *kubeconfig; /* NULL: the service account of the pod */
	const char *context;	/* NULL: the kubeconfig's current context */
	const char *namespace;	/* of the Lease */
	const char *listen;	/* metrics and probes; NULL: none */
	const char *version;	/* of this program */
	bool is_unconfined;
	bool is_openshift; /* apply the objects of the Machine Config and Node Tuning Operators */
	bool counts_pools; /* feature gate GuaranteedCPUPool, for the admission policies */
	bool is_dry_run;   /* print what would be written, and end */
	void (*print)(struct str text); /* for the dry run */
};

/* Until SIGTERM. Returns 0, or a negative errno when it cannot start. */
int operator_run(const struct operator_config *config, struct err *err);
