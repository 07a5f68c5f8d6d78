#pragma once

/* One machine without a cluster, read again and again: the agent's status, or the state of
 * `pinfold local`; and how busy its CPUs are. Reads only. */

#include <stdbool.h>

#include "base/arena.h"
#include "cpu/topology.h"
#include "cpu_use.h"
#include "shown_state.h"

struct err;

#define SOURCE_MACHINE_MS 500 /* between two readings */

struct source_machine_config {
	const char *agent_dir; /* run directory of an agent, or NULL */
	const char *local_dir; /* run directory of `pinfold local`, or NULL */
	const char *topology;  /* of the agent's machine: "host", a file, a synthetic string */
};

struct source_machine {
	struct source_machine_config config;
	struct shown_state *state;
	struct arena arena; /* of the topology */
	struct topology topology;
	struct cpu_use *use; /* NULL: not this machine */
	char name[256];
	bool is_failing; /* the last reading failed, and this was logged */
};

/* Reads the machine for the first time. */
int source_machine_open(struct source_machine *s, const struct source_machine_config *config,
			struct shown_state *state, struct err *err);
int source_machine_read(struct source_machine *s, struct err *err);
void source_machine_measure(struct source_machine *s);		/* the use of its CPUs */
struct str source_machine_node(const struct source_machine *s); /* the name of its node */
void source_machine_done(struct source_machine *s);

/* The groups of cores as JSON, for shown_state_set_topology(). Pure. */
int source_machine_groups(const struct topology *t, struct arena *a, struct str *ret,
			  struct err *err);

/* The containers of the agent's status document as pods; pods that it lacks stay. Pure. */
void source_machine_put_status(struct shown_state *state, struct str node, const struct topology *t,
			       yyjson_val *status);
