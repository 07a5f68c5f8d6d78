#pragma once

/* The shown state as JSON, one function for each view of the page. Pure: texts are in the arena.
 * The page's own code (ui/) is the only reader; it is served by the same program, so the forms may
 * change with it. */

#include "base/str.h"
#include "shown_state.h"

struct arena;
struct topology;

/* {"cluster":true,"complete":true,"revision":N,"nodes":[...]}: every node as in the list. */
struct str view_cluster(const struct shown_state *s, struct arena *a);

/* {"revision":N,"nodes":[...],"removed":["name"],"all":true}: the nodes that have changed since the
 * last call; "all" when the page has to read everything again. "" when nothing has changed. */
struct str view_changes(struct shown_state *s, struct arena *a);

/* The node with its CPUs and pods. "" when there is none. */
struct str view_node(const struct shown_state *s, struct str name, struct arena *a);

/* Pods whose namespace/name contains `text`, at most VIEW_PODS_MAX of them. */
#define VIEW_PODS_MAX 200
struct str view_pods(const struct shown_state *s, struct str text, struct arena *a);

/* One pod with its containers; NULL when there is none. */
yyjson_mut_val *view_pod(const struct shown_state *s, struct str namespace, struct str name,
			 yyjson_mut_doc *m);

/* The CPUs of the node: what its machine or its agent reported, else the NUMA nodes of its
 * NodePartition with one CPU per core. *ret_is_known is false for the latter. -ENODATA when not
 * even these are known. */
int view_topology(const struct shown_node *n, struct arena *a, struct topology *ret,
		  bool *ret_is_known, struct err *err);
