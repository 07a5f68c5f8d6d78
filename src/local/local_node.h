#pragma once

/* The machine as `pinfold local` runs it: its directory, topology, ledger, cage, and the
 * containers with what became of them. One owner, one thread. The supervisor's loop (supervisor.h)
 * calls in here; nothing in here waits, except for processes that were killed.
 *
 * Crash safety: the directory's lock, then the intent, then the ledger, then the first process. A
 * process is found again by its cgroup or its mark, and everything is applied anew by the next
 * `up`, so a crash between any two steps is made good there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "container_cgroup.h"
#include "cpu/topology.h"
#include "pool/ledger.h"
#include "pool/store.h"
#include "state_file.h"

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
	int pid_fd;	  /* readable when it has ended; -1 when not running */
	bool is_child;	  /* not adopted: its exit status is ours to read */
	bool was_started; /* once, by us or by a supervisor before us */
	bool failed;	  /* with RUN_FINISHED: not the way it should */
	bool unwanted;	  /* goes when it has ended */
	struct cpuset at; /* the CPUs it was last given */
	unsigned restarts;
	int64_t restart_at_ms, kill_at_ms;
	int64_t started_at_ms;
};

struct local_node_settings {
	const char *name;
	const char *run_dir;  /* state lives here; made when missing */
	const char *topology; /* "host", or what stands for it */
	bool affinity_only;
};

struct local_node {
	struct local_node_settings settings;
	int dir_fd; /* locked; -1 until the first plan */
	int log_fd; /* what containers print */
	struct container_cgroup cgroup;
	struct err cgroup_error; /* why it is not a better one; code 0 when it is */
	char boot_id[STORE_BOOT_ID_MAX];
	struct arena machine;
	struct topology topology;
	struct ledger ledger;
	struct store store;
	bool has_ledger;
	bool is_new;	   /* nothing was here: when the first plan is refused, nothing shall be */
	bool has_plan;	   /* one was accepted */
	struct arena plan; /* of the present containers and their texts */
	struct run *runs;
	size_t n;
	bool stopping;
	bool unsaved;	/* the intent file is behind */
	bool unsettled; /* somebody waits for CPUs that were still in use */
};

/* Looks at the machine; makes nothing. */
int local_node_open(struct local_node *node, const struct local_node_settings *settings,
		    struct err *err);
void local_node_done(struct local_node *node);

/* Makes the manifests what this machine runs: decides, moves running containers (shrinking before
 * growing), writes the intent, ends what is gone; the first time, takes over what a supervisor
 * before left running. Refused as a whole, with everything as it was and the reasons in `p`, when
 * an input is bad, CPUs would be taken from under a container, or the kernel refuses a write. Pods
 * that are refused one by one are in *ret. `with` holds the manifests; it is taken over when this
 * succeeds, and what *ret points to lives in it. */
int local_node_apply(struct local_node *node, struct arena *with, const struct manifests *manifests,
		     int64_t now_ms, struct local_plan *ret, struct problem_list *p);

/* Does what is due: starts, restarts, kills. Returns when it wants to be called again at the latest
 * (INT64_MAX: only when something happens). What fails and is tried again goes to `on_failure`. */
typedef void (*local_node_failure_fn)(const struct err *err);
int64_t local_node_step(struct local_node *node, int64_t now_ms, local_node_failure_fn on_failure);

/* The process of a run has ended. */
void local_node_ended(struct local_node *node, struct run *run, int64_t now_ms);

/* As process 1 of a container we inherit everybody's orphans: forgets those that have ended. */
void local_node_reap_orphans(const struct local_node *node);

/* Begins to end everything; done when local_node_is_idle(). */
void local_node_stop(struct local_node *node, int64_t now_ms);
bool local_node_is_idle(const struct local_node *node);

/* Nothing that is to go runs any more. */
bool local_node_is_settled(const struct local_node *node);

/* Removes what is left: processes, cgroups, files. */
int local_node_destroy(struct local_node *node, struct err *err);

/* The same without a supervisor, after a crash. 1 when there was something, 0 when there was
 * nothing, -EBUSY when a supervisor is at work. */
int local_node_clean(const struct local_node_settings *settings, struct err *err);

/* What stands in the run directory; -ENOENT when nothing runs here. */
int local_node_read_state(const char *run_dir, struct arena *a, struct local_state_file *ret,
			  struct err *err);
