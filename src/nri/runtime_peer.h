#pragma once

/* The runtime's side of an NRI connection, blocking: for programs that play a runtime to a plugin.
 * A timeout is set on the socket by the caller. */

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "nri_messages.h"
#include "rpc/ttrpc.h"

struct err;

struct runtime_peer {
	int fd; /* the caller's */
	struct mux_reader mux;
	struct ttrpc_reader readers[2];
	char bytes[65536];
	struct str rest; /* of `bytes` */
	uint32_t stream;
	struct arena a; /* requests and responses, until the caller resets it */
};

void runtime_peer_init(struct runtime_peer *p, int fd);
void runtime_peer_done(struct runtime_peer *p);

/* The next message of a connection; its data is valid until the next call. */
int runtime_peer_receive(struct runtime_peer *p, uint32_t conn, struct ttrpc_frame *ret,
			 struct err *err);

/* Receives the plugin's registration and accepts it. *ret is in p->a. */
int runtime_peer_register(struct runtime_peer *p, struct nri_register *ret, struct err *err);

/* Calls the plugin and waits for its response, which is in p->a. */
int runtime_peer_call(struct runtime_peer *p, const char *method, struct str payload,
		      struct ttrpc_response *ret, struct err *err);

struct str runtime_peer_encode(struct runtime_peer *p, const struct pb_message *m,
			       const void *value);
