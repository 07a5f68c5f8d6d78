#pragma once

/* Where the pools come from, for status, metrics and NodePartition: the source in force, and what
 * became of the profiles of the cluster. */

#include <stdint.h>

#include "codec/doc.h"
#include "partition/node_profile.h"
#include "pools_source.h"

#define PROFILE_NAME_SIZE 254

/* The source of the ledger's pools. */
struct pools_in_force {
	enum pools_origin origin;
	char from[256];
	char profile[PROFILE_NAME_SIZE]; /* "": none */
	int64_t generation;
};

void pools_in_force_set(struct pools_in_force *in_force, const struct pools_found *found);

/* The last decision about the cluster's profiles. */
struct profile_report {
	enum profile_state state;
	char name[PROFILE_NAME_SIZE]; /* of the selected profile; "": none */
	int64_t generation;
	uint64_t pools_hash; /* of its pools, when they were resolved */
	char message[1024];  /* why the profile is not applied; "" otherwise */
};

/* The members "source" and "profile" of the status document. */
void pools_status_describe(const struct pools_in_force *in_force, const struct profile_report *r,
			   yyjson_mut_doc *doc, yyjson_mut_val *root);
