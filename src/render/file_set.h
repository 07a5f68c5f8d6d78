#pragma once

/* Files a renderer made: path, mode, bytes. Paths are relative to the output directory, or absolute
 * on a node. Nothing is written here: src/cli does that, all or nothing. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;

struct rendered_file {
	struct str path;
	unsigned mode; /* permission bits */
	struct str bytes;
};

struct file_set {
	struct arena *a;
	struct rendered_file *items;
	size_t n, cap;
	uint32_t *slots; /* by the path's hash: index + 1, or 0 when free; twice `cap` of them */
};

#define MODE_PLAIN 0644
#define MODE_PRIVATE 0600 /* the kubelet marker: readable by root only */
#define MODE_SCRIPT 0700

void file_set_init(struct file_set *set, struct arena *a);

/* A path given twice keeps its place and takes the new bytes. */
void file_set_add(struct file_set *set, struct str path, unsigned mode, struct str bytes);

/* Adds copies of all files of another set, whose memory may go away then. */
void file_set_copy(struct file_set *to, const struct file_set *from);

const struct rendered_file *file_set_find(const struct file_set *set, struct str path);
