#pragma once

/* The steps that all parts of the manager share: record what was decided about pods and containers,
 * bring their cgroups in line, release what is gone. Decides nothing about CPUs: that is
 * placement.h. Others than the manager's own files and the OCI hook use manager.h. */

#include "base/log.h"
#include "event_queue.h"
#include "manager.h"
#include "placement.h"

#define LOG_POD(pod)                                                                               \
	LOG_STR("namespace", str_from((pod)->pod_namespace)), LOG_STR("pod", str_from((pod)->name))
#define LOG_POD_ENTRY(p)                                                                           \
	LOG_STR("namespace", str_from((p)->namespace)), LOG_STR("pod", str_from((p)->name))
#define LOG_ENTRY(c) LOG_POD_ENTRY((c)->pod), LOG_STR("container", str_from((c)->name))

/* The subject of an Event. */
#define SUBJECT_OF(p, c)                                                                           \
	((struct event_subject){ (p)->pod_namespace, (p)->name, (p)->uid, (c)->name })

/* The online management CPUs, from the ledger. */
void manager_management_cpus(const struct manager *m, struct cpuset *ret);

/* Kubelet mode: the placement of a container that is not a management one. */
int manager_kubelet_placement(struct manager *m, const char *cpus, struct placement *ret,
			      struct err *err);

/* The part of them that a workload type has. */
void manager_type_cpus(const struct manager *m, struct str type, struct cpuset *ret);

struct container_entry *manager_record_container(struct manager *m, const struct nri_pod *pod,
						 const struct nri_container *c,
						 const struct placement *p);
struct pod_entry *manager_record_pod(struct manager *m, const struct nri_pod *pod);

/* A running container could not be placed; it keeps the CPUs it has. */
void manager_log_unplaced(const struct nri_pod *pod, const struct nri_container *c,
			  const struct err *err);

/* Removes the entries. The ledger keeps the assignments. */
void manager_remove_pod(struct manager *m, struct pod_entry *entry);

/* A pod is finished: removes its entries and releases its CPUs. */
void manager_release_pod(struct manager *m, struct pod_entry *entry);

/* Tries again to release the CPUs of pods that are finished, after the ledger could not be written.
 */
void manager_release_unreleased(struct manager *m);

/* Releases the pods whose cgroup is gone; returns how many. containerd sends no event for the
 * removal of a pod that was created before its last restart. */
size_t manager_release_vanished_pods(struct manager *m);

/* The agent's own container. The kernel refuses writes to the cgroup at the root of one's own
 * cgroup namespace, so the runtime writes it, after a synchronization. */
bool manager_is_own(const struct manager *m, const struct container_entry *c);

/* Writes the CPU settings of one container to its cgroup; a cgroup that does not exist yet is
 * written by the runtime. Returns the drift bits that were written, or a negative errno.
 * `is_drift`: a difference is an external change, which is counted and reported. */
int manager_enforce(struct manager *m, struct container_entry *c, bool is_drift);

/* The same for the cgroups of a pod and of its pause container. */
void manager_enforce_pod(struct manager *m, struct pod_entry *pod, bool is_drift);

/* Checks the cgroups that were written since the last call, and corrects drift. */
void manager_check_written(struct manager *m);

/* Moves CRI-O's monitor of this process to the management CPUs. */
void manager_pin_monitor(struct manager *m, uint32_t pid);

/* Classic mode: the shared pool is the CPUs that are not assigned exclusively, so it shrinks and
 * grows. Shared containers are moved off a CPU before it is assigned exclusively, therefore this
 * writes the cgroups at once and does not wait for the runtime. */
int manager_repin_shared(struct manager *m);
