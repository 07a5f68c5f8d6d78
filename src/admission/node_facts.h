#pragma once

/* What decisions about pods need of one Node: whether it could take a pod now, whether it
 * advertises the shared pool, and its taints. Pure. */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;

struct node_facts {
	bool is_reporting; /* has capacity or allocatable */
	bool is_available; /* Ready, not cordoned, without Pinfold's taint */
	bool has_shared;   /* advertises the shared pool, if only with 0 */
	bool has_cores;	   /* likewise cores of some workload type */
	bool has_taint;	   /* Pinfold's */
	struct str taints; /* that keep pods away: "key=value:effect\n" each */
};

/* Texts are in the arena. */
struct node_facts node_facts_of(yyjson_val *node, struct arena *a);

/* Whether a pod with these tolerations can be scheduled in spite of the taints. */
bool taints_are_tolerated(struct str taints, yyjson_val *tolerations);

/* Has a key that contains `part`. */
bool node_has_resource(yyjson_val *resources, struct str part);

/* "management.workload.openshift.io/cores" gives "management"; "" for other resources. */
struct str cores_type_of(yyjson_val *resource);
