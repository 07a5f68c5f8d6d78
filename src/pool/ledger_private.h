#pragma once

/* Functions shared by the ledger's source files. Other modules use ledger.h. */

#include "ledger.h"

/* The first item that is not before (pod, container). */
size_t ledger_position(const struct ledger *l, struct str pod_uid, struct str container);

/* Opens a transaction unless one is open; pass the result to ledger_leave(). */
bool ledger_enter(struct ledger *l);

/* Commits what ledger_enter() opened, or rolls back when `r` is a failure. Returns `r` or the
 * failure of the commit. */
int ledger_leave(struct ledger *l, bool entered, int r, struct err *err);

void ledger_add(struct ledger *l, const struct ledger_request *request, const struct cpuset *cpus);
void ledger_remove(struct ledger *l, size_t index);
void ledger_undo(struct ledger *l); /* the last ledger_add() of the open transaction */

/* Replaces configuration and machine, and computes what follows from them. */
void ledger_set_frame(struct ledger *l, const struct topology *t, const struct pool_config *c);
void ledger_compute(struct ledger_frame *f);

/* ledger_cpus() for a planned frame. */
bool ledger_frame_cpus(const struct ledger_frame *f, enum pool pool, struct cpuset *ret);

/* The number of exclusive CPUs that the request asks for. */
unsigned ledger_wanted(const struct ledger_request *request);

/* "namespace/name/container", or the pod's UID when its name is unknown. */
struct str assignment_label(const struct assignment *a, struct arena *arena);
