#pragma once

/* The report about many clusters, as a table and as a document. */

#include "fleet/fleet.h"
#include "output.h"

/* `all`: every outlier and cluster with findings, instead of the first few. */
struct str fleet_print_table(const struct fleet *f, bool all, struct arena *a);
yyjson_mut_val *fleet_print_doc(const struct fleet *f, yyjson_mut_doc *m, struct arena *a);
