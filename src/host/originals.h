#pragma once

/* What the host had before Pinfold changed it, so that it can be restored exactly. A file in the
 * state directory, written before the first change and before a newly found interrupt or unit is
 * changed. Everything in it ends with the boot, so a record of another boot is ignored. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "host_plan.h"

struct err;

#define ORIGINALS_FILE "host-originals.json"
#define ORIGINALS_BOOT_ID_MAX 64

struct unit_original {
	struct str name, cpus; /* as in its cpuset.cpus; "" is inherited */
	bool has_drop_in;      /* it had AllowedCPUs= set at run time */
};

struct irq_original {
	unsigned number;
	struct str cpus; /* as in smp_affinity_list */
};

struct thread_original {
	pid_t tid;
	uint64_t start_ticks; /* a thread id is used again */
	struct str cpus;
};

struct originals {
	struct arena a; /* all texts */
	struct str boot_id;
	struct host_cpus applied; /* what was written last, or is being written */
	bool has_applied;
	bool is_complete; /* it was written to everything; false after a crash in between */

	struct unit_original *units;
	size_t n_units;
	struct irq_original *irqs; /* sorted by number */
	size_t n_irqs;
	struct str irq_default, workqueue; /* masks; "": not recorded */
	struct str services;		   /* the affinity of process 1; "": not recorded */
	struct thread_original *threads;   /* those that differ from it */
	size_t n_threads;

	bool is_changed; /* since it was saved */
};

void originals_init(struct originals *o, struct str boot_id);
void originals_done(struct originals *o);

/* These copy the texts. */
void originals_add_unit(struct originals *o, struct str name, struct str cpus, bool has_drop_in);
void originals_add_irq(struct originals *o, unsigned number, struct str cpus);
void originals_add_thread(struct originals *o, const struct thread_original *t);
void originals_set(struct originals *o, struct str *member, struct str text);
void originals_apply(struct originals *o, const struct host_cpus *cpus);
void originals_complete(struct originals *o);
void originals_forget_irqs(struct originals *o);

const struct unit_original *originals_unit(const struct originals *o, struct str name);
const struct irq_original *originals_irq(const struct originals *o, unsigned number);
const struct thread_original *originals_thread(const struct originals *o, pid_t tid,
					       uint64_t start_ticks);

/* The text of the file, and back. Pure. Decoding fails for a malformed text; a record of another
 * boot gives 0 and an empty record. */
int originals_encode(const struct originals *o, struct arena *a, struct str *ret, struct err *err);
int originals_decode(struct str text, struct str boot_id, struct originals *ret, struct err *err);

/* A missing file is an empty record. A malformed one is an error: what it had cannot be restored.
 */
int originals_load(int state_fd, struct str boot_id, struct originals *ret, struct err *err);
/* Does nothing when nothing has changed. */
int originals_save(struct originals *o, int state_fd, struct err *err);
int originals_remove(int state_fd, struct err *err);
