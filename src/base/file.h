#pragma once

/* Files below a directory handle: production passes the root, tests pass a captured machine.
 * Reading has a limit; replacing a file is atomic and durable. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "str.h"

struct arena;
struct err;

/* Reads a whole file of at most `max` bytes; a larger one is refused (-EFBIG) before it is read. */
int file_read_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		 struct err *err);

/* The same for a value that the kernel makes up while it is read (cgroupfs, sysfs):
 * one record, so the first read that leaves room was the last, and half of the calls are saved. */
int file_read_value_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		       struct err *err);

/* The same for an open descriptor that may be a pipe. `name` is for messages. */
int file_read_fd(int fd, const char *name, size_t max, struct arena *a, struct str *ret,
		 struct err *err);

/* Writes a control file (sysfs, cgroupfs) in one write call; never creates it. */
int file_poke_at(int dirfd, const char *path, struct str text, struct err *err);

/* Makes a file that must not be there yet, with exactly this mode. Not synced: for output that can
 * be made again. */
int file_create_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err);

/* Replaces a file so that a reader, or a crash at any moment, sees the old bytes or the new ones:
 * temporary name beside it, fsync, rename, fsync of the directory. */
int file_replace_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err);

/* Makes a directory and its missing parents. */
int file_mkdirs_at(int dirfd, const char *path, mode_t mode, struct err *err);

/* Names in a directory, sorted bytewise, without "." and "..". */
int file_list_at(int dirfd, const char *path, struct arena *a, struct str **ret, size_t *ret_n,
		 struct err *err);
