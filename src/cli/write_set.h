#pragma once

/* Puts rendered files into a directory, all of them or none. */

#include <stdbool.h>

struct err;
struct file_set;

/* A directory that is missing or empty appears complete, by one rename. With `force` the directory
 * may hold files: those of the set are replaced once every new one is on disk, others stay. */
int write_set(const struct file_set *files, const char *dir, bool force, struct err *err);
