#pragma once

/* The agent's status document, for tools: from a running agent's socket or, while none runs, from
 * the file it left. */

#include <stdbool.h>

#include "codec/doc.h"

struct arena;
struct err;

struct agent_status {
	struct doc doc;
	bool is_live; /* an agent answered */
	const char *from;
};

/* `run_dir` is the agent's. */
int status_client_read(const char *run_dir, struct arena *a, struct agent_status *ret,
		       struct err *err);

/* Any other question: "GET", "POST" or "DELETE" of a target. -ENOENT or -ECONNREFUSED when no agent
 * runs; a refusal is the agent's sentence with -ENOSPC. */
int status_client_request(const char *run_dir, const char *method, struct str target,
			  struct arena *a, struct str *ret, struct err *err);

/* The body of an HTTP response; -EBADMSG when it is none or not a success. Pure. */
int status_client_body(struct str response, struct str *ret, struct err *err);
