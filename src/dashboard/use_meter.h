#pragma once

/* How busy the CPUs of a cluster's nodes are, measured only while a page shows a node: agents
 * write nothing for it. The counters are those of the agent's port (GET /cpus), read through the
 * API server (`get` of pods/proxy in the agents' namespace). Belongs to the thread of its loop. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "cluster/api.h"

struct cpu_use;
struct use_meter;
struct shown_state;

#define USE_METER_MAX 16	 /* nodes at a time */
#define USE_METER_PERIOD_MS 2000 /* from one reading to the next */
#define USE_METER_ASKED_MS 15000 /* without use_meter_ask() the measuring ends */

/* The use of this node is new in the state. */
typedef void (*use_meter_fn)(void *context, struct str node);

struct node_measurement {
	struct use_meter *of;
	char *node; /* NULL: this place is free */
	char *path; /* of the counters; NULL: the agent's pod is to be found first */
	struct cpu_use *counters;
	struct api_call call;
	uint64_t asked_ms, next_ms;
	struct err why; /* it is not measured */
	bool is_active; /* a call is under way */
};

struct use_meter {
	struct api *api; /* set by the owner, like the next four */
	struct loop *loop;
	struct shown_state *state;
	use_meter_fn on_use;
	void *context;
	struct node_measurement places[USE_METER_MAX];
};

/* Measures the node from now on. Fails when there is a reason why it is not measured. */
int use_meter_ask(struct use_meter *u, struct str node, struct err *err);

/* Starts the calls that are due. */
void use_meter_tick(struct use_meter *u);
void use_meter_close(struct use_meter *u);

/* The path of the counters in the API server, from the list of the agent's pods on the node. Pure.
 */
int use_meter_path(yyjson_val *pods, struct arena *a, struct str *ret, struct err *err);
