#pragma once

/* Where containers from outside NRI (outside.h) come in and leave: the same rules, ledger, registry
 * and cgroups as for all others. Used by the agent for hooks that ask it, and by a hook itself
 * while no agent runs. */

#include <stdbool.h>

#include "base/str.h"
#include "nri/nri.h"

struct arena;
struct err;
struct manager;

struct oci_containers {
	struct manager *manager;
	int run_fd; /* the agent's directory: records are below it */
};

/* Takes in everything that has a record, for a manager that starts empty; but not `except`, who is
 * only about to arrive ("": nobody is). Who has no place is logged. */
void oci_containers_load(struct oci_containers *d, struct str except);

/* A container has its record and its cgroup, and waits to start: decides, writes its control files
 * and reads them back. Or its record is a promise: it is only about to be made, and its CPUs wait
 * for it. -ENOSPC and other refusals leave no trace but the record, which is the caller's.
 * *ret_text says what it got, as placement_describe() puts it. */
int oci_containers_add(struct oci_containers *d, struct str id, struct arena *a,
		       struct str *ret_text, struct err *err);

/* It is gone. Not having known it is fine. */
void oci_containers_remove(struct oci_containers *d, struct str id);

/* Those whose cgroup has vanished without a word, or has not come in time. */
void oci_containers_sweep(struct oci_containers *d);

/* A manager_inventory_fn; `oci_containers` is a struct oci_containers. */
struct nri_inventory oci_containers_merge(const void *oci_containers,
					  const struct nri_inventory *all, struct arena *a);
