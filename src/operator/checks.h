#pragma once

/* The cluster checks that need only the snapshot, and the step of the reconcile that reports the
 * findings of all checks: Events on the objects, figures for the metrics. namespace_checks.h has
 * the others. Pure. */

#include <stdbool.h>

struct cluster_findings;
struct operator_snapshot;
struct operator_writes;
struct reconcile_figures;

/* The cluster flag is AllNodes. */
bool cluster_is_partitioned(const struct operator_snapshot *s);

/* Nodes without the cores resource in a cluster that partitions all nodes. A node that has just
 * joined gets two minutes. */
void check_nodes(const struct operator_snapshot *s, struct cluster_findings *f);

/* Profiles that select no node, or a node that another one selects, too. */
void check_profiles(const struct operator_snapshot *s, struct cluster_findings *f);

/* All of them, with what the scan of the namespaces found. */
void check_cluster(const struct operator_snapshot *s, struct cluster_findings *f);

void reconcile_checks(const struct operator_snapshot *s, struct operator_writes *w,
		      struct reconcile_figures *figures);
