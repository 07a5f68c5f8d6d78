#pragma once

/* One machine without a cluster: the words its parts share. A directory of manifests is the
 * cluster; containers are commands that run as processes on their pool's CPUs. What should run
 * where is a plan (plan.h), written down as an intent file (intent.h) before anything is started;
 * cage.h puts processes on CPUs, supervisor.h keeps them running, verify.h asks the kernel. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "kube/pod.h"
#include "pool/config.h"

#define LOCAL_NAME_MAX 64

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
	bool is_exclusive; /* alone on its CPUs */
	struct cpuset cpus;
	uint64_t shares;
	int64_t quota_us; /* CGROUP_UNLIMITED: none */
	uint64_t period_us;
};

/* How processes are held on their CPUs: by cgroups with weight and quota, or, where no hierarchy
 * can be written, by CPU affinity alone. */
enum local_mode { LOCAL_CGROUP_V1, LOCAL_CGROUP_V2, LOCAL_AFFINITY, LOCAL_MODE__COUNT };

/* What became of a container, as far as its next supervisor has to know. */
enum local_state {
	LOCAL_WAITING, /* never started */
	LOCAL_STARTED, /* runs, or is to be started again */
	LOCAL_FINISHED,
	LOCAL_FAILED,  /* ended badly and is not started again */
	LOCAL_LEAVING, /* in the plan no more, but has not ended yet */
	LOCAL_STATE__COUNT
};

const char *local_state_name(enum local_state state);
const char *local_mode_name(enum local_mode mode);
const char *local_restart_name(enum local_restart restart);

/* A name that can be part of a path and of an id: lower-case letters, digits, "-" and ".", not
 * beginning with ".", at most `max` long. Kubernetes' own names are. */
bool local_is_name(struct str name, size_t max);

#define LOCAL_LABEL_MAX 63
#define LOCAL_POD_MAX 190 /* with its namespace it is one file name */

/* Namespace, pod and container are such names, of such lengths. */
bool local_container_has_names(const struct local_container *c);

/* True when containers[i] waits for no init container: none before it in its pod is yet to end
 * well. */
bool local_container_may_run(const struct local_container *containers,
			     const enum local_state *states, size_t i);

/* "namespace/pod/container": what messages call it, and the mark its processes carry. */
struct str local_container_id(const struct local_container *c, struct arena *a);
struct local_container *local_container_copy(const struct local_container *c, struct arena *a);

/* The same command in the same surroundings: it need not be started anew. */
bool local_container_same_command(const struct local_container *a, const struct local_container *b);
bool local_container_same(const struct local_container *a, const struct local_container *b);

/* Containers of one pod stand next to each other, in the order of the pod. */
bool local_container_same_pod(const struct local_container *a, const struct local_container *b);
