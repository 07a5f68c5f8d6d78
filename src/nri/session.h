#pragma once

/* The NRI protocol of one connection, without I/O: registration, configuration, synchronization in
 * parts, and events in both forms (one method each since NRI 0.12, StateChange before). Received
 * bytes are passed to session_feed(), bytes to send are in session_pending(). Sockets, timeouts and
 * reconnecting are in plugin.c. */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "nri_messages.h"
#include "rpc/pb_stream.h"
#include "rpc/ttrpc.h"

struct method;

/* What is kept of one request, or of one synchronization. With a `keep` handler that is a few KiB
 * per pod; the limit is then never reached by a real node. */
#define SESSION_MAX_MEMORY ((size_t)64 << 20)
#define SESSION_MAX_KEPT ((size_t)32 << 20)
#define SESSION_MAX_PENDING                                                                        \
	((size_t)16 << 20) /* unsent bytes; beyond that session_feed() fails                       \
			    */

/* The call of the runtime that is being received. */
struct session_call {
	struct ttrpc_request head;
	const struct method *method; /* NULL until its payload begins, or when unknown */
	bool has_payload;
	struct nri_runtime runtime; /* the payload of Configure */
	struct nri_call call;	    /* the payload of all others, except Synchronize: `parts` */
	int status; /* enum ttrpc_code; not 0: refused before it is decoded, see `problem` */
	struct err problem;
};

struct session {
	const struct nri_handlers *handlers;
	void *user;
	const char *name, *index;
	uint32_t events;

	struct mux_reader mux;
	struct ttrpc_reader plugin_in;	/* calls of the runtime */
	struct ttrpc_reader runtime_in; /* responses to our calls */
	uint32_t last_stream;		/* the runtime's, on the plugin connection */
	uint32_t next_stream;		/* ours, on the runtime connection */
	uint32_t register_stream;

	struct pb_filter filter;
	struct pb_stream stream;
	struct session_call in;
	struct arena own;      /* our calls and their responses */
	struct arena call;     /* holds `in`; reset after each request */
	struct arena syncing;  /* holds `parts`, from the first part to the last */
	struct nri_sync parts; /* the parts of a synchronization received so far */
	struct arena outgoing;
	struct strbuf out;
	size_t sent; /* bytes of `out` already sent */

	bool is_configured; /* the runtime has called Configure */
	bool is_synced;
	bool can_update; /* NRI >= 0.12.1 */
};

void session_init(struct session *s, const struct nri_handlers *handlers, void *user);
void session_done(struct session *s);

/* Drops the state of the last connection and queues the registration. */
void session_start(struct session *s);

/* On failure the caller closes the connection: the stream is broken or the runtime refused us. */
int session_feed(struct session *s, struct str bytes, struct err *err);

struct str session_pending(const struct session *s);
void session_sent(struct session *s, size_t n);

/* Queues an unsolicited update; the caller has checked can_update. */
int session_update(struct session *s, const char *container_id, const struct nri_cpu *cpu);
