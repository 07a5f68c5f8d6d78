#pragma once

/* The machine as `pinfold local` runs it: its directory, topology, ledger, cage, and the
 * containers with what became of them. One owner, one thread. The supervisor's loop (supervisor.h)
 * calls in here; nothing in here waits. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "cage.h"
#include "cpu/topology.h"
#include "intent.h"
#include "pool/ledger.h"
#include "pool/store.h"

struct err;
struct local_plan;
struct manifests;
struct problem_list;

enum run_state {
	RUN_WAITING, /* for an init container before it */
	RUN_RUNNING,
	RUN_BACKOFF,  /* ended; starts again at `restart_at_ms` */
	RUN_STOPPING, /* told to end; killed at `kill_at_ms` */
	RUN_FINISHED,
};

struct run {
	struct local_container *c; /* in the arena of the present plan */
	enum run_state state;
	pid_t pid;
	int pid_fd;    /* readable when it has ended; -1 when not running */
	bool is_child; /* not adopted: its exit status is ours to read */
	bool unwanted; /* goes when it has ended */
	unsigned restarts;
	int64_t restart_at_ms, kill_at_ms;
	int64_t started_at_ms;
};

struct node_settings {
	const char *name;
	const char *run_dir;  /* state lives here; made when missing */
	const char *topology; /* "host", or what stands for it */
	bool affinity_only;
};

struct node {
	struct node_settings settings;
	int dir_fd;
	struct cage cage;
	struct err cage_why; /* why it is not a better one; code 0 when it is */
	struct arena machine;
	struct topology topology;
	struct ledger ledger;
	struct store store;
	bool has_ledger;
	struct arena plan; /* of the present containers and their texts */
	struct run *runs;
	size_t n;
	bool stopping;
};

int node_open(struct node *node, const struct node_settings *settings, struct err *err);
void node_done(struct node *node);

/* Makes the manifests what this machine runs: decides, writes the intent, moves running containers
 * (shrinking before growing), ends what is gone. Refused as a whole, with nothing changed and the
 * reasons in `p`, when an input is bad or CPUs would be taken from under a container. Pods that are
 * refused one by one are in *ret. `with` holds the manifests; it is taken over when this succeeds,
 * and what *ret points to lives in it. */
int node_apply(struct node *node, struct arena *with, const struct manifests *manifests,
	       int64_t now_ms, struct local_plan *ret, struct problem_list *p);

/* Does what is due: starts, restarts, kills. Returns when it wants to be called again at the latest
 * (INT64_MAX: only when something happens). Failures to start are reported through `on_failure`. */
typedef void (*node_failure_fn)(const struct local_container *c, const struct err *err);
int64_t node_step(struct node *node, int64_t now_ms, node_failure_fn on_failure);

/* The process of a run has ended. */
void node_ended(struct node *node, struct run *run, int64_t now_ms);

/* Begins to end everything; done when node_is_idle(). */
void node_stop(struct node *node, int64_t now_ms);
bool node_is_idle(const struct node *node);

/* Removes what is left: cgroups, state. Only when idle. */
int node_destroy(struct node *node, struct err *err);

/* What stands in the run directory; -ENOENT when nothing runs here. */
int node_read_intent(const char *run_dir, struct arena *a, struct intent *ret, struct err *err);
