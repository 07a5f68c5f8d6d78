#pragma once

/* What a container may claim, read from what the runtime says about it: the reserved CPUs because
 * its pod opted in, CPUs of its own because it is Guaranteed and asks for whole ones, or a place
 * among the others. Annotations come from users, so each is believed only for a reason. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup/cpu_settings.h"
#include "pool/demand.h"
#include "workload.h"

struct arena;
struct err;
struct nri_container;
struct nri_pod;

/* Whether a namespace may put pods onto the reserved CPUs. */
enum permission {
	PERMISSION_UNKNOWN, /* nobody told us: the pod must look as admission leaves it */
	PERMISSION_GRANTED,
	PERMISSION_DENIED,
};

typedef enum permission (*permission_fn)(const void *data, struct str namespace);

struct classify_rules {
	struct workload management; /* on the reserved CPUs */
	permission_fn permission;
	const void *permission_data;
};

/* Why an annotation was not believed. */
enum distrust_reason {
	DISTRUST_NONE,
	DISTRUST_NAMESPACE,   /* it is not allowed there */
	DISTRUST_UNCONVERTED, /* the pod asks for CPU, so admission has not seen it */
	DISTRUST_STAMP,	      /* the stamp contradicts what the kubelet asked the runtime for */
	DISTRUST_UNREADABLE,  /* the stamp is broken, or lacks this container */
	DISTRUST__COUNT
};

const char *distrust_text(enum distrust_reason distrust);

struct container_class {
	bool is_management;
	struct cpu_settings settings; /* a management container: what its annotation requests */
	struct demand demand;	      /* any other container */
	enum distrust_reason distrust;
};

/* -EINVAL for a container of a believed management pod whose annotation cannot be read. */
int classify_container(const struct classify_rules *rules, const struct nri_pod *pod,
		       const struct nri_container *c, struct arena *a, struct container_class *ret,
		       struct err *err);

/* True when the pod may run on the reserved CPUs; *ret_doubt says why not, if it wanted to. */
bool classify_is_management(const struct classify_rules *rules, const struct nri_pod *pod,
			    enum distrust_reason *ret_doubt);

/* The kubelet read the pod from its manifest directory, not from the API server. */
bool classify_is_static(const struct nri_pod *pod);

/* The rule behind classify_is_management() for pods that carry the annotation: static pods are
 * always permitted, others by their namespace. */
enum permission classify_permission(const struct classify_rules *rules, bool is_static,
				    struct str namespace);

/* The pod's QoS class is Guaranteed, as its cgroup says: in neither of the other two. */
bool classify_is_guaranteed(const struct nri_pod *pod);

/* Millicores from what the kubelet made of them. */
int64_t classify_milli(uint64_t shares, int64_t quota_us, uint64_t period_us);
