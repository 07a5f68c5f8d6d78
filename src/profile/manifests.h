#pragma once

/* The objects that a layout is resolved from, sorted by kind: install-config, Infrastructure,
 * machine config pools, profiles, MachineConfigs, nodes, pods. Other kinds are ignored. Nothing
 * here reads files (bundle/manifest_load.h does) or checks what an object says. */

#include "kube/manifest.h"

struct arena;
struct problem_list;

struct manifests {
	struct arena *a;
	struct manifest install_config;
	struct manifest infrastructure; /* the last one named "cluster" */
	struct manifest_list pools, profiles, machine_configs, nodes, pods;
	struct manifest_list all; /* every object of any kind */
};

/* An install-config has an apiVersion but no kind. */
bool manifest_is_install_config(yyjson_val *object);

void manifests_init(struct manifests *ms, struct arena *a);

/* Adds objects; those without kind or apiVersion are problems. */
void manifests_add(struct manifests *ms, const struct manifest_list *list, struct problem_list *p);
