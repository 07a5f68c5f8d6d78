#pragma once

/* Resolves a path argument to files: the file itself, or all files below a directory, sorted by
 * name. The path itself may be a symbolic link; below it, links to directories are not followed, so
 * that no file is read twice or from another tree. */

#include <stdbool.h>

#include "str.h"

struct arena;
struct err;

struct walk {
	struct arena *a; /* paths live here */
	/* Filters the entries of directories; NULL: all are visited. */
	bool (*is_wanted)(struct str name, bool is_directory);
	int (*visit)(void *data, const char *path, struct err *err);
	void *data;
};

/* Stops at the first failure and returns it. */
int walk_files(const struct walk *w, const char *path, struct err *err);
