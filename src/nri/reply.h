#pragma once

/* An answer while a handler fills it; nri.h has the functions that do. */

#include "nri_messages.h"

struct arena;

struct nri_reply {
	struct arena *a;
	struct nri_response response;
	const char *refusal; /* NULL: granted */
};

void reply_init(struct nri_reply *reply, struct arena *a);

/* Adds one update to a list that grows by doubling. False when memory ran out. */
bool reply_add_update(struct nri_response *response, const char *container_id,
		      const struct nri_cpu *cpu, bool may_fail, struct arena *a);
