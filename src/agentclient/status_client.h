#pragma once

/* The client side of the agent's socket, for commands and OCI hooks: reads the status document from
 * a running agent or, while none runs, from its status file; sends other requests to a running
 * agent. */

#include <stdbool.h>

#include "codec/doc.h"

struct arena;
struct err;

struct agent_status {
	struct doc doc;
	bool is_running;  /* the document comes from a running agent */
	const char *from; /* path of the socket or of the file */
	struct str as_of; /* when it was saved, RFC 3339; "": now, or when the agent stopped */
};

int status_client_read(const char *run_dir, struct arena *a, struct agent_status *ret,
		       struct err *err);

/* Sends "GET", "POST" or "DELETE" of a target and returns the body. -ENOENT or -ECONNREFUSED when
 * no agent runs; -ENOSPC with the agent's text when it refuses. */
int status_client_request(const char *run_dir, const char *method, struct str target,
			  struct arena *a, struct str *ret, struct err *err);

/* The body of an HTTP response; -EBADMSG when it is invalid, truncated or not a success, -ENOSPC
 * when the agent refuses. Pure. */
int status_client_body(struct str response, struct str *ret, struct err *err);
