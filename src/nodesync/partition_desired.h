#pragma once

/* What the NodePartition should say now, from the state of the manager. Writes nothing. */

#include "node_plan.h"
#include "partition/node_partition.h"

struct arena;
struct manager;

/* The parts of the agent that add to the status, after the rest is complete. */
typedef void (*partition_describe_fn)(void *data, struct node_partition_status *s, struct arena *a);

struct partition_desired_source {
	const struct manager *manager;
	struct str version;		/* of this program */
	partition_describe_fn describe; /* may be NULL */
	void *describe_data;
};

/* `health` is the reason of the Node's condition. Texts live in the arena or in the manager. */
struct node_partition_status partition_desired(const struct partition_desired_source *source,
					       enum node_reason health, struct arena *a);
