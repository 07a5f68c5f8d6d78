#pragma once

/* Writes the agent's Node until it says what it should: resources and condition in the status, the
 * taint, and the whole object where the agent registers it. One request at a time, with a growing
 * delay after each, so that a controller which reverts every write is not fought at full speed.
 * Watching the Node and deciding what it should say happen elsewhere (object_watch.h,
 * node_desired.h). */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "cluster/backoff.h"
#include "net/loop.h"
#include "node_plan.h"

struct api_failures;
struct event_queue;

enum node_write_kind {
	NODE_WRITE_NONE,
	NODE_WRITE_STATUS,
	NODE_WRITE_TAINT,
	NODE_WRITE_REGISTER,
	NODE_WRITE__COUNT
};

struct node_write {
	enum node_write_kind kind;
	struct api_request request;
};

struct node_write_rules {
	bool may_register;
	bool may_taint;
	struct node_registration registration; /* its name is the Node's name */
};

/* The next request towards `want`: the status before the taint, because pods must not be scheduled
 * to a Node without its resources. Returns 1 with a request, 0 when there is nothing to write. */
int node_write_plan(const struct node_observed *observed, const struct node_desired *want,
		    const struct node_write_rules *rules, struct arena *a, struct node_write *ret,
		    struct err *err);

typedef struct node_desired (*node_desired_fn)(void *data, bool is_leaving, struct arena *a);

struct node_writer_config {
	struct node_registration registration;
	bool registers; /* creates a Node that has not existed since the start */
	node_desired_fn desired;
	void *desired_data;
	struct event_queue *events; /* gets an Event when resources had to be restored */
	struct api_failures *failures;
};

struct node_writer {
	struct node_writer_config config;
	struct api *api; /* NULL: not started */
	struct node_observed observed;
	bool has_existed;	     /* a deleted Node is not created again */
	struct node_amounts written; /* the amounts last sent */
	struct api_call call;
	enum node_write_kind writing; /* NODE_WRITE_NONE: no request is under way */
	struct timer delay;
	struct backoff backoff;
	uint64_t written_ms, heartbeat_ms; /* last write of any kind, last write of the condition */
	unsigned n_taint_refused;	   /* 403 in a row */
	uint64_t taint_after_ms;	   /* taints are forbidden until then */
	bool is_leaving;
	uint64_t n_written[NODE_WRITE__COUNT];
};

void node_writer_init(struct node_writer *w, const struct node_writer_config *config);
void node_writer_start(struct node_writer *w, struct api *api);

/* The Node as the API server has it; NULL: it does not exist. */
void node_writer_observe(struct node_writer *w, yyjson_val *node);

/* Writes the next difference, unless a request or a delay is under way. Call after each change and
 * once a second: the heartbeat is due by time. */
void node_writer_update(struct node_writer *w);

/* Writes to the condition that the agent stops, and runs the loop until that is done or two seconds
 * have passed. */
void node_writer_leave(struct node_writer *w);
void node_writer_close(struct node_writer *w);
