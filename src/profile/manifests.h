#pragma once

/* The objects a user gives us, sorted by kind: install-config, Infrastructure, pools, profiles,
 * MachineConfigs, nodes, pods. Bytes come in, views come out; kinds we do not know are passed
 * over. Nothing here judges what an object says. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct problem_list;

/* One object and the document it stands in, for messages. */
struct manifest {
	const struct doc *doc; /* NULL: there is none */
	yyjson_val *object;
};

struct manifest_list {
	struct manifest *items;
	size_t n, cap;
};

struct manifests {
	struct arena *a;
	struct manifest install_config;
	struct manifest infrastructure; /* the last one named "cluster" */
	struct manifest_list pools, profiles, machine_configs, nodes, pods;
	struct manifest_list all; /* every object, whatever its kind */
};

void manifests_init(struct manifests *ms, struct arena *a);

/* Takes one file: YAML or JSON, several documents, Lists expanded. The text must outlive `ms`. */
void manifests_add(struct manifests *ms, struct str text, struct str file, struct problem_list *p);
