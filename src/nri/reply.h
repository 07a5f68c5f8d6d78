#pragma once

/* The response to one request while a handler fills it in, with the functions of nri.h. */

#include "nri_messages.h"

struct arena;

struct nri_reply {
	struct arena *a;
	struct nri_response response;
	const char *refusal; /* NULL: not refused */
};

void reply_init(struct nri_reply *reply, struct arena *a);

/* Appends one update to response->updates. False when memory ran out. */
bool reply_add_update(struct nri_response *response, const char *container_id,
		      const struct nri_cpu *cpu, bool may_fail, struct arena *a);
