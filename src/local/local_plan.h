#pragma once

/* Decides what runs where on one machine: the manifests' pods pass the same admission, profile
 * checks and ledger as on a node of a cluster. Pure except for the ledger, which the caller owns:
 * on disk for `local up`, in memory for `local plan`. Starts nothing. */

#include <stdbool.h>
#include <stddef.h>

#include "local.h"
#include "pool/ledger.h"
#include "profile/manifests.h"

struct arena;
struct problem_list;
struct topology;

struct local_plan_input {
	const struct manifests *manifests; /* all objects of the directory */
	const struct topology *topology;
	bool simulate; /* accept containers without a command: nothing will be started */
};

struct local_refusal {
	struct str namespace, pod;
	struct str text; /* the reason */
};

struct local_note {
	struct str namespace, pod;
	struct str text; /* a warning of admission */
};

struct local_plan {
	struct local_container *containers;
	size_t n;
	struct local_refusal *refusals;
	size_t n_refusals;
	struct local_note *notes;
	size_t n_notes;
};

/* The pools that the directory's PerformanceProfile, exactly one, gives this machine. False when
 * there are errors in `p`. */
bool local_plan_config(const struct local_plan_input *in, struct arena *a, struct pool_config *ret,
		       struct problem_list *p);

/* Releases the CPUs of pods that are gone, resizes the pools to `config`, then places every pod;
 * placed containers keep their CPUs. On success the ledger's transaction is still open, for the
 * caller to commit or to roll back; on failure, or with errors in `p`, the ledger is unchanged.
 * CPUs are never taken from a container that owns them: such containers are named and the plan is
 * refused. */
int local_plan_make(const struct local_plan_input *in, const struct pool_config *config,
		    struct ledger *ledger, struct arena *a, struct local_plan *ret,
		    struct problem_list *p);
