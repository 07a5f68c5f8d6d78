#pragma once

/* What a container may claim, read from what the runtime says about it: the reserved CPUs because
 * its pod opted in, CPUs of its own because it is Guaranteed and asks for whole ones, or a place
 * among the others. Annotations come from users, so each is believed only for a reason. Pure. */

#include <stdbool.h>
#include <stddef.h>

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

struct claim_rules {
	struct workload management; /* on the reserved CPUs */
	permission_fn permission;
	const void *permission_data;
};

/* Why an annotation was not believed. */
enum doubt {
	DOUBT_NONE,
	DOUBT_NAMESPACE,   /* it is not allowed there */
	DOUBT_UNCONVERTED, /* the pod asks for CPU, so admission has not seen it */
	DOUBT_STAMP,	   /* the stamp contradicts what the kubelet asked the runtime for */
	DOUBT_UNREADABLE,  /* the stamp is broken, or lacks this container */
	DOUBT__COUNT
};

const char *doubt_text(enum doubt doubt);

struct claim {
	bool is_management;
	struct workload_cpu cpu; /* of management */
	struct demand demand;	 /* of the others */
	enum doubt doubt;
};

/* -EINVAL for a container of a believed management pod whose annotation cannot be read. */
int claim_read(const struct claim_rules *rules, const struct nri_pod *pod,
	       const struct nri_container *c, struct arena *a, struct claim *ret, struct err *err);

/* True when the pod may run on the reserved CPUs; *ret_doubt says why not, if it wanted to. */
bool claim_is_management(const struct claim_rules *rules, const struct nri_pod *pod,
			 enum doubt *ret_doubt);

/* The pod's QoS class is Guaranteed, as its cgroup says: in neither of the other two. */
bool claim_is_guaranteed(const struct nri_pod *pod);

/* Millicores from what the kubelet made of them. */
int64_t claim_milli(uint64_t shares, int64_t quota_us, uint64_t period_us);
