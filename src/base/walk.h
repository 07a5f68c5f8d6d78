#pragma once

/* The files that a user means by a path: the file itself, or those below a directory, in the order
 * of their names. What was named may be a symbolic link; below it, links to directories are not
 * followed, so nothing is read twice or from outside. */

#include <stdbool.h>

#include "str.h"

struct arena;
struct err;

struct walk {
	struct arena *a; /* paths live here */
	/* Asked about what stands in a directory; NULL: everything is. */
	bool (*is_wanted)(struct str name, bool is_directory);
	int (*visit)(void *data, const char *path, struct err *err);
	void *data;
};

/* Ends at the first failure, and returns it. */
int walk_files(const struct walk *w, const char *path, struct err *err);
