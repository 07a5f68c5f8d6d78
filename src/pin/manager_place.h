#pragma once

/* Which CPUs a container gets: the one way in for containers that are created, updated, listed by
 * the runtime, found running, or reported by an OCI hook. Classifies the container, asks the ledger
 * and returns the placement. Recording and enforcing it is manager_state.h. */

#include "placement.h"

struct manager;
struct nri_container;
struct nri_pod;

enum place_mode {
	PLACE_NEW,     /* not started: refused when no CPUs fit it */
	PLACE_UNNAMED, /* likewise, and with an id that nothing else knows: no exclusive CPUs */
	PLACE_RUNNING, /* cannot be refused: falls back to the CPUs of its pool */
};

/* Finished pods are released first when they hold the CPUs, and in classic mode shared containers
 * are off exclusive CPUs when this returns. */
int place_container(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		    enum place_mode mode, struct placement *ret, struct err *err);

/* The parts of it, for a synchronization, which asks the ledger about all containers at once. */

/* Cannot fail: a running container with a broken annotation stays in the pool its pod opted in to.
 */
void place_classify_running(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, struct container_class *ret);

struct ledger_request place_request(struct manager *m, const struct nri_pod *pod,
				    const struct nri_container *c,
				    const struct container_class *class);

/* `grant` is the ledger's; NULL: it is asked. */
int place_class(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		const struct container_class *class, const struct ledger_grant *grant,
		struct placement *ret, struct err *err);
