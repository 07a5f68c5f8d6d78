#pragma once

/* What workloadSettings of the 2021 design become: a profile for each role of the cluster, with the
 * CPUs of workload type management as its reserved set. What profiles cannot express is named.
 * Pure.
 */

#include <stddef.h>

#include "base/str.h"

struct arena;
struct install_config;
struct manifest_list;

#define SETTINGS_MIGRATION_FILE "workload-partitioning-profiles.yaml"

struct settings_migration {
	struct str profiles; /* YAML documents; "" when there are none */
	struct str *notes;
	size_t n_notes;
};

/* `existing` are the profiles that the user has already: their roles get none. */
void settings_migrate(const struct install_config *install, const struct manifest_list *existing,
		      struct arena *a, struct settings_migration *ret);
