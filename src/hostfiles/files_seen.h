#pragma once

/* Whether anything that a check of host files reads has changed since the last one, by metadata
 * alone: a check renders all files anew. Only for src/hostfiles. */

#include <stdbool.h>
#include <stdint.h>

struct files_settings;
struct host_files;

/* A hash of the metadata of the files, of the record, and of the units that a check looks for. */
uint64_t files_seen(const struct files_settings *settings, const struct host_files *files,
		    bool has_crio);
