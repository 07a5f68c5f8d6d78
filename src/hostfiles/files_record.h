#pragma once

/* What the agent has done to host files, so that it can be undone exactly and is not forgotten by
 * an agent that ends in between: the files as they were, and restarts that are still owed. A file
 * in the state directory, written before the first change of anything that it is about. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "host_files.h"

struct arena;
struct err;

#define FILES_RECORD "host-files.json"
#define FILES_RECORD_MAX ((size_t)4 << 20)

struct file_original {
	struct str path;
	bool existed;
	unsigned mode;
	struct str bytes;
	enum host_file_class class; /* what undoing it needs */
};

/* A unit, and the start of it (systemd's invocation ID) that has read the files as they were. */
struct owed_restart {
	struct str unit, invocation; /* "": nothing is owed */
};

struct files_record {
	struct arena *a; /* of all texts */
	struct file_original *items;
	size_t n, cap;
	struct owed_restart owed[HOST_FILE_CLASS__COUNT];
	struct str boot_id; /* in which the restarts are owed */
	struct str
		reboot_owed; /* the boot in which units that run at boot were written; "": none */
	struct str loader_args;	 /* kernel arguments that the boot loader was seen to have, */
	struct str loader_boot;	 /* and in which boot; "": none */
	struct str systemd_owed; /* calls of systemd that files need, one in each line; "": none */
	bool is_changed;	 /* since it was saved */
};

void files_record_init(struct files_record *r, struct str boot_id, struct arena *a);

/* Texts are not copied. */
void files_record_add(struct files_record *r, struct file_original original);
const struct file_original *files_record_find(const struct files_record *r, struct str path);
void files_record_forget(struct files_record *r, struct str path);

/* Pure. What is owed in another boot is left out: it was done by the reboot. */
int files_record_encode(const struct files_record *r, struct arena *a, struct str *ret,
			struct err *err);
int files_record_decode(struct str text, struct str boot_id, struct arena *a,
			struct files_record *ret, struct err *err);

/* A missing file is an empty record. A malformed one is an error: nothing may be changed then. */
int files_record_load(const char *state_dir, struct str boot_id, struct arena *a,
		      struct files_record *ret, struct err *err);
/* Does nothing when nothing has changed; removes the file of an empty record. */
int files_record_save(struct files_record *r, const char *state_dir, struct err *err);
