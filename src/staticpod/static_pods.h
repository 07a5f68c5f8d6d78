#pragma once

/* The kubelet's directory of static pods: every manifest that asks for it is converted in place
 * (static_manifest.h decides), in one rename, with the original beside it under a name that the
 * kubelet does not read. At any moment a crash leaves the old manifest or the new one, and the next
 * scan finishes. Somebody who changes a manifest meanwhile wins. */

#include <stdbool.h>
#include <stddef.h>

#include "codec/doc.h"
#include "static_manifest.h"

struct arena;
struct err;

/* A file that asks for something, or that cannot be read. */
struct static_entry {
	char *file, *pod, *why;
	enum static_verdict verdict;
};

struct static_pods {
	int dir_fd;		    /* -1: not open */
	struct static_entry *items; /* sorted by file */
	size_t n, cap;
	size_t n_converted; /* since the start */
	bool is_changed;    /* since somebody last wrote the status down */
};

/* Ignores SIGIO for good: the kernel sends it to whoever reads while another wants to write. */
int static_pods_open(struct static_pods *s, const char *path, struct err *err);
void static_pods_done(struct static_pods *s);

/* One file. -EAGAIN when somebody is writing it, or has written it meanwhile: come again. Other
 * failures are of the file system; what is wrong with a manifest stands in its entry. */
int static_pods_visit(struct static_pods *s, const char *name, struct err *err);

/* Finishes what a crash left, then visits every file. */
int static_pods_scan(struct static_pods *s, struct err *err);

/* Puts every original back. Returns how many. */
int static_pods_restore(struct static_pods *s, struct err *err);

/* The member "staticPods" of the status document. */
void static_pods_describe(const struct static_pods *s, yyjson_mut_doc *doc, yyjson_mut_val *root);
