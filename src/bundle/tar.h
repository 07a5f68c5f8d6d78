#pragma once

/* Archives in the format of tar (POSIX ustar with pax names), as support bundles have it. Only
 * regular files: directories, links and devices of an archive are left out, and nothing is ever
 * extracted to a file system. Not compressed (D52). Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

#define TAR_BLOCK ((size_t)512)
#define TAR_MAX_MEMBERS 100000
#define TAR_MAX_NAME 1024

struct tar_member {
	struct str name; /* checked with tar_name_is_safe() */
	struct str bytes;
};

struct tar_list {
	struct tar_member *items;
	size_t n, cap;
};

/* A relative path of printable characters without "." and ".." that stays below its directory. */
bool tar_name_is_safe(struct str name);

/* Whether the bytes, at least the first block of them, begin an archive. */
bool tar_is(struct str bytes);

/* `file` is for messages. Names and contents are views of `bytes`, or in the arena. */
int tar_parse(struct str bytes, struct str file, struct arena *a, struct tar_list *ret,
	      struct err *err);

/* Appends a member; the name is safe. tar_end() ends the archive. */
void tar_add(struct strbuf *b, const struct tar_member *m, int64_t time_s);
void tar_end(struct strbuf *b);
