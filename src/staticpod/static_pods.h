#pragma once

/* The kubelet's manifest directory: every static pod that opts in is converted in place
 * (static_manifest.h decides) by one rename, with the original next to it under a name that the
 * kubelet does not read. A crash at any time leaves the old manifest or the new one, and the next
 * scan completes the change. A concurrent change of the manifest by another process is kept. */

#include <stdbool.h>
#include <stddef.h>

#include "codec/doc.h"
#include "static_manifest.h"

struct arena;
struct err;

/* A manifest that opts in, or that cannot be read. */
struct static_entry {
	char *file, *pod, *why;
	enum static_verdict verdict;
};

struct static_pods {
	int dir_fd;		    /* -1: not open */
	struct static_entry *items; /* sorted by file */
	size_t n, cap;
	size_t n_converted; /* since the start */
	bool is_legacy;	    /* the names of 2021 opt in, too; set after static_pods_open() */
	bool is_changed;    /* since the status was last written; the reader resets it */
};

/* Ignores SIGIO in the whole process: the kernel sends it to the holder of a read lease when
 * another process opens the file for writing (fcntl(2), F_SETLEASE). */
int static_pods_open(struct static_pods *s, const char *path, struct err *err);
void static_pods_done(struct static_pods *s);

/* Handles one file. -EAGAIN when another process is writing it or has just written it: call again
 * later. Other failures are of the file system; problems of a manifest are in its entry. */
int static_pods_visit(struct static_pods *s, const char *name, struct err *err);

/* Completes changes that a crash interrupted, then visits every file. */
int static_pods_scan(struct static_pods *s, struct err *err);

/* Restores every original; returns how many. */
int static_pods_restore(struct static_pods *s, struct err *err);

/* The member "staticPods" of the status document. */
void static_pods_describe(const struct static_pods *s, yyjson_mut_doc *doc, yyjson_mut_val *root);
