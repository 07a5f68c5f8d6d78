#pragma once

/* What the files of the Manager share among themselves. Others use manager.h. */

#include "base/log.h"
#include "event_queue.h"
#include "manager.h"
#include "placement.h"

#define LOG_POD(pod)                                                                               \
	LOG_STR("namespace", str_from((pod)->pod_namespace)), LOG_STR("pod", str_from((pod)->name))
#define LOG_ENTRY(c)                                                                               \
	LOG_STR("namespace", str_from((c)->pod->namespace)),                                       \
		LOG_STR("pod", str_from((c)->pod->name)),                                          \
		LOG_STR("container", str_from((c)->name))

/* Whom a notice is about. */
#define SUBJECT_OF(p, c)                                                                           \
	((struct event_subject){ (p)->pod_namespace, (p)->name, (p)->uid, (c)->name })

/* Decides about one container, with the ledger's help. */
int manager_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		  const struct container_class *class, struct placement *ret, struct err *err);

/* The same for one that is new to us: whoever is over makes way for it, and in classic mode those
 * who share are off its CPUs when this returns. */
int manager_give_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		       const struct container_class *class, struct placement *ret, struct err *err);

/* The same with what it says of itself. */
int manager_find_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		       struct placement *ret, struct err *err);

/* One that runs cannot be refused any more: what it may not have it does without. */
int manager_find_place_of_running(struct manager *m, const struct nri_pod *pod,
				  const struct nri_container *c, struct placement *ret,
				  struct err *err);

/* What one that runs asks for. One whose annotation is broken stays where its pod opted in to. */
void manager_classify_running(struct manager *m, const struct nri_pod *pod,
			      const struct nri_container *c, struct container_class *ret);

/* The online management CPUs, from the ledger. */
void manager_management_cpus(const struct manager *m, struct cpuset *ret);

struct ledger_request manager_request(const struct nri_pod *pod, const struct nri_container *c,
				      const struct container_class *class);

/* Remember what was decided. */
struct container_entry *manager_note(struct manager *m, const struct nri_pod *pod,
				     const struct nri_container *c, const struct placement *p);
void manager_note_pod(struct manager *m, struct pod_entry *entry, const struct nri_pod *pod);
void manager_note_distrust(struct manager *m, const struct nri_pod *pod,
			   const struct nri_container *c, enum distrust_reason distrust);

/* Out of the registry; what the ledger knows of it stays. */
void manager_drop_pod(struct manager *m, struct pod_entry *entry);

/* A pod is over: releases its CPUs. */
void manager_forget_pod(struct manager *m, struct pod_entry *entry);

/* Forgets pods that ended without a word; returns how many. A containerd that was restarted tells
 * nobody when it removes a pod of before. */
size_t manager_sweep(struct manager *m);

/* CRI-O's monitor of a container or pause process, which it leaves on all CPUs. */
void manager_pin_monitor(struct manager *m, uint32_t pid);

/* Writes one container's cgroup; one that is not there is the runtime's to write. Returns whether
 * something was written. `is_drift`: it had been right before. */
int manager_enforce(struct manager *m, struct container_entry *c, bool is_drift);

/* Classic mode: those who share go where nobody is alone. */
int manager_repin_shared(struct manager *m);

int manager_on_synchronize(void *user, const struct nri_inventory *all, struct nri_reply *reply);
