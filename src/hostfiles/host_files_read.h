#pragma once

/* Host files on disk: how they compare with what a profile wants, and writing them. Everything is
 * below `root`: "/", or where an agent's container has the host's files. Writes are atomic and
 * synced, and come after the record of what was there. */

#include <stdbool.h>
#include <stddef.h>

#include "files_record.h"
#include "host_files.h"

struct arena;
struct err;

#define HOST_FILE_MAX ((size_t)1 << 20)

/* Leaves TuneD's files out where there is no TuneD, and otherwise chooses its profile. */
void host_files_choose_tuned(const char *root, struct host_files *files);

/* Sets the states. */
void host_files_read(const char *root, struct host_files *files);

/* Adds what is to be as it was: files of the record that are not wanted any more. */
void host_files_add_originals(struct host_files *files, const struct files_record *record);

/* Writes the files of a class that differ. The record is saved before. */
int host_files_write(const char *root, const char *state_dir, const struct host_files *files,
		     enum host_file_class class, struct files_record *record, struct err *err);

/* Forgets originals that were restored. */
void host_files_forget(const struct host_files *files, struct files_record *record);

/* systemd's ID of the present start of a unit; "" while it does not run. */
struct str host_unit_invocation(const char *root, struct str unit, struct arena *a);

/* Where a file of the host is; `root` is "/" or "/host". */
const char *host_file_path(const char *root, struct str path, struct arena *a);

bool host_has_line(struct str text, struct str line);

/* The content of a file of the host; "" when it cannot be read. */
struct str host_file_content(const char *root, const char *path, struct arena *a);
