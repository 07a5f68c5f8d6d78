#pragma once

/* Where the host's files are, also in a container that has them below a directory. */

#include <stdbool.h>

struct err;
struct host_dirs;
struct host_settings;

/* "" for the root directory, else the path without a slash at its end. */
const char *host_prefix(const char *root);

/* The state directory is created, and failing that is an error; others that are missing are -1. */
int host_dirs_open(struct host_dirs *d, const struct host_settings *settings, struct err *err);
void host_dirs_close(struct host_dirs *d);

/* Whether systemd has AllowedCPUs= of a unit from a call at run time. */
bool host_has_drop_in(const char *root, const char *unit);
/* Removes it, with the directory when that is empty. Returns 1, or 0 when there was none. */
int host_remove_drop_in(const char *root, const char *unit, struct err *err);
