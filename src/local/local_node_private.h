#pragma once

/* Shared by the parts of a local node: set-up and removal (local_node.c), applying a plan
 * (local_node_apply.c), starting and stopping processes (local_node_run.c). Not for other files. */

#include "local_node.h"

bool run_is_alive(const struct run *run);

/* The state that is recorded in the state file. */
enum local_state run_local_state(const struct run *run);

/* Whether the restart policy restarts a container that ended. */
bool run_restarts_after(const struct local_container *c, bool succeeded);
void run_back_off(struct run *run, int64_t now_ms);

/* Sends SIGTERM; a run without a process is finished at once. */
void run_begin_stop(struct run *run, int64_t now_ms);

int run_open_pid(pid_t pid, struct err *err);

struct run *runs_new(size_t n); /* release with free() */
struct run *runs_find(struct run *runs, size_t n, const struct local_container *c);

/* Whether a removed container of the same name is still running: its cgroup is not free yet. */
bool runs_have_predecessor(const struct run *runs, size_t n, const struct run *run);

/* The container with the CPUs that it can have now: without exclusive CPUs of removed containers
 * that still run. False when it has to wait for them. */
bool runs_available_cpus(const struct run *runs, size_t n, const struct run *run,
			 struct local_container *ret);

/* Applies the CPU settings that runs_available_cpus() returned. */
int local_node_move(const struct local_node *node, const struct run *runs, size_t n,
		    struct run *run, const struct local_container *target, struct err *err);

/* Before the first plan: run directory, cgroup, ledger, and the runs of an earlier supervisor. */
int local_node_set_up(struct local_node *node, const struct pool_config *config, int64_t now_ms,
		      struct err *err);

/* Kills and removes containers that are not in the list. */
int local_node_remove_unknown(const struct container_cgroup *cgroup, struct run *runs, size_t n,
			      struct err *err);

int local_node_save(struct local_node *node, const struct run *runs, size_t n, struct err *err);
