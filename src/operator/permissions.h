#pragma once

/* A step of the reconcile: the digest of namespace permissions that agents read (D33). It is
 * written when it differs from the namespaces, and otherwise every two minutes as a confirmation.
 * Pure. */

struct operator_snapshot;
struct operator_writes;
struct reconcile_figures;

void reconcile_permissions(const struct operator_snapshot *s, struct operator_writes *w,
			   struct reconcile_figures *figures);
