#pragma once

/* KubeletConfiguration from a partition: for OpenShift's KubeletConfig objects
 * (docs/reference/openshift-render.md#kubeletconfig), and as a file for any kubelet. */

#include <stdbool.h>

#include "codec/doc.h"

struct arena;
struct partition;
struct problem_list;

/* What assigns exclusive CPUs. */
enum cpu_manager {
	CPU_MANAGER_DEFAULT, /* the agent in pools mode, else the kubelet */
	CPU_MANAGER_STATIC,  /* the kubelet; in pools mode with the shared CPUs reserved (D27) */
	CPU_MANAGER_NONE,    /* Pinfold's agent; the kubelet sets no cpusets */
};

struct kubelet_options {
	enum cpu_manager cpu_manager;
	bool fill_reservations;	 /* memory for the system and eviction, as OpenShift sets it */
	bool strict_reservation; /* strict-cpu-reservation, kubelet 1.32 and later */
};

/* The KubeletConfiguration, with what the annotation kubeletconfig.experimental gave as its base.
 */
yyjson_mut_val *kubelet_configuration(yyjson_mut_doc *m, const struct partition *part,
				      const struct kubelet_options *options, struct arena *a,
				      struct problem_list *p);

/* In pools mode, says what assigns exclusive CPUs and what that requires. */
void kubelet_note_pools(const struct partition *part, const struct kubelet_options *options,
			struct problem_list *p);

/* Adds the zero values that OpenShift's own writer leaves in; they have no effect on a node. */
void kubelet_add_zero_values(yyjson_mut_doc *m, yyjson_mut_val *configuration, struct arena *a);
