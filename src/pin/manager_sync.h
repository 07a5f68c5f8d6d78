#pragma once

/* Adopts everything that the runtime lists after a connection: decides every placement once, then
 * acts in passes, so that an exclusive CPU never has a second container
 * (docs/reference/pools.md#synchronization). */

#include "nri/nri.h"

/* A handler of struct nri_handlers; `user` is a struct manager. */
int manager_on_synchronize(void *user, const struct nri_inventory *all, struct nri_reply *reply);
