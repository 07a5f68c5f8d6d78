#pragma once

/* Decides which pool a container belongs to, from what the runtime reports about it: management,
 * because its pod opted in; guaranteed, because its pod is Guaranteed and it requests whole CPUs;
 * or shared. Annotations come from users, so each is accepted only with a reason. Pure; which CPUs
 * the container gets is decided later. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup/cpu_settings.h"
#include "permission.h"
#include "pool/demand.h"

struct arena;
struct err;
struct nri_container;
struct nri_pod;
struct pool_config;

struct classify_rules {
	const struct pool_config *pools; /* its workload types; NULL: only management */
	bool is_legacy; /* the names of 2021 count where there are no others (D2) */
	permission_fn permission;
	const void *permission_data;
	uint32_t own_pid; /* of the agent: its own container is on the management CPUs (D18) */
};

/* Why an annotation was not accepted. */
enum distrust_reason {
	DISTRUST_NONE,
	DISTRUST_NAMESPACE,  /* the namespace does not allow the workload type */
	DISTRUST_UNKNOWN,    /* it is not known whether the namespace allows it */
	DISTRUST_TYPE,	     /* the workload type is not configured on this node */
	DISTRUST_STAMP,	     /* the CPU stamp contradicts what the kubelet requested */
	DISTRUST_UNREADABLE, /* the CPU stamp does not parse, or lacks this container */
	DISTRUST_SIZE,	     /* more than a pod can need, so the library dropped them all */
	DISTRUST__COUNT
};

const char *distrust_text(enum distrust_reason distrust);

struct container_class {
	bool is_management;
	struct str type; /* of a management container: its workload type, a text of the pod */
	struct cpu_settings settings; /* likewise: what its annotation requests */
	struct demand demand;	      /* any other container */
	enum distrust_reason distrust;
	bool is_running; /* set by the caller: it cannot be refused */
};

/* Whether a decision depends on this annotation of a pod. All others are not even stored. */
bool classify_reads(const struct classify_rules *rules, const char *key);
bool classify_reads_label(const struct classify_rules *rules, const char *key); /* of a pod */

/* -EINVAL for a container of an accepted management pod whose annotation does not parse. */
int classify_container(const struct classify_rules *rules, const struct nri_pod *pod,
		       const struct nri_container *c, struct arena *a, struct container_class *ret,
		       struct err *err);

/* The workload type that the pod claims; "" when it claims none. Of several, the first by name that
 * is configured, else the first. */
struct str classify_claimed_type(const struct classify_rules *rules, const struct nri_pod *pod);

/* Whether the pod may run on the management CPUs; *ret_distrust is the reason when it claims a
 * workload type and may not. */
bool classify_is_management(const struct classify_rules *rules, const struct nri_pod *pod,
			    enum distrust_reason *ret_distrust);

/* Whether the pod comes from this node's own configuration and not from a user of the cluster: the
 * kubelet read it from its manifest directory, or it is a standalone container, which only root of
 * this node can start. */
bool classify_is_local(const struct nri_pod *pod);

/* The rule behind classify_is_management() for pods that carry the annotation: local pods are
 * always permitted, others by their namespace. */
enum permission classify_permission(const struct classify_rules *rules, bool is_local,
				    struct str namespace, struct str type);

/* The sum of the cpushares of a pod's containers, for its own cgroup (D13); 0 when there are none.
 */
uint64_t classify_pod_shares(const struct classify_rules *rules, const struct nri_pod *pod,
			     struct arena *a);

/* The QoS class, from the path of the pod's cgroup: a Guaranteed pod is below neither "burstable"
 * nor "besteffort". */
bool classify_is_guaranteed(const struct nri_pod *pod);

/* The millicores that the kubelet converted to these shares, quota and period. */
int64_t classify_milli(uint64_t shares, int64_t quota_us, uint64_t period_us);
