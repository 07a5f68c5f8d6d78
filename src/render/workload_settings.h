#pragma once

/* Files for workloadSettings of the 2021 design's install-config, under the current names (D2).
 * Where nodes of one pool have different CPUs, the pool's files hold those of every node and a unit
 * selects the node's own at boot, because a MachineConfig is the same for a whole pool. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "machine_config.h"
#include "pinning.h"

struct arena;
struct install_config;

void workload_settings_build(const struct install_config *install, bool quota_keys, struct arena *a,
			     struct node_config *ret);

/* The CPUs of every type on one node: its own entries win over those for all nodes. `node` may be
 * empty: the entries for all nodes. Returns how many were written to `ret` (n_settings at most). */
size_t workload_settings_of_node(const struct install_config *install, struct str node,
				 struct workload_cpus *ret);
