#pragma once

/* Keeps the agent's NodePartition: creates it, owned by the Node, and writes its status when it
 * differs from what it should be. Figures (counters, the use of pools) wait until ten seconds have
 * passed since the last write; everything else is written at once. One request at a time, with a
 * growing delay after each. An object that was deleted is created again. */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "cluster/backoff.h"
#include "net/loop.h"
#include "object_watch.h"
#include "partition/node_partition.h"

struct api_failures;

typedef struct node_partition_status (*partition_desired_fn)(void *data, struct arena *a);

struct partition_writer_config {
	partition_desired_fn desired;
	void *desired_data;
	struct api_failures *failures;
};

/* The object as the API server has it. */
struct partition_observed {
	bool exists;
	int64_t generation;
	char granted[65]; /* spec.granted; "": none */
	char *status;	  /* as JSON, owned; NULL: none, or unreadable */
};

struct partition_writer {
	struct partition_writer_config config;
	struct object_watch watch;
	struct api *api; /* NULL: not started */
	struct str name;
	char node_uid[64]; /* of the Node; "": not known to exist */
	struct partition_observed observed;
	struct api_call call;
	bool is_busy, is_creating;
	bool is_listing; /* whether the object exists is not known */
	struct timer delay;
	struct backoff backoff;
	uint64_t written_ms;   /* last write of the status */
	unsigned n_refused;    /* 403 in a row */
	uint64_t forbidden_ms; /* nothing is written until then */
	uint64_t n_written;
};

/* The next request. Pure. */
enum partition_step { PARTITION_KEEP, PARTITION_CREATE, PARTITION_WRITE };

#define PARTITION_FIGURES_MS 10000

struct partition_facts {
	bool exists, has_node;
	enum status_difference difference; /* of the status, when the object exists */
	uint64_t since_write_ms;	   /* UINT64_MAX: never written */
};
enum partition_step partition_step_choose(const struct partition_facts *f);

/* Starts at once. `name`, the Node's, must outlive it. */
void partition_writer_start(struct partition_writer *w, struct api *api, struct str name,
			    const struct partition_writer_config *config);

/* The UID of the Node, which owns the object; "": there is no Node. */
void partition_writer_set_node(struct partition_writer *w, const char *uid);

/* Writes the next difference, unless a request or a delay is under way. Once a second. */
void partition_writer_update(struct partition_writer *w);

void partition_writer_close(struct partition_writer *w);
void partition_writer_done(struct partition_writer *w); /* after the loop is done */
