#pragma once

/* Adds and removes standalone containers (oci_record.h): the same rules, ledger, registry and
 * cgroups as for containers of the runtime. Used by the agent for requests of OCI hooks, and by a
 * hook itself while no agent runs. */

#include <stdbool.h>

#include "base/str.h"
#include "nri/nri.h"

struct arena;
struct err;
struct manager;

struct oci_containers {
	struct manager *manager;
	int run_fd; /* the run directory, which contains the records */
};

/* Adds every container that has a record, for a manager that starts empty, except the one with id
 * `except`, which is about to be added ("": none). Failures are logged. */
void oci_containers_load(struct oci_containers *oci, struct str except);

/* Adds a container whose record exists. After stage create it has a cgroup and waits to start:
 * decides, writes its CPU settings and reads them back. After precreate its CPUs are assigned and
 * nothing is written yet. A refusal (-ENOSPC and others) leaves nothing but the record, which the
 * caller deletes. *ret_text is its placement as JSON (placement_describe()). */
int oci_containers_add(struct oci_containers *oci, struct str id, struct arena *a,
		       struct str *ret_text, struct err *err);

/* Removes a container that has ended; an unknown id is no error. */
void oci_containers_remove(struct oci_containers *oci, struct str id);

/* Removes containers whose cgroup vanished without a remove hook, or was never created. */
void oci_containers_sweep(struct oci_containers *oci);

/* A manager_inventory_fn; `oci_containers` is a struct oci_containers. */
struct nri_inventory oci_containers_merge(const void *oci_containers,
					  const struct nri_inventory *all, struct arena *a);
