#pragma once

/* MachineConfigs of the input that partition nodes and that the user wrote, as for single nodes of
 * OpenShift 4.8 to 4.12. Rendered default files must not override them, and the user deletes them
 * once a profile replaces them. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "manifests.h"

struct arena;
struct layout;
struct problem_list;

struct user_config {
	struct manifest at;
	struct str name, role; /* the role is the machine config pool; "" without a label */
	bool writes_marker;
	struct str drop_in; /* CRI-O's drop-in that is read first; "" when it writes none */
};

struct user_configs {
	struct user_config *items;
	size_t n;
};

void user_configs_find(const struct manifest_list *machine_configs, struct arena *a,
		       struct user_configs *ret);

/* True when a MachineConfig writes the kubelet marker, a rendered one included. */
bool machine_config_has_marker(yyjson_val *machine_config);

/* The default files of a pool that do not override what the user wrote. */
struct default_files {
	bool marker;
	const char *drop_in; /* NULL: none */
};

struct default_files user_configs_defaults(const struct user_configs *configs, struct str pool,
					   struct arena *a);

/* Says which MachineConfigs a profile replaces, and which stay in force. */
void user_configs_report(const struct user_configs *configs, const struct layout *layout,
			 struct problem_list *p);
