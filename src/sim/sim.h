#pragma once

/* A cluster in memory: nodes, and pods that arrive, are placed as a scheduler places them, get
 * their CPUs from the ledger of their node, and leave. For "does it fit" before anything is bought
 * or changed. The decisions are those of the daemons: admission/, pool/ledger.h, partition/. What
 * is simulated is the scheduler (sim_schedule.c, D50). Nothing here does I/O, and the same input
 * with the same seed gives the same result.
 *
 * A struct sim is filled in this order: classes, then nodes, then pods. One owner, one thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admission/decision.h"
#include "base/str.h"
#include "codec/doc.h"
#include "pool/ledger.h"
#include "sim_resources.h"

struct admission_state;
struct arena;
struct err;

#define SIM_NONE UINT32_MAX /* no node, no pod */

/* A kind of machine: CPUs and pools. Nodes share it. */
struct sim_machine {
	struct str profile; /* "": none, the node is not partitioned */
	const struct topology *topology;
	bool has_pools;
	struct ledger empty; /* with the pools and without assignments; if has_pools */
};

/* Fails like ledger_init(). `pools` NULL: the machine is not partitioned. */
int sim_machine_init(struct sim_machine *m, const struct topology *t,
		     const struct pool_config *pools, struct str profile, struct err *err);
void sim_machine_done(struct sim_machine *m);

/* Nodes that the scheduler cannot tell apart, except by what runs on them. */
struct sim_shape {
	struct str pool; /* for reports */
	yyjson_val *node;
	const struct sim_machine *machine; /* NULL: CPUs unknown, nothing is assigned */
	struct sim_amounts allocatable;
	struct str taints;
	bool is_unschedulable;
};

struct sim_node {
	uint32_t shape;
	uint32_t number; /* within its shape */
	uint32_t n_pods;
	struct ledger *ledger; /* NULL until a pod needs exclusive CPUs */
	int64_t scored_cpu, scored_memory;
	int64_t cores, peak_cores; /* millicores of all workload types, now and at most */
	struct sim_amounts used;
};

/* What keeps pods of a class off a shape, whatever runs there; in the scheduler's order. */
enum sim_obstacle {
	SIM_NO_OBSTACLE,
	SIM_UNSCHEDULABLE,
	SIM_TAINTED,
	SIM_NOT_SELECTED,
	SIM_OBSTACLE__COUNT
};

/* What admission did with the pods of a class. */
enum sim_admission {
	SIM_STORED, /* it was in the cluster before: not admitted again */
	SIM_UNCHANGED,
	SIM_CONVERTED, /* to a workload type */
	SIM_COUNTED,   /* in the CPU pools */
	SIM_SKIPPED,   /* opted in, and was left as it is */
	SIM_DENIED,
	SIM_ADMISSION__COUNT
};

const char *sim_admission_name(enum sim_admission admission); /* "converted" */

/* Pods that are equal but for their names. */
struct sim_class {
	struct str namespace, name; /* of the first one */
	uint64_t hash;		    /* of what makes them equal */
	enum sim_admission admission;
	struct str message; /* why they are denied or skipped; "" otherwise */
	struct sim_request request;
	uint8_t asked[SIM_RESOURCES_MAX]; /* indexes of what they request */
	size_t n_asked;
	bool is_scored_by_balance; /* not best-effort */
	yyjson_val *given;	   /* as it was, before admission */
	yyjson_val *spec;
	struct ledger_member *members; /* all containers; NULL: none gets exclusive CPUs */
	size_t n_members;
	unsigned n_cpus;      /* exclusive CPUs of a pod; 0: none */
	uint8_t *obstacles;   /* enum sim_obstacle for each shape */
	bool is_stuck;	      /* fits on no node, since the last departure */
	uint32_t first, last; /* pending pods, oldest first; SIM_NONE: none */
	size_t n_arrived, n_running, n_pending, n_refused, n_left;
	int refusal; /* of a node's ledger: the last code, 0: none */
	char why_refused[ERR_MSG_SIZE];
};

enum sim_pod_state {
	SIM_POD_PENDING,
	SIM_POD_RUNNING,
	SIM_POD_REFUSED,
	SIM_POD_DENIED,
	SIM_POD_LEFT
};

struct sim_pod {
	uint32_t class;
	uint32_t node;	/* SIM_NONE: none */
	uint32_t place; /* running: index in `running`; pending: the next one of its class */
	uint8_t state;	/* enum sim_pod_state */
	bool is_bound;	/* to its node: it never leaves and is never placed elsewhere */
};

struct sim {
	struct arena *a;
	uint64_t random;
	struct sim_resources resources;
	struct sim_class *classes;
	size_t n_classes, cap_classes;
	uint32_t *by_hash; /* classes, open addressing; n_slots of them */
	size_t n_slots;
	struct sim_shape *shapes;
	size_t n_shapes, cap_shapes;
	struct sim_node *nodes;
	size_t n_nodes, cap_nodes;
	struct sim_pod *pods;
	size_t n_pods, cap_pods;
	uint32_t *running;
	size_t n_running;
	size_t cap_running;
	size_t n_pending;
	uint32_t start; /* the node at which the next search begins */
};

void sim_init(struct sim *s, uint64_t seed, struct arena *a);
void sim_done(struct sim *s); /* the ledgers; everything else is in the arena */

/* The class of a pod, or of the pods that a workload creates. The API server's defaults are set,
 * and the pod is admitted; one that is already bound to a node is taken as it is. */
int sim_add_class(struct sim *s, const struct admission_state *state, yyjson_val *object,
		  uint32_t *ret, struct err *err);

/* `count` nodes like this Node object. The machine must outlive the simulation. */
int sim_add_nodes(struct sim *s, yyjson_val *node, struct str pool,
		  const struct sim_machine *machine, uint32_t count, struct err *err);

/* A pod arrives. It runs, waits, or is refused by the node that it was sent to. */
uint32_t sim_arrive(struct sim *s, uint32_t class);
/* The same on one node: of a DaemonSet, or, if it `runs` there already, whether it fits or not. */
uint32_t sim_arrive_on(struct sim *s, uint32_t class, uint32_t node, bool runs);

/* A running or pending pod leaves. Pods that wait get its place, the oldest first. */
void sim_leave(struct sim *s, uint32_t pod);

/* `count` times a running pod, chosen at random, leaves, and one like any of the first `n_pods`
 * arrives. */
void sim_churn(struct sim *s, size_t count);

/* A number below n, from the seed. */
uint64_t sim_random(struct sim *s, uint64_t n);

/* "name", or "name-7" for one of several nodes. */
struct str sim_node_name(const struct sim *s, uint32_t node, struct arena *a);

/* --- for the parts of the module --- */

/* The node for a pod of this class by filters and scores; SIM_NONE when it fits nowhere. */
uint32_t sim_schedule(struct sim *s, const struct sim_class *c);

/* Whether the node could take such a pod now. */
bool sim_fits(const struct sim *s, const struct sim_class *c, uint32_t node);

/* "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." */
struct str sim_why_pending(const struct sim *s, const struct sim_class *c, struct arena *a);

void sim_class_match(const struct sim *s, struct sim_class *c);
