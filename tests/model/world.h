#pragma once

/* The part of a node that survives a crash of the agent: the cgroups of the containers, the state
 * file, the pools file and the namespace's permission. A plain value without pointers, so a copy
 * of it is a snapshot. The functions of cgroup/cgroup.h and the file functions that the store
 * calls are replaced by the linker (--wrap, see meson.build) with ones that act on the world. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define WORLD_CPUS 4
#define WORLD_ALL 0xf /* a cpuset as a mask: every CPU of the machine */
#define WORLD_CONTAINERS 3
#define WORLD_STATE_MAX 4096

enum life {
	LIFE_ABSENT,
	LIFE_REPLIED, /* the runtime has the reply to CreateContainer and makes the cgroup */
	LIFE_CREATED, /* the cgroup exists, the process does not run */
	LIFE_STARTED, /* the process runs; the runtime has not sent PostStartContainer */
	LIFE_RUNNING,
	LIFE_EXITED, /* its cgroup is gone; the pod exists */
};

struct world_container {
	enum life life;
	uint8_t starts_left;
	uint8_t cpus;	  /* of the cgroup; 0: inherited, every CPU */
	uint8_t replied;  /* LIFE_REPLIED: the CPUs that the runtime will write; 0: none */
	uint8_t update;	  /* CPUs of an update that the runtime has not applied yet; 0: none */
	uint8_t owned;	  /* exclusive CPUs that the agent has promised; 0: none */
	bool is_settled;  /* the agent has placed it, so the guarantees hold for it */
	bool was_written; /* by the runtime; an inotify event waits */
	uint64_t weight;
	int64_t quota_us;
};

struct world {
	struct world_container containers[WORLD_CONTAINERS];
	char state[WORLD_STATE_MAX]; /* the ledger's file */
	size_t n_state;		     /* 0: no file */
	uint8_t pools;		     /* index of the configuration in the pools file */
	uint8_t resizes_left, crashes_left, faults_left, changes_left;
	uint8_t permission;
	bool is_degraded; /* a write has failed since the agent last checked every cgroup */
};

/* What happens at one of the writes (to a cgroup or to the state file) of an operation. */
enum fault {
	FAULT_NONE,
	FAULT_CRASH, /* the agent ends before it; later writes of the operation do not happen */
	FAULT_FAIL,  /* it fails with EIO; the operation goes on */
};

struct world_run {
	struct world world;
	enum fault fault;
	unsigned fault_at; /* index of the write, from 0 */
	unsigned n_writes; /* so far in this operation */
	bool is_dead;
	/* Called after each write to a cgroup. */
	void (*on_write)(struct world_run *run);
};

extern struct world_run world_run; /* the only one: the replaced functions have no context */

/* Begins an operation of the agent. */
void world_begin(enum fault fault, unsigned fault_at);

/* "c0" for the container with index 0, in the names of pods and cgroups. */
int world_index(const char *path);

/* The model itself is wrong. */
static inline void world_require(bool ok)
{
	if (!ok)
		abort();
}

static inline uint8_t world_cpus(const struct world_container *c)
{
	return c->cpus ? c->cpus : WORLD_ALL;
}

static inline bool world_runs(const struct world_container *c)
{
	return c->life == LIFE_STARTED || c->life == LIFE_RUNNING;
}

static inline bool world_has_cgroup(const struct world_container *c)
{
	return c->life >= LIFE_CREATED && c->life <= LIFE_RUNNING;
}
