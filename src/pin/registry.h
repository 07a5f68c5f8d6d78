#pragma once

/* The pods and containers of this node and where each belongs: the agent's intent. Owned by the
 * Manager; strings are copies. Kept sorted by runtime id. */

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
	bool is_management;
	bool is_static;	 /* from the kubelet's manifest directory */
	uint64_t shares; /* wanted for its cgroup; 0: leave it */
	bool lift_quota;
	bool is_dirty;	  /* its cgroup waits to be written */
	bool had_cgroup;  /* seen; when it vanishes, the pod is over */
	bool needs_check; /* somebody wrote there (suspects.h) */
	struct cgroup_watch_ids watch, pause_watch;
	size_t n_containers;
};

struct container_entry {
	char *id, *name, *cgroup;
	struct pod_entry *pod;
	enum pool pool;
	bool is_exclusive;
	bool is_apart;	  /* a resize of its pool leaves it where it is */
	bool is_started;  /* before that its cgroup is the runtime's to fill */
	bool needs_check; /* somebody wrote there (suspects.h) */
	struct cgroup_watch_ids watch;
	struct cpu_settings settings;
	bool is_isolated;      /* its CPUs are a partition of the kernel's */
	char *isolation_fails; /* why they are not, though they should be; else NULL */
	uint32_t n_repairs;
};

struct registry {
	struct pod_entry **pods;
	size_t n_pods, cap_pods;
	struct container_entry **containers;
	size_t n_containers, cap_containers;
};

void registry_init(struct registry *r);
void registry_done(struct registry *r);
void registry_clear(struct registry *r);

struct pod_entry *registry_find_pod(const struct registry *r, const char *id);
struct container_entry *registry_find(const struct registry *r, const char *id);

/* Add what is new, refresh what is known. */
struct pod_entry *registry_put_pod(struct registry *r, const struct nri_pod *pod, struct arena *a);
struct container_entry *registry_put(struct registry *r, struct pod_entry *pod,
				     const struct nri_container *c, struct arena *a);

void registry_remove(struct registry *r, const char *id);
void registry_remove_pod(struct registry *r, const char *id); /* with its containers */

/* Another sandbox of the same pod: pods keep their UID when the kubelet makes a new sandbox. */
bool registry_has_sibling(const struct registry *r, const struct pod_entry *pod);

/* Pods and UIDs that an OCI hook made up, because no NRI runtime reports the container: runtimes'
 * own ids are hexadecimal. A UID of this form belongs to a container in no pod at all. */
#define REGISTRY_OCI_PREFIX "oci-"
bool registry_is_oci_pod(const char *pod_id);
bool registry_is_standalone(struct str pod_uid);
