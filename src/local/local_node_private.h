#pragma once

/* What the parts of a node share: moving in and out (node.c), deciding and moving containers
 * (local_node_apply.c), running them (node_run.c). */

#include "local_node.h"

bool run_is_alive(const struct run *run);

/* The state as the intent file has it. */
enum local_state run_local_state(const struct run *run);

/* Whether a container that ended is started again. */
bool run_restarts_after(const struct local_container *c, bool well);
void run_back_off(struct run *run, int64_t now_ms);

/* SIGTERM, or straight to the end when it does not run. */
void run_begin_stop(struct run *run, int64_t now_ms);

int run_open_pid(pid_t pid, struct err *err);

struct run *runs_new(size_t n); /* for free() */
struct run *runs_find(struct run *runs, size_t n, const struct local_container *c);

/* The container as it can be placed now: without CPUs that another one, which is to go, still has
 * alone. False when it has to wait for them. */
bool runs_place(const struct run *runs, size_t n, const struct run *run,
		struct local_container *ret);

/* Puts a run where runs_place said. */
int local_node_move(const struct local_node *node, const struct run *runs, size_t n,
		    struct run *run, const struct local_container *where, struct err *err);

/* The first time: everything that has to be there before a plan can be made. */
int local_node_move_in(struct local_node *node, const struct pool_config *config, int64_t now_ms,
		       struct err *err);

/* Ends and removes cgroups and processes that the list does not know. */
int local_node_remove_strays(const struct container_cgroup *cgroup, struct run *runs, size_t n,
			     struct err *err);

int local_node_save(struct local_node *node, const struct run *runs, size_t n, struct err *err);
