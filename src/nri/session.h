#pragma once

/* One connection to a runtime as a machine of bytes: registration, configuration, synchronisation
 * in parts, events old and new. Bytes go in with session_feed() and wait in session_pending() to be
 * sent; sockets and reconnecting are plugin.c's. */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "nri_messages.h"
#include "rpc/mux.h"
#include "rpc/ttrpc.h"

struct err;

#define SESSION_MAX_MEMORY ((size_t)64 << 20)  /* one request decoded, or one synchronisation */
#define SESSION_MAX_PENDING ((size_t)16 << 20) /* a runtime that does not read is given up */

struct session {
	const struct nri_handlers *handlers;
	void *user;
	const char *name, *index;
	uint32_t events;

	struct mux_reader mux;
	struct ttrpc_reader plugin_in;	/* calls of the runtime */
	struct ttrpc_reader runtime_in; /* answers to ours */
	uint32_t last_stream;		/* the runtime's, on the plugin connection */
	uint32_t next_stream;		/* ours, on the runtime connection */
	uint32_t register_stream;

	struct arena call;     /* of the request being answered */
	struct arena syncing;  /* of the parts of a synchronisation */
	struct nri_sync parts; /* what has come of it */
	struct arena outgoing;
	struct strbuf out;
	size_t sent; /* bytes of `out` that are gone */

	bool is_synced;
	bool can_update; /* NRI >= 0.12.1 */
};

void session_init(struct session *s, const struct nri_handlers *handlers, void *user);
void session_done(struct session *s);

/* Forgets the last connection and puts the registration into the output. */
void session_start(struct session *s);

/* Fails when this connection is of no more use. */
int session_feed(struct session *s, struct str bytes, struct err *err);

struct str session_pending(const struct session *s);
void session_sent(struct session *s, size_t n);

/* An unsolicited update; the caller has asked can_update. */
int session_update(struct session *s, const char *container_id, const struct nri_cpu *cpu);
