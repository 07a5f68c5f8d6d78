#pragma once

/* A node: a runtime, an administrator and an agent on 4 CPUs with 3 containers, as actions that may
 * happen in a state, and what must be true after each. The agent is the real one: manager, ledger,
 * store and resize. The invariants are those of the program itself:
 *
 *   always       two running containers that the agent has placed never share an exclusive CPU,
 *		  and exclusive CPUs never change while their container runs
 *   always       ledger_check(): I1 to I5 (docs/reference/pools.md#invariants)
 *   when quiet   once the agent runs, is connected and has checked every cgroup, the audit of
 *                `pinfold verify` (cgroup/audit.h) finds nothing; a container is on management
 *                CPUs only with permission
 *   at the end   when every pod is removed, every CPU is free again */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cgroup/cgroup.h"
#include "cpu/topology.h"
#include "nri/nri.h"
#include "pin/manager.h"
#include "pool/config.h"
#include "pool/store.h"
#include "world.h"

enum kind { KIND_NONE, KIND_SHARED, KIND_MANAGEMENT, KIND_ONE_CPU, KIND_TWO_CPUS };

#define MAX_POOLS 3

struct pools_text {
	const char *reserved, *shared, *guaranteed; /* shared NULL: classic mode */
};

struct scenario {
	const char *name;
	enum kind kinds[WORLD_CONTAINERS];
	struct pools_text pools[MAX_POOLS]; /* the first one, and those it is changed to */
	bool defers;
	bool is_large;
	struct world budget; /* only the ..._left members */
};

enum agent_state { AGENT_DOWN, AGENT_STARTED, AGENT_CONNECTED };

/* What a container looks like to the runtime. */
struct subject {
	char id[8], uid[8], cgroup_parent[48], cgroups_path[64];
	struct nri_pair annotations[2];
	struct nri_pod_linux pod_linux;
	struct nri_pod pod;
	struct nri_cpu cpu;
	struct nri_resources resources;
	struct nri_container_linux on_linux;
	struct nri_container container;
};

struct node {
	const struct scenario *scenario;
	struct topology topology;
	struct pool_config pools[MAX_POOLS];
	struct arena a; /* of one operation */
	struct arena keep;

	enum agent_state state;
	struct store store;
	struct ledger ledger;
	struct manager manager;
	struct cgroup_fs cgroups;
	struct subject subjects[WORLD_CONTAINERS];
	const char *violation; /* the first one */
	char detail[512];
};

/* One transition: an action, maybe with a fault at one of its writes. */
struct node_step {
	uint8_t action, fault, fault_at;
};

enum action {
	ACT_CREATE,				  /* one for each container; likewise the next */
	ACT_MAKE = ACT_CREATE + WORLD_CONTAINERS, /* the runtime makes the cgroup */
	ACT_START = ACT_MAKE + WORLD_CONTAINERS,
	ACT_POST_START = ACT_START + WORLD_CONTAINERS,
	ACT_EXIT = ACT_POST_START + WORLD_CONTAINERS,
	ACT_REMOVE = ACT_EXIT + WORLD_CONTAINERS,
	ACT_UPDATE = ACT_REMOVE + WORLD_CONTAINERS, /* the runtime applies an update */
	ACT_RESIZE = ACT_UPDATE + WORLD_CONTAINERS, /* the next pools; one of them is the first */
	ACT_TICK = ACT_RESIZE + MAX_POOLS,
	ACT_CRASH,
	ACT_BOOT, /* the agent starts */
	ACT_SYNC,
	ACT_DISCONNECT,
	ACT_PERMISSION,
	ACT__COUNT
};

/* `s` must outlive it. */
void node_init(struct node *n, const struct scenario *s);
void node_done(struct node *n);

/* The first state: the agent runs and is connected, and there are no containers. */
void node_start(struct node *n);

bool node_may_act(const struct node *n, uint8_t action);

/* One transition, and the checks after it: n->violation has the first that failed. Returns the
 * number of writes. */
unsigned node_perform(struct node *n, const struct node_step *s);

/* Lets the node come to rest, without faults, and checks what has to be true then. The state is
 * destroyed. */
void node_check_quiet(struct node *n);

uint64_t node_hash(struct node *n);
void node_print_step(const struct node_step *s, char *to, size_t size);
