#pragma once

/* The map of a node from the status document of its agent (agent/status.h). */

#include "agentclient/status_client.h"
#include "map_draw.h"

/* Fills pools and containers; map->topology is the caller's. */
int node_map_read(const struct doc *doc, struct arena *a, struct map *ret, struct err *err);

/* -EINVAL for a status of another machine: CPUs that the topology lacks would be left out.
 * `topology` is its name for the message. */
int node_map_check(const struct map *map, const char *topology, struct err *err);

/* Lines for a status that is not of a running agent: when and where it was saved. */
void node_map_put_source(struct strbuf *b, const struct agent_status *status);

/* Lines above the map: whether the agent runs, the node, the mode. */
struct str node_map_title(const struct agent_status *status, struct arena *a);
