#pragma once

/* What the configuration of containerd and CRI-O says about NRI, and what the kernel's command line
 * says about CPUs. Pure. */

#include "cpu/cpuset.h"
#include "preflight_node.h"

struct arena;
struct err;

/* Applies one file to the setting, in the order in which the runtime reads them: the last one
 * wins. */
int runtime_config_read(enum distro_runtime runtime, struct str text, struct str file,
			struct arena *a, struct nri_setting *setting, struct err *err);

/* "isolcpus=managed_irq,domain,2-7": the CPUs of a kernel argument, without flags. False when it is
 * not given or has no valid list. */
bool cmdline_cpus(struct str cmdline, struct str name, struct cpuset *ret);

/* One KubeletConfiguration, the main file or a drop-in: members that it has replace earlier ones.
 */
int kubelet_config_apply(struct str text, struct str file, struct arena *a, struct kubelet_fact *k,
			 struct err *err);
