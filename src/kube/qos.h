#pragma once

/* The QoS class of a pod, as Kubernetes computes and stores it, and as OpenShift's admission
 * plugin computes it. They differ for a few pods
 * (docs/reference/admission.md#kubernetes-qos-class), and each caller needs one of them. Both use
 * the spec only; a stored status.qosClass is not read. */

#include <stdbool.h>

#include "base/str.h"

struct pod;
struct quantity;
struct err;

enum qos_class { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT, QOS__COUNT };

const char *qos_name(enum qos_class class); /* "Guaranteed", "Burstable", "BestEffort" */

/* As Kubernetes: pod-level resources, if any, replace those of the containers; otherwise positive
 * amounts are summed over the pod. Expects default resources. Fails when a CPU or memory quantity
 * is unreadable. */
int qos_kubernetes(const struct pod *pod, enum qos_class *ret, struct err *err);

/* As the admission plugin (docs/reference/admission.md#plugin-qos-class): container by container;
 * pod-level resources do not count. */
int qos_hook(const struct pod *pod, enum qos_class *ret, struct err *err);

/* The plugin's class from quantities that are already parsed: start with { 0 }, add CPU and
 * memory of every container. NULL means that no amount is given. Extended resources, huge pages
 * and storage do not count. */
enum qos_counted { QOS_CPU, QOS_MEMORY, QOS_COUNTED__COUNT };

struct qos_hook_fold {
	bool not_guaranteed, not_best_effort;
};

void qos_hook_add(struct qos_hook_fold *f, enum qos_counted what, const struct quantity *request,
		  const struct quantity *limit);
enum qos_class qos_hook_class(const struct qos_hook_fold *f);
