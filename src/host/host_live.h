#pragma once

/* The live configuration of the host: what keeps everything that is not a container off the
 * guaranteed CPUs and needs no reboot. Services through systemd, or by their affinities; interrupts
 * and unbound workqueues through the kernel's files. Checked again every few seconds, because
 * interrupts and slices come and go. What was there before is recorded first (originals.h) and can
 * be restored. What is not possible on a host is reported and does not stop the rest. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/doc.h"
#include "host_plan.h"
#include "interrupts.h"
#include "originals.h"
#include "processes.h"
#include "systemd_client.h"

struct cgroup_fs;
struct strbuf;

#define HOST_MAX_UNITS 32

struct host_settings {
	const char *root;      /* "/", or where a container has the host's files: "/host" */
	const char *state_dir; /* of the record */
	const char *proc;      /* "/proc": the processes of the host */
	const struct cgroup_fs *cgroups;
	struct str boot_id;
	bool keeps_interrupts; /* interrupts stay as they are */
};

/* Each can fail on its own. */
enum host_part { HOST_RECORD, HOST_SERVICES, HOST_INTERRUPTS, HOST_WORKQUEUES, HOST__PARTS };

/* The directories that are opened before the process is confined; -1: not there. */
struct host_dirs {
	int state, proc, irq, workqueue;
};

struct host {
	struct host_settings settings;
	struct host_dirs dirs;
	struct originals originals;
	bool is_open, uses_systemd;
	bool has_checked;
	uint64_t n_ticks;
	uint64_t n_checks, next_services_check;
	uint64_t irq_links; /* of /proc/irq: changes with every interrupt that comes or goes */

	struct systemd_client systemd;
	struct systemd_call calls[HOST_MAX_UNITS];
	char unit_names[HOST_MAX_UNITS][256];
	size_t n_units, n_units_set; /* found, and with the right CPUs */

	struct interrupts_result interrupts;
	struct processes_result processes;
	struct err problems[HOST__PARTS]; /* code 0: none */
	bool is_changed;		  /* the status, since it was last reset by the owner */
};

/* Opens what is there, and reads the record. Fails when there is no state directory, or a record
 * that cannot be read: applying anything would overwrite what it has. `err` is not NULL. */
int host_open(struct host *h, const struct host_settings *settings, struct err *err);
void host_start(struct host *h, struct loop *loop);
void host_done(struct host *h);

/* Once a second, with the present pools. Cheap while nothing changes. */
void host_tick(struct host *h, const struct host_pools *pools);

/* Whether interrupts stay where they are: those that were moved are restored in the next check. */
void host_keep_interrupts(struct host *h, bool keeps);

/* Everything is as decided: no problem, and all units have their CPUs. */
bool host_is_configured(const struct host *h);
/* The first problem, or NULL. */
const struct err *host_problem(const struct host *h);

/* The member "host" of the status document. */
void host_describe(const struct host *h, yyjson_mut_doc *doc, yyjson_mut_val *root,
		   struct arena *a);
void host_metrics(const struct host *h, struct strbuf *b);

/* Whether an agent has configured the host, or began to. */
bool host_has_record(const char *state_dir);

/* Restores what the record has, then removes it; nothing without one. Uses a loop of its own. A
 * part that fails does not stop the others; the record then stays, for another try. Returns whether
 * there was something to restore. */
int host_restore(const struct host_settings *settings, struct err *err);
