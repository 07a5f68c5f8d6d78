#pragma once

/* Decides which pool a container belongs to, from what the runtime reports about it: management,
 * because its pod opted in; guaranteed, because its pod is Guaranteed and it requests whole CPUs;
 * or shared. Annotations come from users, so each is accepted only with a reason. Pure; which CPUs
 * the container gets is decided later. */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup/cpu_settings.h"
#include "permission.h"
#include "pool/demand.h"
#include "workload.h"

struct arena;
struct err;
struct nri_container;
struct nri_pod;

struct classify_rules {
	struct workload management;
	permission_fn permission;
	const void *permission_data;
};

/* Why an annotation was not accepted. */
enum distrust_reason {
	DISTRUST_NONE,
	DISTRUST_NAMESPACE,  /* the namespace does not allow the workload type */
	DISTRUST_UNKNOWN,    /* it is not known whether the namespace allows it */
	DISTRUST_STAMP,	     /* the CPU stamp contradicts what the kubelet requested */
	DISTRUST_UNREADABLE, /* the CPU stamp does not parse, or lacks this container */
	DISTRUST_SIZE,	     /* more than a pod can need, so the library dropped them all */
	DISTRUST__COUNT
};

const char *distrust_text(enum distrust_reason distrust);

struct container_class {
	bool is_management;
	struct cpu_settings settings; /* a management container: what its annotation requests */
	struct demand demand;	      /* any other container */
	enum distrust_reason distrust;
};

/* Whether a decision depends on this annotation of a pod. All others are not even stored. */
bool classify_reads(const struct classify_rules *rules, const char *key);

/* -EINVAL for a container of an accepted management pod whose annotation does not parse. */
int classify_container(const struct classify_rules *rules, const struct nri_pod *pod,
		       const struct nri_container *c, struct arena *a, struct container_class *ret,
		       struct err *err);

/* Whether the pod may run on the management CPUs; *ret_distrust is the reason when it opted in and
 * may not. */
bool classify_is_management(const struct classify_rules *rules, const struct nri_pod *pod,
			    enum distrust_reason *ret_distrust);

/* Whether the pod comes from this node's own configuration and not from a user of the cluster: the
 * kubelet read it from its manifest directory, or it is a standalone container, which only root of
 * this node can start. */
bool classify_is_local(const struct nri_pod *pod);

/* The rule behind classify_is_management() for pods that carry the annotation: local pods are
 * always permitted, others by their namespace. */
enum permission classify_permission(const struct classify_rules *rules, bool is_local,
				    struct str namespace);

/* The QoS class, from the path of the pod's cgroup: a Guaranteed pod is below neither "burstable"
 * nor "besteffort". */
bool classify_is_guaranteed(const struct nri_pod *pod);

/* The millicores that the kubelet converted to these shares, quota and period. */
int64_t classify_milli(uint64_t shares, int64_t quota_us, uint64_t period_us);
