#pragma once

/* The pods and containers of this node, with the CPU settings of each, as far as the runtime or an
 * OCI hook has reported them. In memory only, owned by the manager: a synchronization builds it
 * anew. Strings are copies; both lists are sorted by runtime id. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cgroup/cgroup_watch.h"
#include "cgroup/cpu_settings.h"
#include "pool/config.h"

struct arena;
struct nri_container;
struct nri_pod;

struct pod_entry {
	char *id, *uid, *namespace, *name;
	char *cgroup;	    /* path below the mount; may be "" */
	char *pause_cgroup; /* likewise */
	uint32_t pause_pid;
	const char *type;   /* the workload type that it claims; static text; NULL: none */
	bool is_management; /* the claim was accepted */
	bool is_local;	    /* classify_is_local() */
	uint64_t shares;    /* of its own cgroup; 0: not set */
	bool lift_quota;    /* a container has exclusive CPUs: its own cgroup gets no quota */
	bool needs_write;   /* by manager_flush() */
	bool was_seen;	    /* its cgroup existed; when it is gone, the pod is finished */
	bool was_written;   /* its cgroup, by any process, since the last check */
	struct cgroup_watch_ids watch, pause_watch;
	size_t n_containers;
};

struct container_entry {
	char *id, *name, *cgroup;
	struct pod_entry *pod;
	enum pool pool;
	bool is_exclusive;
	bool keeps_cpus;  /* a resize of its pool does not move it */
	bool names_cpus;  /* its annotation names them: neither hotplug nor a resize moves it */
	bool is_started;  /* before that the runtime writes its cgroup */
	bool was_written; /* its cgroup, by any process, since the last check */
	bool needs_write; /* by manager_enforce_synchronized() */
	uint32_t pid;	  /* as of the last synchronization */
	struct cgroup_watch_ids watch;
	const struct cpu_settings *settings; /* never NULL; registry_set_settings() */
	bool is_isolated;		     /* its cgroup is an isolated partition */
	char *isolation_error;		     /* why it is not, although it should be; else NULL */
	uint32_t n_drift_corrected;
};

struct registry {
	struct pod_entry **pods;
	size_t n_pods, cap_pods;
	struct container_entry **containers;
	size_t n_containers, cap_containers;
	/* Each once: most containers of a node have the same settings, and a set is 1 KiB. */
	struct shared_settings **settings;
	size_t n_settings, cap_settings;
};

void registry_init(struct registry *r);
void registry_done(struct registry *r);
void registry_clear(struct registry *r);

struct pod_entry *registry_find_pod(const struct registry *r, const char *id);
struct container_entry *registry_find(const struct registry *r, const char *id);

/* Add an entry, or update the one with this id. */
struct pod_entry *registry_put_pod(struct registry *r, const struct nri_pod *pod, struct arena *a);
struct container_entry *registry_put(struct registry *r, struct pod_entry *pod,
				     const struct nri_container *c, struct arena *a);

/* The only ways to change the settings of a container. */
void registry_set_settings(struct registry *r, struct container_entry *c,
			   const struct cpu_settings *settings);
void registry_set_cpus(struct registry *r, struct container_entry *c, const struct cpuset *cpus);

/* The workload type of a management container. */
struct str registry_type_of(const struct container_entry *c);

void registry_remove(struct registry *r, const char *id);
void registry_remove_pod(struct registry *r, const char *id); /* with its containers */

/* Whether there is another sandbox of the same pod: a pod keeps its UID when the kubelet creates a
 * new sandbox for it. */
bool registry_has_sibling(const struct registry *r, const struct pod_entry *pod);

/* The prefix of pod ids and UIDs that an OCI hook assigns to containers which no NRI runtime
 * reports; runtimes' own ids are hexadecimal. A UID of this form belongs to a standalone container.
 */
#define REGISTRY_OCI_PREFIX "oci-"
bool registry_is_oci_pod(const char *pod_id);
bool registry_is_standalone(struct str pod_uid);
