#pragma once

/* Adopts everything that the runtime lists after a connection: decides every placement once, then
 * acts in passes, so that an exclusive CPU never has a second container
 * (docs/reference/pools.md#synchronization). */

#include "nri/nri.h"

struct manager;

/* A handler of struct nri_handlers; `user` is a struct manager. */
int manager_on_synchronize(void *user, const struct nri_inventory *all, struct nri_reply *reply);

/* Writes the cgroups of the containers that the last synchronization found, unless it is done.
 * Comes after the reply and before the next request is handled: a container that is created must
 * not get CPUs that another one still has. */
void manager_enforce_synchronized(struct manager *m);
