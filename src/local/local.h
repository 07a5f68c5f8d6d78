#pragma once

/* Types that the parts of `pinfold local` share: containers, modes and states of one machine
 * without a cluster. A directory of manifests stands for the cluster, and containers are commands
 * that run as processes on the CPUs of their pool. local_plan.h decides what runs where,
 * state_file.h records it before anything starts, container_cgroup.h puts processes on CPUs,
 * supervisor.h keeps them running and local_audit.h compares with the kernel. Nothing here does
 * I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cgroup/cpu_settings.h"
#include "kube/pod.h"
#include "pool/config.h"

#define LOCAL_NAME_MAX 64

struct ledger;

enum local_restart {
	LOCAL_RESTART_ALWAYS,
	LOCAL_RESTART_ON_FAILURE,
	LOCAL_RESTART_NEVER,
	LOCAL_RESTART__COUNT
};

struct local_container {
	struct str namespace, pod, name;
	enum container_kind kind;
	enum local_restart restart;
	struct str *argv; /* command and args; at least one */
	size_t n_argv;
	struct str *env; /* "NAME=value" */
	size_t n_env;
	struct str workdir; /* empty: where the supervisor runs */
	unsigned grace_s;   /* between SIGTERM and SIGKILL */

	enum pool pool;
	struct str type;	      /* workload type of a management container */
	bool is_exclusive;	      /* its CPUs are assigned to it alone */
	struct cpu_settings settings; /* all of them are set */
};

/* How CPU settings are enforced: by cgroups, or by CPU affinity where no hierarchy is writable.
 * Affinity enforces neither weight nor quota. */
enum local_mode { LOCAL_CGROUP_V1, LOCAL_CGROUP_V2, LOCAL_AFFINITY, LOCAL_MODE__COUNT };

/* Recorded in the state file, for the next supervisor. */
enum local_state {
	LOCAL_NOT_STARTED,
	LOCAL_RUNNING, /* or waits to be restarted */
	LOCAL_FINISHED,
	LOCAL_FAILED,	/* finished with an error */
	LOCAL_STOPPING, /* no longer in the plan, its process still exists */
	LOCAL_STATE__COUNT
};

const char *local_state_name(enum local_state state);
const char *local_mode_name(enum local_mode mode);

/* Whether a name can be part of a path and of an id: lower-case letters, digits, "-" and ".", not
 * beginning with ".", at most `max` characters. Kubernetes names are. */
bool local_name_is_valid(struct str name, size_t max);

#define LOCAL_LABEL_MAX 63
#define LOCAL_POD_MAX 190 /* "NAMESPACE_POD" is one file name, at most 255 bytes */

bool local_container_names_are_valid(const struct local_container *c);

/* True when every init container before containers[i] in its pod has finished successfully. */
bool local_container_may_run(const struct local_container *containers,
			     const enum local_state *states, size_t i);

/* "namespace/pod/container": in messages, and in the mark of its processes (process.h). */
struct str local_container_id(const struct local_container *c, struct arena *a);
/* Gives a container without exclusive CPUs those that its pool, or its workload type, has now. */
void local_container_set_cpus(struct local_container *c, const struct ledger *l);

struct local_container *local_container_copy(const struct local_container *c, struct arena *a);

/* Same command, environment and working directory: a running process can be kept. */
bool local_container_same_command(const struct local_container *a, const struct local_container *b);
bool local_container_same(const struct local_container *a, const struct local_container *b);

bool local_container_same_pod(const struct local_container *a, const struct local_container *b);
