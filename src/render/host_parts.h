#pragma once

/* The parts of a host bundle that differ between distributions: runtime, kubelet, agent, and the
 * machine configuration of Talos, which replaces the bundle. */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct distro;
struct err;
struct file_set;
struct kernel_args;
struct node_config;
struct partition;

/* NRI, and CRI-O's CPUs for pause containers. For both runtimes where the distribution leaves the
 * choice, because a profile does not say which one its machines have. */
void host_add_runtimes(struct node_config *c, const struct distro *d, struct str infra_cpus,
		       struct arena *a);

/* Whether machines of this distribution may have CRI-O. */
bool host_may_have_crio(const struct distro *d);

/* The KubeletConfiguration, where this distribution's kubelet reads it. A line for a file of flags
 * goes to `lines`. */
int host_add_kubelet(struct node_config *c, struct file_set *lines, const struct distro *d,
		     yyjson_mut_val *configuration, struct err *err);

/* The agent as a unit of the machine, with the program itself. */
void host_add_agent(struct node_config *c, const struct distro *d, struct str program,
		    struct arena *a);

/* Patches for `talosctl`, and the flags of an agent. */
int talos_render(struct file_set *files, const struct partition *part,
		 yyjson_mut_val *kubelet_configuration, const struct kernel_args *args,
		 struct err *err);

/* containerd's table that turns NRI on. */
struct str containerd_nri(int64_t version, struct arena *a);
