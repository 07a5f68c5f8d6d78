#pragma once

/* The cluster checks of objects in the namespaces that allow a workload type: pods that were not
 * converted, and what refuses or misreads converted pods. A round hands over pods first, as
 * metadata, then autoscalers, LimitRanges and ResourceQuotas. Pure; namespace_scan.h reads them. */

#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "findings.h"
#include "object_store.h"

struct arena;

struct workload_ref {
	struct str namespace, kind, name;
};

struct namespace_checks {
	struct arena *arena;		    /* of the findings, too */
	const struct object_store *allowed; /* namespaces that allow a type, by name */
	struct workload_ref *converted;	    /* workloads with converted pods */
	size_t n_converted;
	struct cluster_findings found;
};

/* The workload that owns the pod: its controller, and for a ReplicaSet of a Deployment that one.
 * False when it has none. Points into the object and the arena. */
bool pod_workload(yyjson_val *pod, struct arena *a, struct workload_ref *ret);

/* Opted in, and without the annotations that admission writes. */
bool pod_is_unconverted(yyjson_val *pod);

void namespace_check_pod(struct namespace_checks *c, yyjson_val *pod);
void namespace_check_autoscaler(struct namespace_checks *c, yyjson_val *autoscaler);
void namespace_check_limit_range(struct namespace_checks *c, yyjson_val *range);
void namespace_check_quota(struct namespace_checks *c, yyjson_val *quota);
