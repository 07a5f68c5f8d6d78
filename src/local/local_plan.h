#pragma once

/* What should run where on one machine: the manifests' pods through the very admission, profile
 * checks and ledger that a cluster's nodes use. Pure but for the ledger, which the caller owns: on
 * disk for real, in memory to see what would happen. Nothing is started here. */

#include <stdbool.h>
#include <stddef.h>

#include "local.h"
#include "pool/ledger.h"
#include "profile/manifests.h"

struct arena;
struct problem_list;
struct topology;

struct local_plan_input {
	const struct manifests *manifests; /* everything the directory holds */
	const struct topology *topology;
	bool simulate; /* containers need no command: nothing will be started */
};

/* A pod that is not run, and why. */
struct local_refusal {
	struct str namespace, pod;
	struct str text;
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

/* The pools that the directory's one PerformanceProfile gives this machine. False when there are
 * errors in `p`. */
bool local_plan_config(const struct local_plan_input *in, struct arena *a, struct pool_config *ret,
		       struct problem_list *p);

/* Decides about every pod: releases what is gone, gives the pools the sizes of `config`, keeps what
 * is there, places what is new. On success the ledger's transaction is still open, for the caller
 * to commit or to roll back; when there are errors in `p` or it fails, the ledger is as before.
 * CPUs are never taken from under a running container: such containers are named and the plan is
 * refused. */
int local_plan_make(const struct local_plan_input *in, const struct pool_config *config,
		    struct ledger *ledger, struct arena *a, struct local_plan *ret,
		    struct problem_list *p);
