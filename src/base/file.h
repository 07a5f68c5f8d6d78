#pragma once

/* Files below a directory descriptor: programs pass the root directory, tests a directory with the
 * files of another machine. Reads have a size limit; replacing a file is atomic and durable. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "str.h"

struct arena;
struct err;

/* Reads a whole file of at most `max` bytes; a larger one is refused (-EFBIG) before it is read. */
int file_read_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		 struct err *err);

/* The same for a file whose content the kernel generates on read (cgroupfs, sysfs). Such a file is
 * one record: the first read that does not fill the buffer was the last, which saves the read that
 * would return 0. */
int file_read_value_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		       struct err *err);

/* The same for an open descriptor that may be a pipe. `name` is for messages. */
int file_read_fd(int fd, const char *name, size_t max, struct arena *a, struct str *ret,
		 struct err *err);

/* Writes a control file (sysfs, cgroupfs) in one write call, as the kernel requires; never creates
 * it. */
int file_write_value_at(int dirfd, const char *path, struct str text, struct err *err);

/* Writes a control file and returns what the kernel kept, as the two functions above, with one
 * open: of a deep path under Landlock it costs more than the write. */
int file_exchange_value_at(int dirfd, const char *path, struct str text, size_t max,
			   struct arena *a, struct str *ret, struct err *err);

/* Writes all bytes to a descriptor, also a pipe. On failure -1 with errno set. */
int file_write_fd(int fd, struct str text);

/* Creates a file that must not exist yet, with exactly this mode. Not synced: for output that can
 * be generated again. */
int file_create_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err);

/* Replaces a file so that a reader, also after a crash at any point, sees the old bytes or the new
 * ones: temporary file in the same directory, fsync, rename, fsync of the directory. */
int file_replace_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err);

/* Creates a directory and its missing parents. */
int file_mkdirs_at(int dirfd, const char *path, mode_t mode, struct err *err);

/* Names in a directory, sorted bytewise, without "." and "..". */
int file_list_at(int dirfd, const char *path, struct arena *a, struct str **ret, size_t *ret_n,
		 struct err *err);
