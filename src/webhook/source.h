#pragma once

/* Where the webhook gets the cluster's facts from: manifests (state_files.h) or the caches of a
 * real API server. Requests of all threads read them at once; whoever changes them waits for those,
 * and no request ever waits for the network. */

#include <stdbool.h>

#include "admission/state.h"

struct strbuf;

struct state_source {
	/* Called by any thread. What is returned does not change until release. */
	const struct admission_state *(*acquire)(struct state_source *s);
	void (*release)(struct state_source *s);

	/* True when decisions can be made; otherwise *ret says what is missing. Any thread. */
	bool (*is_ready)(struct state_source *s, const char **ret_missing);

	/* SIGHUP, on the main thread. */
	void (*reload)(struct state_source *s);

	/* Adds its own metric families. Any thread. */
	void (*add_metrics)(struct state_source *s, struct strbuf *b);
};
