#pragma once

/* The QoS class of a pod, in two readings: what Kubernetes computes and stores, and what the
 * workload partitioning hook computes for itself. They disagree on a few pods; each caller needs
 * the one it imitates. Both look at the spec only: a stored status.qosClass is not consulted. */

#include <stdbool.h>

#include "base/str.h"

struct pod;
struct quantity;
struct err;

enum qos_class { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT, QOS__COUNT };

const char *qos_name(enum qos_class class); /* "Guaranteed", "Burstable", "BestEffort" */

/* Kubernetes: pod-level resources, where there are any, hide those of the containers; otherwise
 * positive amounts are summed over the pod. Assumes that defaulting has run. Fails when a CPU or
 * memory quantity is unreadable. */
int qos_kubernetes(const struct pod *pod, enum qos_class *ret, struct err *err);

/* The hook: container by container, any amount but zero counts, a missing request (or a CPU
 * request of zero) stands for its limit. Pod-level resources do not exist for it. */
int qos_hook(const struct pod *pod, enum qos_class *ret, struct err *err);

/* The hook's reading for those who already hold the quantities: begin with { 0 }, add CPU and
 * memory of every container. NULL is an amount that is not given. Extended resources, huge pages
 * and storage never matter. */
enum qos_counted { QOS_CPU, QOS_MEMORY, QOS_COUNTED__COUNT };

struct qos_hook_fold {
	bool not_guaranteed, not_best_effort;
};

void qos_hook_add(struct qos_hook_fold *f, enum qos_counted what, const struct quantity *request,
		  const struct quantity *limit);
enum qos_class qos_hook_class(const struct qos_hook_fold *f);
