#pragma once

/* The machine as `pinfold local` runs it: run directory, topology, ledger, cgroups, and the
 * containers with their run state. One owner, one thread. The supervisor's loop (supervisor.h)
 * calls these functions; none of them waits, except for processes that were killed.
 *
 * Crash safety comes from the order of steps: lock the run directory, write the state file, commit
 * the ledger, start the first process. A process is found again by its cgroup or its mark
 * (process.h), and the next `up` applies the whole plan again, so a crash between two steps needs
 * no repair of its own. */

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
	RUN_NOT_STARTED, /* waits for an init container or for CPUs */
	RUN_RUNNING,
	RUN_BACKOFF,  /* ended; restarted at `restart_at_ms` */
	RUN_STOPPING, /* got SIGTERM; killed at `kill_at_ms` */
	RUN_FINISHED,
};

/* One container and its process. */
struct run {
	struct local_container *c; /* in the arena of the current plan */
	enum run_state state;
	pid_t pid;
	int pid_fd;		    /* pidfd, readable when the process has ended; -1: none */
	bool is_child;		    /* not adopted, so that waitid() returns its exit status */
	bool was_started;	    /* by this supervisor or by one before it */
	bool failed;		    /* with RUN_FINISHED: with an error */
	bool is_removed;	    /* no longer in the plan; dropped when its process has ended */
	struct cpuset current_cpus; /* as last applied; the plan may have others */
	unsigned restarts;
	int64_t restart_at_ms, kill_at_ms;
	int64_t started_at_ms;
};

struct local_node_settings {
	const char *name;
	const char *run_dir;  /* created when missing */
	const char *topology; /* "host", a file or a synthetic description */
	bool affinity_only;
};

struct local_node {
	struct local_node_settings settings;
	int dir_fd; /* of the run directory, locked; -1 until the first plan */
	int log_fd; /* output of the containers */
	struct container_cgroup cgroup;
	struct err cgroup_error; /* why cgroups are not used; code 0 when they are */
	char boot_id[STORE_BOOT_ID_MAX];
	struct arena machine; /* of the topology */
	struct topology topology;
	struct ledger ledger;
	struct store store;
	bool has_ledger;
	bool is_new;	   /* no state existed: a refused first plan leaves nothing behind */
	bool has_plan;	   /* a plan was accepted */
	struct arena plan; /* of the containers and their texts */
	struct run *runs;
	size_t n;
	bool is_stopping;
	bool is_unsaved;	/* the state file is out of date */
	bool has_waiting_moves; /* a container waits for CPUs of a stopping one */
};

/* Reads topology and cgroup hierarchy; creates nothing. */
int local_node_open(struct local_node *node, const struct local_node_settings *settings,
		    struct err *err);
void local_node_done(struct local_node *node);

/* Applies manifests: plans, moves running containers (shrinking cpusets before growing others),
 * writes the state file, stops what is no longer planned; the first call also adopts the processes
 * of an earlier supervisor. Refused as a whole, without any change and with the reasons in `p`,
 * when an input is invalid, a container owns CPUs that leave its pool, or the kernel refuses a
 * write. Pods that are refused individually are in *ret. `with` holds the manifests; on success the
 * node takes it over, and *ret points into it. */
int local_node_apply(struct local_node *node, struct arena *with, const struct manifests *manifests,
		     int64_t now_ms, struct local_plan *ret, struct problem_list *p);

/* Starts, restarts and kills what is due. Returns the time of the next call at the latest
 * (INT64_MAX: not before an event). Failures that are retried go to `on_failure`. */
typedef void (*local_node_failure_fn)(const struct err *err);
int64_t local_node_step(struct local_node *node, int64_t now_ms, local_node_failure_fn on_failure);

/* The pidfd of a run is readable. */
void local_node_ended(struct local_node *node, struct run *run, int64_t now_ms);

/* As process 1 of a container the supervisor inherits orphans; reaps those that have ended. */
void local_node_reap_orphans(const struct local_node *node);

/* Stops all containers; finished when local_node_is_idle(). */
void local_node_stop(struct local_node *node, int64_t now_ms);
bool local_node_is_idle(const struct local_node *node);

/* All removed containers have ended and no container waits for CPUs: the kernel matches the plan.
 */
bool local_node_has_converged(const struct local_node *node);

/* Removes remaining processes, cgroups and files. */
int local_node_destroy(struct local_node *node, struct err *err);

/* The same after a crash of the supervisor. Returns 1 when there was something to remove, 0 when
 * there was not, -EBUSY while a supervisor runs. */
int local_node_clean(const struct local_node_settings *settings, struct err *err);

/* Reads the state file of a run directory; -ENOENT when nothing runs there. */
int local_node_read_state(const char *run_dir, struct arena *a, struct local_state_file *ret,
			  struct err *err);
