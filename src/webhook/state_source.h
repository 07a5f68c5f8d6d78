#pragma once

/* Where the webhook gets the cluster's state from: manifests (state_files.h) or the caches of an
 * API server (state_cluster.h). All threads read it at once; a writer waits for the readers, and no
 * request waits for the network. */

#include <stdbool.h>

#include "admission/admission_state.h"

struct err;
struct loop;
struct strbuf;

struct certificate;

struct state_source {
	/* Set before start() when no certificate files were given: the source provides one. */
	struct certificate *certificate;

	/* Called first, on the main thread, whose loop it may use; `threads` threads will call
	 * acquire(). May be NULL, like stop(), which is called before the loop ends. */
	int (*start)(struct state_source *s, struct loop *loop, unsigned threads, struct err *err);
	void (*stop)(struct state_source *s);

	/* Called by any thread, with its number. What is returned does not change until release. */
	const struct admission_state *(*acquire)(struct state_source *s, unsigned thread);
	void (*release)(struct state_source *s, unsigned thread);

	/* True when decisions can be made; otherwise *ret_missing names what is missing. Any
	 * thread. */
	bool (*is_ready)(struct state_source *s, const char **ret_missing);

	/* SIGHUP, on the main thread. */
	void (*reload)(struct state_source *s);

	/* Adds its own metric families. Any thread. */
	void (*add_metrics)(struct state_source *s, struct strbuf *b);
};
