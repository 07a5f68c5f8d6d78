#pragma once

/* Manifests from files and directories, for the commands that start from them. */

struct err;
struct manifests;
struct problem_list;

/* Reads a file, or every regular file below a directory in the order of their names; symbolic
 * links to directories are not followed. Faults inside a file go to `p`. */
int input_read(struct manifests *ms, const char *path, struct problem_list *p, struct err *err);

/* The same for a comma-separated list. */
int input_read_list(struct manifests *ms, const char *paths, struct problem_list *p,
		    struct err *err);
