#pragma once

/* Which manifests a command reads: the -f option and the operands that mean the same. Reading
 * itself is bundle/manifest_load.h. */

#include "base/options.h"

struct err;
struct invocation;
struct manifests;
struct problem_list;

#define MANIFESTS_OPTION(type, field)                                                              \
	{                                                                                          \
		OPT_STRS, 'f', "file", "FILE",                                                     \
			"manifests: a file, a directory, or - for standard input; may be "         \
			"repeated",                                                                \
			NULL, offsetof(type, field)                                                \
	}

/* The operands, then the files of -f. */
struct option_list manifest_paths(const struct invocation *inv, const struct option_list *files);

/* Reads all paths and sorts the objects by kind. Faults inside a file go to `p`. */
int manifests_read(struct manifests *ms, const struct option_list *paths, struct problem_list *p,
		   struct err *err);
