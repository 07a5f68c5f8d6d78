#pragma once

/* Interrupts and unbound work of the kernel: /proc/irq/N/smp_affinity_list, the mask of new
 * interrupts (/proc/irq/default_smp_affinity) and that of workqueues. Reads, writes and records;
 * host_plan.h decides. */

#include <stddef.h>

#include "originals.h"

struct err;

struct interrupts_result {
	size_t n;	  /* interrupts */
	size_t n_written; /* by this call */
	size_t n_refused; /* the kernel refuses: managed by a driver, or of one CPU */
};

/* Records the masks of interrupts that are not in the record yet. `irq_fd` is /proc/irq. */
int interrupts_record(int irq_fd, struct originals *o, struct err *err);

/* Moves interrupts to o->applied.housekeeping. `is_changed`: it was other CPUs before. A single
 * interrupt that the kernel refuses is counted, and no failure. */
int interrupts_apply(int irq_fd, const struct originals *o, bool is_changed,
		     struct interrupts_result *ret, struct err *err);

/* Gives all interrupts what they had; those that came later get the original mask of new ones. */
int interrupts_restore(int irq_fd, const struct originals *o, struct interrupts_result *ret,
		       struct err *err);

/* The mask of unbound workqueues. `dir_fd` is /sys/devices/virtual/workqueue. */
int workqueue_record(int dir_fd, struct originals *o, struct err *err);
int workqueue_apply(int dir_fd, const struct originals *o, bool is_changed, struct err *err);
int workqueue_restore(int dir_fd, const struct originals *o, struct err *err);
